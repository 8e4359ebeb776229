//! Doors of mounts as views come and go.

use std::time::Duration;

use forebay_shared_storage::{Class, Get, GetRange};
use forebay_types::BitRate;
use futures::FutureExt;

use super::*;

fn view(mounts: Vec<Mount>) -> ClusterView {
    let (pins, workers) = (Vec::new(), Vec::new());
    ClusterView { version: 1, epoch: 1, mounts, pins, workers, poll: None, losses: 0 }
}

#[tokio::test]
async fn who_is_at_rest_is_told_when_something_begins_to_be_read() {
    let (folder, a_while) = (tempfile::tempdir().unwrap(), Duration::from_millis(300));
    std::fs::write(folder.path().join("object"), b"bytes").unwrap();
    let options = MountOptions { bandwidth: Some(BitRate::from_bytes_per_sec(1_000_000)), ..MountOptions::default() };
    let url = format!("file://{}", folder.path().display());
    let mounts = Mounts::new(StorageSettings::default(), u64::MAX);
    mounts.set(&view(vec![Mount { id: MountId(1), name: "lake".parse().unwrap(), url, options }]));
    let (door, key) = (mounts.find(MountId(1)).unwrap(), Key::new("object").unwrap());
    let storage = door.storage().unwrap();
    forebay_runtime::time::sleep(a_while).await;
    assert!(mounts.is_still() && mounts.begins().now_or_never().is_none());
    let get = Get { key: &key, range: GetRange::All, if_match: None, class: Class::Demand };
    let body = storage.get(get).await.unwrap();
    assert!(!mounts.is_still() && mounts.begins().now_or_never().is_some());
    drop(body);
    forebay_runtime::time::sleep(a_while).await;
    assert!(mounts.is_still());
    let _ = mounts.begins().now_or_never();
    let _permit = door.admission.enter(1, Priority::Demand, 10).await;
    assert!(mounts.begins().now_or_never().is_some(), "it waited to be read");
}

#[test]
fn what_is_under_way_keeps_to_a_new_bound() {
    let folder = tempfile::tempdir().unwrap();
    let mounts = Mounts::new(StorageSettings::default(), u64::MAX);
    let set = |bytes_per_sec: u64, read_only| {
        let bandwidth = Some(BitRate::from_bytes_per_sec(bytes_per_sec));
        let options = MountOptions { bandwidth, read_only, ..MountOptions::default() };
        let url = format!("file://{}", folder.path().display());
        let mount = Mount { id: MountId(1), name: "lake".parse().unwrap(), url, options };
        mounts.set(&view(vec![mount]));
        mounts.find(MountId(1)).unwrap()
    };
    let under_way = set(1_000, false);
    under_way.storage().unwrap();
    let door = set(1_000_000, false);
    assert!(Arc::ptr_eq(&under_way.admission, &door.admission));
    assert!(door.state.lock().storage.is_some(), "the one that was opened before");
    assert!(!Arc::ptr_eq(&set(1_000_000, true).admission, &door.admission), "another option is another door");
}

#[test]
fn a_worker_cut_off_takes_a_twentieth_of_the_bound() {
    let options = MountOptions { bandwidth: Some(BitRate::from_bytes_per_sec(1_000_000)), ..MountOptions::default() };
    let mount = |id, options: &MountOptions| Mount {
        id: MountId(id),
        name: format!("lake{id}").parse().unwrap(),
        url: "file:///".to_string(),
        options: options.clone(),
    };
    let mounts = Mounts::new(StorageSettings::default(), u64::MAX);
    let all = vec![mount(1, &options), mount(2, &MountOptions::default())];
    mounts.set(&view(all));
    mounts.set_shares(&[MountShare { mount: MountId(1), bytes_per_sec: Some(700_000), burst_bytes: 1 << 20 }]);
    let share = |id| mounts.find(MountId(id)).unwrap().share();
    assert_eq!((share(1), share(2)), (Some(700_000), None));
    mounts.shrink_shares(20);
    assert_eq!((share(1), share(2)), (Some(50_000), None));
    mounts.shrink_shares(2);
    assert_eq!(share(1), Some(50_000));
    mounts.shrink_shares(100);
    assert_eq!(share(1), Some(10_000), "where all are cut off from a coordinator that is gone, they keep the bound together");
}

#[test]
fn without_a_word_of_the_coordinator_workers_keep_their_shares_and_no_more_than_their_parts() {
    let options = MountOptions { bandwidth: Some(BitRate::from_bytes_per_sec(1_000_000)), ..MountOptions::default() };
    let mount = Mount { id: MountId(1), name: "lake".parse().unwrap(), url: "file:///".to_string(), options };
    let kept = |given: Option<u64>| {
        let mounts = Mounts::new(StorageSettings::default(), u64::MAX);
        mounts.set(&view(vec![mount.clone()]));
        if let Some(given) = given {
            mounts.set_shares(&[MountShare { mount: MountId(1), bytes_per_sec: Some(given), burst_bytes: 1 << 20 }]);
        }
        mounts.keep_parts(3);
        mounts.find(MountId(1)).unwrap().share().unwrap()
    };
    let all = [700_000, 200_000, 100_000].map(|given| kept(Some(given)));
    assert_eq!(all, [333_333, 200_000, 100_000], "one that begins anew takes it that each has a third");
    assert_eq!(kept(None), 50_000, "who has joined and was given none takes as much as one that is cut off");
}

#[test]
fn a_number_that_means_another_mount_by_now_is_gone_first() {
    let mounts = Mounts::new(StorageSettings::default(), u64::MAX);
    let set = |name: &str, url: &str, read_only| {
        let options = MountOptions { read_only, ..MountOptions::default() };
        mounts.set(&view(vec![Mount { id: MountId(1), name: name.parse().unwrap(), url: url.into(), options }]))
    };
    assert_eq!(set("lake", "file:///lake", false), []);
    assert_eq!(set("lake", "file:///lake", true), [], "the same one, with other options");
    assert_eq!(set("nas", "file:///nas", true), [MountId(1)], "as after a restart with metadata from before it was added");
    assert_eq!(mounts.find(MountId(1)).unwrap().mount.url, "file:///nas");
}
