//! A coordinator that stops and starts again: what it keeps, what it presumes, and what it has let go of.

use std::time::Duration;

use forebay_coordinator::Coordinator;
use forebay_protocol::ControlRequest;
use forebay_transport::{Address, Listener};
use forebay_types::{BitRate, ErrorKind, MountOptions};

use crate::cluster::{Cluster, settings, url};

#[tokio::test]
async fn mounts_survive_and_views_grow() {
    let cluster = Cluster::start().await;
    let lake = cluster.data("lake");
    let mount = cluster.add_mount("lake", &lake, MountOptions::default()).await.unwrap();
    let before = cluster.register(1).await;
    let restarted = Cluster::start_in(cluster.stop().await).await;
    let after = restarted.view().await;
    assert_eq!(after.mounts, [mount]);
    assert!(after.epoch > before.epoch);
    assert!(after.version > before.version);
    assert!(after.workers.is_empty(), "who is there says so itself");
    restarted.register(1).await;
}

#[tokio::test]
async fn shares_of_workers_that_are_not_back_are_kept_for_a_lease() {
    let cluster = Cluster::start().await;
    let lake = cluster.data("lake");
    let options = MountOptions { bandwidth: Some(BitRate::from_bytes_per_sec(1_000_000)), ..MountOptions::default() };
    let mount = cluster.add_mount("lake", &lake, options).await.unwrap();
    cluster.register(1).await;
    cluster.register(2).await;
    let restarted = Cluster::start_in(cluster.stop().await).await;
    restarted.register(1).await;
    let share = |shares: &[forebay_protocol::MountShare]| shares[0].bytes_per_sec.unwrap();
    let (_, shares) = restarted.beat(1, 0, &[(mount.id, u64::MAX)]).await;
    assert_eq!(share(&shares), 500_000, "the other half may still be taken by worker 2");
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(900)).await;
        restarted.beat(1, 0, &[(mount.id, u64::MAX)]).await;
    }
    let (_, shares) = restarted.beat(1, 0, &[(mount.id, u64::MAX)]).await;
    assert_eq!(share(&shares), 1_000_000);
}

#[tokio::test]
async fn connections_end_with_the_coordinator() {
    let cluster = Cluster::start().await;
    cluster.view().await;
    let connection = cluster.connection.clone();
    cluster.coordinator.shutdown().await;
    cluster.coordinator.stopped().await.unwrap();
    tokio::time::timeout(Duration::from_secs(2), connection.closed()).await.unwrap();
    let error = cluster.ask(ControlRequest::Status).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Closed | ErrorKind::Retry), "{error}");
}

#[tokio::test]
async fn two_on_one_data_folder_are_refused() {
    let cluster = Cluster::start().await;
    let error = Coordinator::start(settings(url(&cluster.folder))).await.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("in use by another forebay"), "{error}");
    cluster.view().await;
}

#[tokio::test]
async fn a_port_in_use_is_told_and_the_folder_is_free_again() {
    let folder = tempfile::tempdir().unwrap();
    let taken = Listener::bind(&Address::Tcp("127.0.0.1:0".into())).await.unwrap();
    let address = taken.local_address();
    let settings = forebay_coordinator::CoordinatorSettings { listen: address.clone(), ..settings(url(&folder)) };
    let error = Coordinator::start(settings).await.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains(&address.to_string()), "{error}");
    Cluster::start_in(folder).await.view().await;
}
