//! The catalogue over real connections: storage is asked, changes are finished, and many callers come at once.

use std::time::{Duration, Instant};

use forebay_protocol::{AdminRequest, ControlReply, ControlRequest, TableDefinition};
use forebay_types::{BitRate, ErrorKind, MountOptions};

use crate::cluster::{Cluster, ask, settings, url};

fn bound(bytes_per_sec: u64) -> MountOptions {
    MountOptions { bandwidth: Some(BitRate::from_bytes_per_sec(bytes_per_sec)), ..MountOptions::default() }
}

#[tokio::test]
async fn a_folder_is_mounted_changed_and_removed() {
    let cluster = Cluster::start().await;
    let lake = cluster.data("lake");
    let mount = cluster.add_mount("lake", &lake, bound(1_000_000)).await.unwrap();
    assert_eq!(mount.url, lake);
    assert_eq!(cluster.view().await.mounts, std::slice::from_ref(&mount));

    let taken = cluster.add_mount("lake", &lake, MountOptions::default()).await.unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Conflict);

    // The bound changes while a worker runs: at its next heartbeat it has it.
    let seen = cluster.register(1).await.version;
    let (_, shares) = cluster.beat(1, seen, &[(mount.id, u64::MAX)]).await;
    assert_eq!(shares[0].bytes_per_sec, Some(1_000_000));
    let set = AdminRequest::MountSet { name: "lake".parse().unwrap(), options: bound(3_000_000) };
    let ControlReply::Mount(changed) = cluster.ask(set).await.unwrap() else { panic!("no mount") };
    assert_eq!((changed.id, changed.options), (mount.id, bound(3_000_000)));
    let (view, shares) = cluster.beat(1, seen, &[(mount.id, u64::MAX)]).await;
    assert_eq!(view.unwrap().mounts[0].options, bound(3_000_000));
    assert_eq!(shares[0].bytes_per_sec, Some(3_000_000));

    let removed = AdminRequest::MountRemove { name: "lake".parse().unwrap() };
    assert_eq!(cluster.ask(removed.clone()).await.unwrap(), ControlReply::Done);
    assert_eq!(cluster.view().await.mounts, []);
    assert_eq!(cluster.ask(removed).await.unwrap_err().kind(), ErrorKind::NotFound);
    let again = cluster.add_mount("lake", &lake, MountOptions::default()).await.unwrap();
    assert!(again.id > mount.id, "an id is never used again");
}

#[tokio::test]
async fn a_folder_that_the_coordinator_s_own_data_lie_in_is_not_mounted() {
    let cluster = Cluster::start().await;
    let around = format!("file://{}", cluster.folder.path().display());
    let error = cluster.add_mount("all", &around, MountOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.message().contains("the data folder of the coordinator lies in"), "{error}");
    cluster.add_mount("lake", &cluster.data("lake"), MountOptions::default()).await.unwrap();
}

#[tokio::test]
async fn a_folder_below_a_data_folder_is_not_mounted() {
    let cluster = Cluster::start().await;
    let below = cluster.folder.path().join("other/below");
    std::fs::create_dir_all(&below).unwrap();
    std::fs::write(cluster.folder.path().join("other/owner.secret"), "hush").unwrap();
    let error = cluster.add_mount("below", &format!("file://{}", below.display()), MountOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.message().contains("are not apart"), "{error}");
    assert_eq!(cluster.view().await.mounts, []);
}

#[tokio::test]
async fn a_mount_that_does_not_work_is_not_added() {
    let cluster = Cluster::start().await;
    let absent = format!("file://{}/absent", cluster.folder.path().display());
    let error = cluster.add_mount("nas", &absent, MountOptions::default()).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid), "{error}");
    assert!(error.message().contains("absent"), "{error}");

    let file = cluster.folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let error = cluster.add_mount("nas", &format!("file://{}", file.display()), MountOptions::default()).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid), "{error}");

    let error = cluster.add_mount("nas", "s3://", MountOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");

    // Nobody listens at this endpoint.
    let endpoint = MountOptions { endpoint: Some("http://127.0.0.1:1".into()), anonymous: true, ..MountOptions::default() };
    let started = Instant::now();
    let error = cluster.add_mount("nas", "s3://bucket", endpoint).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Retry, "{error}");
    assert!(error.message().contains("nas"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    assert_eq!(cluster.view().await.mounts, []);
}

#[tokio::test]
async fn a_change_is_finished_when_the_one_who_asked_is_gone() {
    let cluster = Cluster::start().await;
    let lake = cluster.data("lake");
    for i in 0..20 {
        let request = AdminRequest::MountAdd {
            name: format!("lake-{i}").parse().unwrap(),
            url: lake.clone(),
            options: MountOptions::default(),
        };
        // Given up after a random while: before, during or after the write.
        let _ = tokio::time::timeout(Duration::from_micros(300 * i), cluster.ask(request)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let seen = cluster.view().await.mounts;
    let folder = cluster.stop().await;
    let restarted = Cluster::start_in(folder).await;
    assert_eq!(restarted.view().await.mounts, seen, "what is seen is what is written");
}

#[tokio::test]
async fn tables_and_pins_are_kept() {
    let cluster = Cluster::start().await;
    let lake = cluster.data("lake");
    cluster.add_mount("lake", &lake, MountOptions::default()).await.unwrap();
    let table = TableDefinition { name: "flights".into(), statement: "CREATE EXTERNAL TABLE flights ..".into() };
    let add = |replace| ControlRequest::TableAdd { table: table.clone(), replace };
    assert_eq!(cluster.ask(add(false)).await.unwrap(), ControlReply::Done);
    assert_eq!(cluster.ask(add(false)).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(cluster.ask(add(true)).await.unwrap(), ControlReply::Done);
    let pin = AdminRequest::PinAdd { path: "/lake/dim/".parse().unwrap() };
    assert_eq!(cluster.ask(pin.clone()).await.unwrap(), ControlReply::Done);
    assert_eq!(cluster.ask(pin).await.unwrap(), ControlReply::Done);
    assert_eq!(cluster.view().await.pins.len(), 1);

    let restarted = Cluster::start_in(cluster.stop().await).await;
    assert_eq!(restarted.ask(ControlRequest::Tables).await.unwrap(), ControlReply::Tables(vec![table]));
    let pins = restarted.coordinator.status().pins;
    assert_eq!(pins, ["/lake/dim/".parse().unwrap()]);
    let remove = AdminRequest::PinRemove { path: pins[0].clone() };
    assert_eq!(restarted.ask(remove.clone()).await.unwrap(), ControlReply::Done);
    assert_eq!(restarted.ask(remove).await.unwrap_err().kind(), ErrorKind::NotFound);
    let drop_table = ControlRequest::TableRemove { name: "flights".into() };
    assert_eq!(restarted.ask(drop_table.clone()).await.unwrap(), ControlReply::Done);
    assert_eq!(restarted.ask(drop_table).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn many_ask_at_once() {
    let cluster = Cluster::start().await;
    let lake = cluster.data("lake");
    let tasks: Vec<_> = (0..40)
        .map(|i| {
            let connection = cluster.connection.clone();
            // Every name is wanted by two.
            let name = format!("lake-{}", i / 2).parse().unwrap();
            let request = AdminRequest::MountAdd { name, url: lake.clone(), options: MountOptions::default() };
            tokio::spawn(async move { ask(&connection, request).await })
        })
        .collect();
    let mut added = 0;
    for task in tasks {
        if let Err(error) = task.await.unwrap() { assert_eq!(error.kind(), ErrorKind::Conflict, "{error}") } else { added += 1 }
    }
    assert_eq!((added, cluster.view().await.mounts.len()), (20, 20));
}

#[tokio::test]
async fn a_short_lease_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let settings = forebay_coordinator::CoordinatorSettings { lease: Duration::from_millis(500), ..settings(url(&folder)) };
    let error = forebay_coordinator::Coordinator::start(settings).await.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}
