//! Processes that speak the version of the protocol before this build's, in one cluster with those of this one.

use forebay_client::{Client, ClientSettings};
use forebay_protocol::{AdminRequest, ControlReply, PROTOCOL_VERSION, PROTOCOL_VERSION_OLDEST};
use forebay_testbed::{BUCKET, add_mount};
use forebay_types::{ErrorKind, MountOptions, Validate};

use crate::cluster::{Cluster, bytes, path, put};
use crate::nodes::conforms_with;

/// What the version before says of a worker's own, since it has no such field.
const UNSAID: u16 = 0;
/// So many in each of two folders that each of three workers is the home of some: one time in a hundred thousand one is not.
const OBJECTS: u64 = 16;

fn of_before(settings: &mut ClientSettings) {
    settings.security.newest = PROTOCOL_VERSION_OLDEST;
}

/// What workers are said to speak.
fn spoken(client: &Client) -> Vec<u16> {
    let mut spoken: Vec<_> = client.view().workers.iter().map(|worker| worker.protocol).collect();
    spoken.sort_unstable();
    spoken
}

/// One writes and deletes objects, and both read and list them.
async fn share_objects(writer: &Client, reader: &Client, folder: &str) {
    for seed in 0..OBJECTS {
        let (key, data) = (format!("{folder}/{seed}"), bytes(seed, 300_000));
        put(writer, &key, data.clone()).await;
        for client in [writer, reader] {
            let version = client.open(&path(&key)).await.unwrap().version;
            assert!(client.read(client.operation(), &version, 0..version.size).await.unwrap() == data, "{key}");
        }
    }
    writer.delete(&path(&format!("{folder}/0"))).await.unwrap();
    assert_eq!(reader.open(&path(&format!("{folder}/0"))).await.unwrap_err().kind(), ErrorKind::NotFound);
    for client in [writer, reader] {
        assert_eq!(client.list_all(&path(&format!("{folder}/"))).await.unwrap().len() as u64, OBJECTS - 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_the_version_before_reads_writes_and_renames_beside_one_of_this() {
    let cluster = Cluster::start(2).await;
    let ours = cluster.client(|_| {}).await;
    let theirs = cluster.client(of_before).await;
    let afar = cluster
        .client(|settings| {
            of_before(settings);
            settings.in_place = false;
        })
        .await;
    assert_eq!(spoken(&ours), [PROTOCOL_VERSION; 2]);
    assert_eq!((spoken(&theirs), spoken(&afar)), (vec![UNSAID; 2], vec![UNSAID; 2]));
    share_objects(&theirs, &ours, "theirs").await;
    share_objects(&ours, &theirs, "ours").await;
    share_objects(&afar, &ours, "afar").await;
    conforms_with(&theirs, &ours, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_of_age_stays_when_a_client_of_the_version_before_sets_its_mount() {
    let cluster = Cluster::start(1).await;
    let (ours, theirs) = (cluster.client(|_| {}).await, cluster.client(of_before).await);
    let mount = ours.view().mounts[0].clone();
    let set = async |client: &Client, options: &MountOptions| {
        let request = AdminRequest::MountSet { name: mount.name.clone(), options: options.clone() };
        match client.control(request).await.unwrap() {
            ControlReply::Mount(mount) => mount.options,
            other => panic!("{other:?}"),
        }
    };
    let ruled = MountOptions { young: Some("2 for 7d".parse().unwrap()), ..mount.options.clone() };
    assert_eq!(set(&ours, &ruled).await, ruled);
    let said = MountOptions { replicas: Some(1), ..mount.options.clone() };
    assert_eq!(set(&theirs, &said).await, said, "it hears of no rule");
    assert_eq!(ours.refresh_view().await.unwrap().mounts[0].options, MountOptions { replicas: Some(1), ..ruled.clone() });
    assert_eq!(set(&ours, &said).await, said, "who knows it lifts it");
    let refused = theirs.control(AdminRequest::MountSet { name: mount.name.clone(), options: ruled }).await.unwrap_err();
    assert!(refused.message().contains("unsupported"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_of_the_version_before_joins_serves_and_leaves() {
    let mut cluster = Cluster::start(1).await;
    cluster.worker.security.newest = PROTOCOL_VERSION_OLDEST;
    cluster.add_worker().await;
    cluster.worker.security.newest = PROTOCOL_VERSION;
    cluster.add_worker().await;
    let (ours, theirs) = (cluster.client(|_| {}).await, cluster.client(of_before).await);
    assert_eq!(spoken(&ours), [UNSAID, PROTOCOL_VERSION, PROTOCOL_VERSION]);
    share_objects(&ours, &theirs, "ours").await;
    share_objects(&theirs, &ours, "theirs").await;
    conforms_with(&ours, &theirs, None).await;
    // To that worker segments are named by their ids, to the others by what they are of.
    let listed = ours.list_all(&path("ours/")).await.unwrap();
    let versions: Vec<_> = listed.iter().map(|info| info.version.clone()).collect();
    ours.keep(&versions, true).await.unwrap();
    let kept = theirs.held(&versions).await.unwrap();
    assert!(kept.iter().any(|held| held.bytes > 0) && kept.iter().all(|held| held.keep || held.bytes == 0), "{kept:?}");
    for client in [&ours, &theirs] {
        client.keep(&versions, false).await.unwrap();
        client.free(&versions).await.unwrap();
    }
    let leaving = cluster.take_worker(1);
    assert!(leaving.report().reads > 0, "it has served");
    leaving.shutdown().await;
    for client in [&ours, &theirs] {
        assert_eq!(client.refresh_view().await.unwrap().workers.len(), 2);
    }
    share_objects(&ours, &theirs, "after").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_of_the_version_before_has_workers_and_clients_of_this() {
    let mut cluster = Cluster::empty(|settings| settings.security.newest = PROTOCOL_VERSION_OLDEST).await;
    cluster.worker.security.newest = PROTOCOL_VERSION;
    cluster.add_worker().await;
    cluster.add_worker().await;
    let ours = cluster.client(|settings| settings.security.newest = PROTOCOL_VERSION).await;
    let theirs = cluster.client(|_| {}).await;
    let options = MountOptions { validate: Validate::Always, ..cluster.s3.mount_options() };
    add_mount(&ours, "lake", &format!("s3://{BUCKET}"), options).await;
    theirs.refresh_view().await.unwrap();
    assert_eq!(spoken(&ours), [UNSAID; 2], "what it does not know it passes on to nobody");
    share_objects(&ours, &theirs, "ours").await;
    conforms_with(&theirs, &ours, None).await;
}
