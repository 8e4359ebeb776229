//! Workers that hear nothing of the coordinator any more, and what they take of a bound meanwhile.

use std::path::Path;
use std::time::Duration;

use forebay_protocol::{AdminRequest, ControlReply, MountShare};
use forebay_testbed::{Proxy, until};
use forebay_transport::Security;
use forebay_types::{BitRate, MountId, MountOptions};

use super::bed::Bed;
use crate::cluster::ask;
use crate::{Tuning, Worker};

const BOUND: u64 = 1_000_000;
/// Longer than it takes to look a few times, and shorter than an answer of the coordinator is waited for.
const LEASE: Duration = Duration::from_secs(3);

fn tuning() -> Tuning {
    Tuning { beat: Duration::from_millis(50), ..Tuning::default() }
}

/// A mount with a bound, of a folder.
async fn bounded(bed: &Bed, folder: &Path) -> MountId {
    let options = MountOptions { bandwidth: Some(BitRate::from_bytes_per_sec(BOUND)), ..MountOptions::default() };
    let url = format!("file://{}", folder.display());
    let add = AdminRequest::MountAdd { name: "lake".parse().unwrap(), url, options };
    match ask(bed.node.coordinator_at(), &Security::default(), &mut None, add).await.unwrap() {
        ControlReply::Mount(mount) => mount.id,
        other => panic!("{other:?} is no mount"),
    }
}

fn share(worker: &Worker, mount: MountId) -> Option<u64> {
    worker.rooms.origin.mounts.find(mount)?.share()
}

/// Two workers have half of the bound each, and know each other.
async fn shared(workers: [&Worker; 2], mount: MountId) {
    let has_half = |worker: &Worker| {
        share(worker, mount).is_some_and(|share| share.abs_diff(BOUND / 2) <= 1) && worker.rooms.cluster.view().workers.len() == 2
    };
    until("both have their shares", || workers.into_iter().all(has_half)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_an_answer_takes_a_twentieth_of_a_bound_as_soon_as_the_lease_is_over() {
    let (bed, folder) = (Bed::start(LEASE).await, tempfile::tempdir().unwrap());
    let way = Proxy::before(bed.node.coordinator_at()).await;
    let (other, worker) = (bed.worker("other", tuning()).await, bed.worker_by(&way.address, "worker", tuning()).await);
    let mount = bounded(&bed, folder.path()).await;
    shared([&other, &worker], mount).await;
    let began = forebay_runtime::now();
    way.cut();
    until("others may have its share", || share(&worker, mount) == Some(BOUND / 20)).await;
    let took = began.elapsed();
    assert!(took > LEASE / 2, "it keeps its share for its lease: {took:?}");
    assert!(took < LEASE + Duration::from_secs(1), "however long an answer is waited for: {took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_finds_no_coordinator_keeps_no_more_than_an_equal_part_and_then_a_twentieth() {
    // Much longer than a coordinator takes to stop.
    let (bed, folder) = (Bed::start(2 * LEASE).await, tempfile::tempdir().unwrap());
    let (other, worker) = (bed.worker("other", tuning()).await, bed.worker("worker", tuning()).await);
    let mount = bounded(&bed, folder.path()).await;
    shared([&other, &worker], mount).await;
    bed.node.shutdown().await;
    // As if the other one had been idle.
    let most = MountShare { mount, bytes_per_sec: Some(BOUND * 7 / 10), burst_bytes: 1 << 20 };
    worker.rooms.origin.mounts.set_shares(&[most]);
    until("it has found out", || share(&worker, mount) == Some(BOUND / 2)).await;
    until("its lease is over", || share(&worker, mount) == Some(BOUND / 20)).await;
}
