//! A mounted folder is read, written and watched as a bucket is.

use std::fs;
use std::time::Duration;

use forebay_protocol::{DataReply, DataRequest, PutCondition, RangeSpec};
use forebay_types::{ErrorKind, Key, MountOptions, Validate};

use crate::bed::{Bed, Client, MIB, Plan, add_mount, noise, until};

/// A folder is mounted beside the bucket.
async fn client(bed: &Bed, options: MountOptions) -> Client {
    let folder = bed.folder.path().join("nas");
    fs::create_dir(&folder).unwrap();
    let mount = add_mount(bed.node.coordinator_at(), "nas", &format!("file://{}", folder.display()), options).await;
    Client::connect(&bed.worker().address(), mount.id).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_is_read_and_written_like_a_bucket() {
    let bed = Bed::new(Plan::default()).await;
    let client = client(&bed, MountOptions::default()).await;
    let path = bed.folder.path().join("nas/dir/a b%20");
    fs::create_dir(path.parent().unwrap()).unwrap();
    let data = noise("file", 3 * MIB + 1);
    fs::write(&path, &data).unwrap();
    let (info, _, bytes) = client.latest("dir/a b%20", RangeSpec::Suffix { len: 5000 }).await.unwrap();
    assert_eq!(bytes, data[data.len() - 5000..]);
    assert_eq!(client.read(&info.version, 10, 2 * MIB).await.unwrap(), data[10..2 * MIB + 10]);
    // Overwritten between open and read: what is held may be read, what is not is Conflict.
    fs::write(&path, noise("other", 3 * MIB + 1)).unwrap();
    assert_eq!(client.read(&info.version, 100, 1000).await.unwrap(), data[100..1100]);
    let error = client.read(&info.version, (2 * MIB + 8192) as u64, 1000).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    let put = DataRequest::Put { mount: client.mount, key: Key::new("new/x").unwrap(), condition: PutCondition::Any };
    let DataReply::Info(info) = client.send(put, vec!["hello".into()]).await.unwrap().0 else { panic!() };
    assert_eq!(fs::read(bed.folder.path().join("nas/new/x")).unwrap(), b"hello");
    assert_eq!(client.read(&info.version, 1, 4).await.unwrap(), "ello");
    let error = client.open("../outside").await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Denied), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn discovery_finds_what_is_gone() {
    let bed = Bed::new(Plan::default()).await;
    let discover = Some(Duration::from_secs(1));
    let client = client(&bed, MountOptions { validate: Validate::Immutable, discover, ..Default::default() }).await;
    let path = bed.folder.path().join("nas/gone");
    fs::write(&path, b"x").unwrap();
    until("the file is there", async || client.open("gone").await.is_ok()).await;
    fs::remove_file(&path).unwrap();
    until("the file is gone", async || matches!(client.open("gone").await, Err(error) if error.kind() == ErrorKind::NotFound))
        .await;
}
