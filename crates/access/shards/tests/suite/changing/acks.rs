//! Changes that are acknowledged when two workers' disks have them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use forebay_client::{AdminRequest, PutCondition};
use forebay_demo::Fault;
use forebay_placement::rank;
use forebay_shard_store::{Acknowledged, ChangeIf, LogClaim, LogObject, LogPlace};
use forebay_shards::{ReshardTo, Shards, reshard};
use forebay_testbed::until_asked;
use forebay_types::{ErrorKind, RouteKey, WorkerId};

use super::changes::{literal, name_of, put, record, record_at};
use crate::bed::{Bed, path, store};

/// More requests than anyone makes in a test.
const ALL: usize = 100_000;

/// Three workers, a dataset of one shard whose changes two disks acknowledge, and the workers' places as they hold it: the writer's, its second's,
/// and the other's. The log is claimed.
async fn started() -> (Bed, Shards, Vec<usize>) {
    let bed = Bed::start(3).await;
    let shards = bed.create("orders.shards", 1, vec![0.5, 0.5, 0.5]).await;
    let shards = shards.order(|orders| orders.ack = Acknowledged::TwoWorkers).await.unwrap();
    let workers: Vec<WorkerId> = bed.client.view().workers.iter().map(|worker| worker.id).collect();
    let order = rank(RouteKey::of(shards.id().mount, &shards.id().folder, 0), &workers);
    let places: Vec<usize> = order.into_iter().map(|worker| bed.cluster.place_of(worker)).collect();
    claim(&bed, &shards, &places).await;
    (bed, shards, places)
}

/// Changes something until that is under a claim: workers hear of the order within a moment.
async fn claim(bed: &Bed, shards: &Shards, places: &[usize]) {
    until_asked("the log is claimed", async || {
        put(shards, 1, "first").await.unwrap();
        on_disk(bed, places[0]) == 1 && on_disk(bed, places[1]) == 1
    })
    .await;
}

fn claims(bed: &Bed, place: usize) -> PathBuf {
    bed.cluster.worker_folder(place).join("tiers/claims")
}

/// How many claims a worker has on its disk.
fn on_disk(bed: &Bed, place: usize) -> usize {
    std::fs::read_dir(claims(bed, place)).map_or(0, Iterator::count)
}

/// The last object of the shard's log that shared storage has.
async fn last(bed: &Bed, shards: &Shards) -> LogObject {
    let place = LogPlace { folder: "orders.shards".into(), log: shards.dataset().log.clone().unwrap(), shard: 0 };
    let mut last = None;
    for number in 1.. {
        let object = path(place.key(number).unwrap().as_str());
        let Ok(info) = bed.client.open(&object).await else { break };
        let bytes = bed.client.read(bed.client.operation(), &info.version, 0..info.version.size).await.unwrap();
        last = Some(LogObject::decode(&bytes, number, &shards.columns().schema(), "log").unwrap());
    }
    last.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_acknowledged_while_shared_storage_is_away_and_seen_everywhere_and_stored_when_it_is_back() {
    let (bed, shards, places) = started().await;
    bed.cluster.s3.inject(Fault::Status(503), ALL);
    let version = put(&shards, 7, "on two disks").await.unwrap();
    // It can't be over as long as shared storage is away.
    let (writer, second) = (bed.cluster.node.workers[places[0]].id(), bed.cluster.node.workers[places[1]].id());
    let claim = shards.status().await.unwrap().remove(0).claim.unwrap();
    assert!(claim.behind_objects > 0 && claim.behind_bytes > 0, "{claim:?}");
    assert_eq!((claim.writer, claim.second), (writer.to_string(), second.to_string()));
    bed.cluster.s3.clear_faults();
    for worker in bed.client.view().workers.iter().map(|worker| worker.id) {
        let name = record_at(&bed.client, &shards, worker, 7).await.unwrap();
        assert_eq!(name.as_deref(), Some("on two disks"), "at {worker}");
    }
    let there = shards.get_versioned(&literal(7)).await.unwrap();
    assert_eq!(there.version, version);
    shards.put(&record(7, "again"), ChangeIf::Version(version)).await.unwrap();
    until_asked("nobody writes, so the claim is over", async || last(&bed, &shards).await == LogObject::Over).await;
    until_asked("nothing stays on disks", async || places.iter().all(|place| on_disk(&bed, *place) == 0)).await;
    assert_eq!(shards.status().await.unwrap().remove(0).claim, None);
    assert_eq!(name_of(&shards, 7).await.as_deref(), Some("again"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_acknowledged_is_there_when_its_writer_is_killed_before_shared_storage_has_it() {
    let (mut bed, shards, places) = started().await;
    bed.cluster.s3.inject(Fault::Status(503), ALL);
    put(&shards, 7, "on two disks").await.unwrap();
    drop(bed.take_worker(places[0]));
    bed.cluster.s3.clear_faults();
    assert_eq!(name_of(&shards, 7).await.as_deref(), Some("on two disks"));
    put(&shards, 7, "by another one").await.unwrap();
    bed.start_worker(places[0]).await;
    until_asked("the one that is back has nothing on its disk", async || on_disk(&bed, places[0]) == 0).await;
    assert_eq!(name_of(&shards, 7).await.as_deref(), Some("by another one"), "what it had is not written once more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_acknowledged_is_there_when_all_workers_are_killed_and_the_second_one_loses_its_disk() {
    let (mut bed, shards, places) = started().await;
    bed.cluster.s3.inject(Fault::Status(503), ALL);
    put(&shards, 7, "on two disks").await.unwrap();
    places.iter().for_each(|place| drop(bed.take_worker(*place)));
    std::fs::remove_dir_all(claims(&bed, places[1])).unwrap();
    bed.cluster.s3.clear_faults();
    for place in [places[1], places[2]] {
        bed.start_worker(place).await;
    }
    let impatient = shards.clone().with_patience(Duration::from_secs(4));
    let error = impatient.get(&literal(7), None).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Retry | ErrorKind::DataLost), "without the writer nobody knows: {error}");
    bed.start_worker(places[0]).await;
    assert_eq!(name_of(&shards, 7).await.as_deref(), Some("on two disks"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_both_disks_lose_is_said_to_be_lost_until_it_is_given_up() {
    let (mut bed, shards, places) = started().await;
    let before = name_of(&shards, 7).await;
    bed.cluster.s3.inject(Fault::Status(503), ALL);
    put(&shards, 7, "lost").await.unwrap();
    for place in &places[..2] {
        drop(bed.take_worker(*place));
    }
    for place in &places[..2] {
        std::fs::remove_dir_all(claims(&bed, *place)).unwrap();
    }
    bed.cluster.s3.clear_faults();
    for place in &places[..2] {
        bed.start_worker(*place).await;
    }
    let impatient = shards.clone().with_patience(Duration::from_secs(3));
    until_asked("it is said what is lost", async || {
        let error = impatient.get(&literal(7), None).await.unwrap_err();
        error.kind() == ErrorKind::DataLost && error.message().contains("forebay shard forgo")
    })
    .await;
    assert!(put(&impatient, 8, "not written past it").await.is_err());
    let mut took = Duration::ZERO;
    until_asked("it is given up", async || {
        let began = Instant::now();
        let given_up = impatient.forgo().await;
        took = began.elapsed();
        given_up.is_ok_and(|given_up| given_up == [0])
    })
    .await;
    assert!((3_000..4_800).contains(&took.as_millis()), "they are waited for as long as for an answer: {took:?}");
    assert_eq!(name_of(&shards, 7).await, before);
    put(&shards, 7, "after that").await.unwrap();
    assert_eq!(name_of(&shards, 7).await.as_deref(), Some("after that"));
    assert!(shards.forgo().await.unwrap().is_empty(), "nothing else is lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_opened_a_dataset_before_it_had_other_shards_gives_up_what_these_have_lost() {
    let bed = Bed::start(1).await;
    let before = bed.create("orders.shards", 2, vec![0.5]).await;
    let (path_of, scratch) = (path("orders.shards"), bed.folder().join("scratch"));
    let after = reshard(&bed.client, &path_of, ReshardTo::Shards(3), &scratch, |_| {}).await.unwrap();
    let place = LogPlace { folder: "orders.shards".into(), log: after.dataset().log.clone().unwrap(), shard: 2 };
    let number = after.dataset().shards[2].log_from;
    // Two workers that are no longer there.
    let claim = LogClaim { id: 7, writer: WorkerId(0x71), second: WorkerId(0x72), number };
    let claimed = LogObject::Claim(claim).encode(number);
    let object = path(place.key(number).unwrap().as_str());
    bed.client.put(&object, claimed.into(), PutCondition::Absent).await.unwrap();
    assert_eq!(before.with_patience(Duration::from_secs(2)).forgo().await.unwrap(), [2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn merges_and_replacements_take_what_two_disks_have() {
    let (bed, shards, places) = started().await;
    put(&shards, 7, "before the merge").await.unwrap();
    shards.merge_shard(0).await.unwrap();
    assert_eq!(name_of(&shards, 7).await.as_deref(), Some("before the merge"));
    claim(&bed, &shards, &places).await;
    put(&shards, 7, "of the old one").await.unwrap();
    store(&bed.client, &path("orders.shards"), 1, vec![0.5], true, bed.folder()).await.unwrap();
    let error = put(&shards, 7, "too late").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert_eq!(name_of(&shards, 7).await.as_deref(), Some("of the old one"), "its readers go on");
    let after = Shards::open(&bed.client, &path("orders.shards")).await.unwrap();
    assert_eq!(after.orders().ack, Acknowledged::TwoWorkers, "what is ordered holds for the next one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_alone_acknowledges_when_shared_storage_has_the_change() {
    let bed = Bed::start(1).await;
    let shards = bed.create("orders.shards", 1, vec![0.5]).await;
    let shards = shards.order(|orders| orders.ack = Acknowledged::TwoWorkers).await.unwrap();
    for number in 0..5 {
        put(&shards, 7, &format!("name {number}")).await.unwrap();
        assert!(matches!(last(&bed, &shards).await, LogObject::Calls(_)));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(on_disk(&bed, 0), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_is_drained_when_shared_storage_has_what_is_on_its_disk_and_another_one_s() {
    let (bed, shards, places) = started().await;
    bed.cluster.s3.inject(Fault::Status(503), ALL);
    put(&shards, 7, "on two disks").await.unwrap();
    let second = &bed.cluster.node.workers[places[1]];
    bed.client.control(AdminRequest::Drain { worker: second.id(), draining: true }).await.unwrap();
    until_asked("it drains", async || second.report().drain.is_some()).await;
    // It has nothing else, which it has found by then.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(second.report().drain.is_some_and(|drain| !drain.done && drain.bytes > 0));
    bed.cluster.s3.clear_faults();
    until_asked("it is drained", async || second.report().drain.is_some_and(|drain| drain.done)).await;
    assert_eq!(on_disk(&bed, places[1]), 0);
    assert_eq!(name_of(&shards, 7).await.as_deref(), Some("on two disks"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_written_where_a_dataset_was_deleted_whose_log_was_claimed() {
    let (bed, shards, places) = started().await;
    put(&shards, 7, "gone").await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let objects = async || bed.client.list_all(&path("orders.shards/")).await.unwrap();
    until_asked("all is deleted", async || {
        let there = objects().await;
        for info in &there {
            bed.client.delete(&path(info.version.key.as_str())).await.unwrap();
        }
        there.is_empty()
    })
    .await;
    // So long that the claim is seen to be idle.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(objects().await.is_empty());
    assert!(on_disk(&bed, places[0]) <= 1, "what is gone is nothing that is claimed again and again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_a_log_that_is_claimed_takes_nothing_from_it() {
    let (bed, shards, _) = started().await;
    put(&shards, 7, "on two disks").await.unwrap();
    // As somebody copies the folder while the claim is open, without what ends it.
    let mut is_over = false;
    for info in bed.client.list_all(&path("orders.shards/")).await.unwrap() {
        let bytes = bed.client.read(bed.client.operation(), &info.version, 0..info.version.size).await.unwrap();
        if let Some((_, number)) = LogPlace::parse(&info.version.key) {
            is_over |= LogObject::decode(&bytes, number, &shards.columns().schema(), "log").unwrap() == LogObject::Over;
            if is_over {
                continue;
            }
        }
        let name = info.version.key.as_str().strip_prefix("orders.shards/").unwrap();
        bed.client.put(&path(&format!("copy.shards/{name}")), bytes, PutCondition::Any).await.unwrap();
    }
    let copy = Shards::open(&bed.client, &path("copy.shards")).await.unwrap().with_patience(Duration::from_secs(3));
    until_asked("the copy says what it lacks", async || {
        put(&shards, 8, "goes on").await.unwrap();
        let read = copy.get(&literal(7), None).await;
        read.is_err_and(|error| error.kind() == ErrorKind::DataLost && error.message().contains("forebay shard forgo"))
    })
    .await;
    until_asked("it is given up there", async || copy.forgo().await.is_ok_and(|given_up| given_up == [0])).await;
    put(&copy, 7, "another one").await.unwrap();
    put(&shards, 9, "after that").await.unwrap();
    for (key, name) in [(7, "on two disks"), (8, "goes on"), (9, "after that")] {
        assert_eq!(name_of(&shards, key).await.as_deref(), Some(name));
    }
    assert_eq!(name_of(&copy, 7).await.as_deref(), Some("another one"));
}
