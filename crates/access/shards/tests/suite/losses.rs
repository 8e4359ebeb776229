//! Workers that go away and come back, while questions are asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_shard_store::Literal;
use forebay_shards::ShardStatus;
use serde_json::json;

use crate::answers::compare;
use crate::bed::Bed;

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
