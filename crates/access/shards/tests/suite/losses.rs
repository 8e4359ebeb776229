//! Workers that go away and come back, while questions are asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_client::WantedRecords;
use forebay_placement::rank;
use forebay_shard::Key;
use forebay_shard_store::{Literal, write_keys};
use forebay_shards::{ReplicaStatus, ShardStatus, Shards};
use forebay_types::{RouteKey, WorkerId};
use serde_json::json;

use crate::answers::compare;
use crate::bed::{Bed, RECORDS};
use crate::changing::changes::answer_at;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_are_killed_cost_no_answer() {
    let mut bed = Bed::start(3).await;
    let shards = bed.create("orders.shards", 3, vec![0.5, 0.5]).await;
    let reference = Arc::new(bed.reference());
    compare(&shards, &reference).await;
    let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let askers: Vec<_> = (0..4)
        .map(|asker: i64| {
            let (shards, reference, stop, asked) =
                (shards.clone(), Arc::clone(&reference), Arc::clone(&stop), Arc::clone(&asked));
            tokio::spawn(async move {
                for number in 0.. {
                    if stop.load(Relaxed) {
                        break;
                    }
                    let key = Literal::from_json(&json!((number * 37 + asker * 11) % 2000)).unwrap();
                    let wanted = reference.get_json(&reference.records().unwrap().key_of(&key).unwrap(), None).unwrap();
                    assert_eq!(shards.get(&key, None).await.unwrap(), wanted);
                    asked.fetch_add(1, Relaxed);
                }
            })
        })
        .collect();
    for place in [0, 1, 2] {
        let before = asked.load(Relaxed);
        drop(bed.take_worker(place));
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(asked.load(Relaxed) > before, "answers go on");
        bed.start_worker(place).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    stop.store(true, Relaxed);
    for asker in askers {
        asker.await.unwrap();
    }
    compare(&shards, &reference).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_lost_worker_held_is_brought_by_who_holds_it_now_before_anybody_asks() {
    let mut bed = Bed::start(4).await;
    let shards = bed.create("orders.shards", 6, vec![0.5, 0.5]).await;
    // Two that hold each shard: both are asked once their first answers have told how long they take.
    let is_whole = async || {
        let status = shards.status().await.unwrap();
        let here =
            |shard: &ShardStatus| shard.replicas.iter().filter(|replica| replica.bytes.is_some_and(|bytes| bytes > 0)).count();
        status.iter().all(|shard| here(shard) >= 2)
    };
    let began = Instant::now();
    while !is_whole().await {
        assert!(began.elapsed() < Duration::from_secs(60), "the replicas do not come");
        futures::future::join_all((0..200).map(|key| shards.count_shard(key % 6, None))).await;
    }
    drop(bed.take_worker(1));
    let began = Instant::now();
    // Until it is in no view any more, its replicas are told of by nobody.
    tokio::time::sleep(Duration::from_millis(500)).await;
    bed.client.refresh_view().await.unwrap();
    while bed.client.view().workers.len() == 4 || !is_whole().await {
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", shards.status().await);
        bed.client.refresh_view().await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    compare(&shards, &Arc::new(bed.reference())).await;
}

/// A dataset of one shard that two workers hold, with their layers, and the workers in the order in which they hold it.
pub async fn held_by_two(bed: &Bed) -> (Shards, Vec<WorkerId>) {
    let shards = bed.create("orders.shards", 1, vec![0.5, 0.5]).await;
    let workers: Vec<WorkerId> = bed.client.view().workers.iter().map(|worker| worker.id).collect();
    let order = rank(RouteKey::of(shards.id().mount, &shards.id().folder, 0), &workers);
    for worker in &order[..2] {
        let counted = answer_at(&bed.client, &shards, *worker, 0, json!({"count": null})).await.unwrap();
        assert_eq!(counted["ok"], RECORDS);
        comes_to(bed, &shards, *worker, |replica| !replica.is_changing && replica.now.is_some_and(|now| now > 0.4)).await;
    }
    (shards, order)
}

pub async fn comes_to(bed: &Bed, shards: &Shards, worker: WorkerId, is_so: impl Fn(&ReplicaStatus) -> bool) {
    let began = Instant::now();
    loop {
        bed.client.refresh_view().await.unwrap();
        let status = shards.status().await.unwrap();
        let replica = status[0].replicas.iter().find(|replica| replica.worker == worker.to_string());
        if replica.is_some_and(|replica| replica.bytes.is_some_and(|bytes| bytes > 0) && is_so(replica)) {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{worker}: {status:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn place_of(bed: &Bed, worker: WorkerId) -> usize {
    bed.cluster.place_of(worker)
}

/// What a worker says of some records is what the reference has.
async fn answers_right(bed: &Bed, shards: &Shards, worker: WorkerId) {
    let reference = bed.reference();
    for key in [0i64, 7, 1234] {
        let answer = answer_at(&bed.client, shards, worker, key, json!({"get": key})).await.unwrap();
        let wanted = reference.get_json(&Key::U64(key as u64), None).unwrap();
        assert!(wanted.is_some());
        assert_eq!(answer["ok"], json!(wanted), "{key}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_replica_is_copied_from_a_worker_that_has_one_and_not_from_shared_storage() {
    let mut bed = Bed::start(3).await;
    let (shards, order) = held_by_two(&bed).await;
    let stored = shards.status().await.unwrap()[0].stored_bytes;
    let place = place_of(&bed, order[0]);
    bed.cluster.s3.reset_counters();
    drop(bed.take_worker(place));
    comes_to(&bed, &shards, order[2], |_| true).await;
    let sent = bed.cluster.s3.counters().bytes_out;
    assert!(sent < stored / 2, "{sent} bytes of shared storage for a shard of {stored}");
    answers_right(&bed, &shards, order[2]).await;
    comes_to(&bed, &shards, order[2], |replica| replica.now.is_some_and(|now| now > 0.4)).await;
    compare(&shards, &bed.reference()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_knows_what_the_shard_was_asked_elsewhere() {
    let mut bed = Bed::start(3).await;
    let (shards, order) = held_by_two(&bed).await;
    let (keys, mut bytes) = ((0..2000u64).map(Key::U64).collect::<Vec<_>>(), Vec::new());
    write_keys(keys.iter(), &mut bytes);
    let of = WantedRecords { dataset: shards.id(), shard: 0, attributes: &[1], versioned: false };
    bed.client.shards().records(order[1], &of, bytes.into(), Duration::from_secs(20)).await.unwrap();
    let place = place_of(&bed, order[0]);
    drop(bed.take_worker(place));
    comes_to(&bed, &shards, order[2], |_| true).await;
    let kept = bed.folder().join(format!("worker{}/tiers/shards", place_of(&bed, order[2])));
    let shard = std::fs::read_dir(kept).unwrap().next().unwrap().unwrap().path();
    let counters = std::fs::read_to_string(shard.join("counters")).unwrap();
    let counters: serde_json::Value = serde_json::from_str(counters.split_once('\n').unwrap().1).unwrap();
    let asked = counters["columns"][1].as_f64().unwrap();
    assert!((900.0..=1000.0).contains(&asked), "of a thousand questions nearly all were for that column: {counters}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_does_not_verify_is_not_served_but_fetched_from_shared_storage() {
    let mut bed = Bed::start(3).await;
    let (shards, order) = held_by_two(&bed).await;
    let stored = shards.status().await.unwrap()[0].stored_bytes;
    let kept = bed.folder().join(format!("worker{}/tiers/shards", place_of(&bed, order[1])));
    let shard = std::fs::read_dir(kept).unwrap().next().unwrap().unwrap().path();
    let files = std::fs::read_dir(shard).unwrap().map(|file| file.unwrap().path());
    let base = files.max_by_key(|file| file.metadata().unwrap().len()).unwrap();
    let mut bytes = std::fs::read(&base).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    // Under the same name: the worker goes on with the file that it has mapped.
    let other = base.with_extension("other");
    std::fs::write(&other, bytes).unwrap();
    std::fs::rename(&other, &base).unwrap();
    let place = place_of(&bed, order[0]);
    bed.cluster.s3.reset_counters();
    drop(bed.take_worker(place));
    comes_to(&bed, &shards, order[2], |_| true).await;
    let sent = bed.cluster.s3.counters().bytes_out;
    assert!(sent > stored / 2, "{sent} bytes of shared storage for a shard of {stored}");
    answers_right(&bed, &shards, order[2]).await;
}
