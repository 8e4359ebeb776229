//! A mounted folder is read, written and watched as a bucket is.

use std::fs;
use std::time::Duration;

use forebay_protocol::{DataReply, DataRequest, PutCondition, RangeSpec};
use forebay_types::{BitRate, ErrorKind, Key, MountOptions, ObjectVersion, SegmentId, Validate};

use crate::bed::{Bed, Client, MIB, Plan, add_mount, noise, prefetch, until};

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_in_the_background_gets_what_others_leave_of_the_bound() {
    let bed = Bed::new(Plan { dram_bytes: 128 << 20, ..Plan::default() }).await;
    let bandwidth = Some(BitRate::from_bytes_per_sec(16 << 20));
    let client = client(&bed, MountOptions { bandwidth, ..MountOptions::default() }).await;
    for (name, mib) in [("load", 32), ("scan", 4), ("read", 8)] {
        fs::write(bed.folder.path().join("nas").join(name), noise(name, mib * MIB)).unwrap();
    }
    let (load, scan, wanted) = (client.version("load").await, client.version("scan").await, client.version("read").await);
    let ahead =
        |version: &ObjectVersion, hold_ms| client.call(prefetch(version, vec![(0, version.size as u32)], false, false, hold_ms));
    let loaded = async || {
        let segments = vec![SegmentId::of(&load, 0)];
        match client.call(DataRequest::Held { segments }).await.unwrap().0 {
            DataReply::Held(held) => held[0].bytes as usize,
            other => panic!("{other:?}"),
        }
    };
    let mut loading = Box::pin(ahead(&load, 0));
    assert!(tokio::time::timeout(Duration::from_millis(400), &mut loading).await.is_err(), "it keeps the bound");
    let alone = loaded().await;
    assert!(alone >= 2 * MIB, "alone it has all of the bound: {alone}");
    tokio::select! {
        _ = &mut loading => panic!("it went before a read"),
        read = client.read(&wanted, 0, 8 * MIB) => assert_eq!(read.unwrap().len(), 8 * MIB),
    }
    // What was let in before the read came, while that one looks at what it got.
    let beside = loaded().await - alone;
    assert!(beside <= MIB, "{beside} beside a read of 8 MiB");
    // All of what stands in line came before.
    tokio::select! {
        _ = &mut loading => panic!("it went before what a plan reads"),
        came = ahead(&scan, 60_000) => assert_eq!(came.unwrap().0, DataReply::Fetched { bytes: 4 << 20 }),
    }
    assert_eq!(loading.await.unwrap().0, DataReply::Fetched { bytes: 32 << 20 });
}
