//! Objects that no manifest names any more are deleted in time, and nothing else is, whoever is killed meanwhile.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use forebay_shard_store::ChangeIf;
use forebay_shards::{ReshardTo, Shards, create, reshard};
use forebay_testbed::until_asked;
use serde_json::json;

use crate::bed::{Bed, RECORDS, columns, path};
use crate::changing::changes::{literal, record};
use crate::changing::refresh::{followed, refresh, store};

/// Old enough to be deleted.
const AFTER: Duration = Duration::from_secs(3);

async fn objects(bed: &Bed, dataset: &str) -> BTreeSet<String> {
    let listed = bed.client.list_all(&path(&format!("{dataset}/data/"))).await.unwrap();
    let name = |key: &str| key.rsplit('/').next().unwrap().to_string();
    listed.iter().map(|info| name(info.version.key.as_str())).collect()
}

fn named(shards: &Shards) -> BTreeSet<String> {
    shards.dataset().shards.iter().flat_map(|shard| shard.objects()).map(str::to_string).collect()
}

async fn open(bed: &Bed) -> Shards {
    Shards::open(&bed.client, &path("orders.shards")).await.unwrap()
}

/// Changes a record of each shard, and merges them.
async fn merge(shards: &Shards, round: i64) {
    for key in 0..20 {
        shards.put(&record(key, &format!("round {round}")), ChangeIf::Always).await.unwrap();
    }
    for shard in 0..shards.dataset().shards.len() {
        shards.merge_shard(shard).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_merges_replaced_is_deleted_and_what_somebody_stores_stays() {
    let bed = Bed::start_collecting(2, AFTER).await;
    let before = bed.create("orders.shards", 2, vec![0.5]).await;
    merge(&before, 0).await;
    let between = named(&open(&bed).await);
    assert!(objects(&bed, "orders.shards").await.is_superset(&named(&before)), "young objects stay");
    // Somebody stores a shard that no manifest names yet.
    let mut creating = create(&bed.client, &path("orders.shards"), columns(), vec![0.5], true).await.unwrap();
    tokio::time::sleep(AFTER + Duration::from_secs(2)).await;
    creating.push(&bed.folder().join("part0of2"), |_| {}).await.unwrap();
    let young: BTreeSet<String> =
        objects(&bed, "orders.shards").await.difference(&between.union(&named(&before)).cloned().collect()).cloned().collect();
    assert!(!young.is_empty());
    let began = Instant::now();
    let mut round = 1;
    while !objects(&bed, "orders.shards").await.is_disjoint(&named(&before)) {
        merge(&open(&bed).await, round).await;
        round += 1;
        assert!(began.elapsed() < Duration::from_secs(60), "the objects of the first manifest are there still");
        if began.elapsed() < AFTER / 2 {
            assert!(objects(&bed, "orders.shards").await.is_superset(&young), "what is young stays");
        }
    }
    let now = open(&bed).await;
    assert!(objects(&bed, "orders.shards").await.is_superset(&named(&now)), "what is named stays");
    assert_eq!(now.count(None).await.unwrap(), RECORDS as u64);
    // Who has the first manifest open is answered from the last one.
    let name = json!(format!("round {}", round - 1));
    assert_eq!(before.get(&literal(7), None).await.unwrap().unwrap()["name"], name);
}

/// Shards that a worker has files of.
fn on_disk(bed: &Bed, place: usize) -> usize {
    let listed = std::fs::read_dir(bed.folder().join(format!("worker{place}/tiers/shards"))).unwrap();
    // Named by a hash, and nothing behind it.
    listed.filter(|entry| entry.as_ref().unwrap().file_name().len() == 32).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_from_before_a_merge_leave_the_workers_that_have_those_behind_it() {
    let bed = Bed::start(2).await;
    let before = bed.create("orders.shards", 2, vec![0.5, 0.5]).await;
    assert_eq!(before.bring().await, (4, 4));
    for round in 0..3 {
        merge(&before, round).await;
    }
    let are_gone = async || (0..2).all(|place| on_disk(&bed, place) == 2);
    until_asked("each has the files of the last merge alone", are_gone).await;
    let states = before.status().await.unwrap();
    assert!(states.iter().flat_map(|shard| &shard.replicas).all(|replica| replica.bytes.is_some()), "{states:?}");
    assert_eq!(before.count(None).await.unwrap(), RECORDS as u64);
    assert_eq!(before.get(&literal(7), None).await.unwrap().unwrap()["name"], json!("round 2"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_shards_that_gave_way_to_others_leave_the_workers() {
    let bed = Bed::start(2).await;
    // Their bases alone: no layers are made meanwhile.
    let before = bed.create("orders.shards", 2, vec![0.01, 0.01]).await;
    assert_eq!(before.bring().await, (4, 4));
    let scratch = bed.folder().join("scratch");
    reshard(&bed.client, &path("orders.shards"), ReshardTo::Shards(3), &scratch, |_| {}).await.unwrap();
    let are_gone = async || (0..2).all(|place| on_disk(&bed, place) == 3);
    until_asked("each has the files of the new shards alone", are_gone).await;
    assert_eq!(before.count(None).await.unwrap(), RECORDS as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_what_a_dataset_follows_stay_as_long_as_it_does_and_no_longer() {
    let bed = Bed::start_collecting(1, AFTER).await;
    followed(&bed).await;
    let keys = async || -> BTreeSet<String> {
        let named = named(&open(&bed).await);
        objects(&bed, "orders.shards").await.difference(&named).cloned().collect()
    };
    assert!(keys().await.is_empty());
    store(&bed, "a.txt", "100001,a1\n100002,a2").await;
    refresh(&bed).await;
    let first = keys().await;
    store(&bed, "a.txt", "100001,a1\n100003,a3").await;
    refresh(&bed).await;
    let last: BTreeSet<String> = keys().await.difference(&first).cloned().collect();
    assert_eq!((first.len(), last.len()), (1, 1));
    let began = Instant::now();
    let mut round = 0;
    // The last ones are old too by then.
    while began.elapsed() < 2 * AFTER || !objects(&bed, "orders.shards").await.is_disjoint(&first) {
        merge(&open(&bed).await, round).await;
        round += 1;
        assert!(began.elapsed() < Duration::from_secs(60), "the keys of the first version are there still");
    }
    assert!(objects(&bed, "orders.shards").await.is_superset(&last), "what is named stays");
    store(&bed, "a.txt", "100001,a1").await;
    assert_eq!(refresh(&bed).await.changes, 2, "a put, and a delete of what only the keys tell of");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_are_killed_while_they_delete_lose_nothing_that_is_named() {
    let after = Duration::from_millis(1500);
    let mut bed = Bed::start_collecting(2, after).await;
    let first = bed.create("orders.shards", 2, vec![0.5, 0.5]).await;
    let mut was_deleted = false;
    for round in 0..12 {
        let shards = open(&bed).await;
        // Of a worker that is killed between, somebody else merges.
        let merging = shards.clone();
        let merges = tokio::spawn(async move {
            merging.put(&record(round, "before the kill"), ChangeIf::Always).await.unwrap();
            let hasty = merging.with_patience(Duration::from_secs(10));
            for shard in 0..2 {
                let _ = hasty.merge_shard(shard).await;
            }
        });
        tokio::time::sleep(Duration::from_millis(100 + 90 * round as u64)).await;
        let place = round as usize % 2;
        drop(bed.take_worker(place));
        bed.start_worker(place).await;
        merges.await.unwrap();
        let now = open(&bed).await;
        assert!(objects(&bed, "orders.shards").await.is_superset(&named(&now)), "round {round}");
        assert_eq!(now.get(&literal(round), None).await.unwrap().unwrap()["name"], "before the kill");
        was_deleted |= objects(&bed, "orders.shards").await.is_disjoint(&named(&first));
    }
    assert!(was_deleted, "the objects of the first manifest are there still");
    assert_eq!(open(&bed).await.count(None).await.unwrap(), RECORDS as u64);
}
