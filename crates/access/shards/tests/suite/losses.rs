//! Workers that go away and come back, while questions are asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use forebay_shard_store::Literal;
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
        drop(bed.workers[place].take());
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
