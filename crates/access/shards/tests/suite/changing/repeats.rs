//! Changes that are asked for again when what they were made by is in the shard's files already.

use std::time::Duration;

use bytes::Bytes;
use forebay_demo::Fault;
use forebay_shard_store::ChangeIf;
use forebay_shards::Shards;
use forebay_types::{ErrorKind, Result, WorkerId};
use serde_json::json;

use super::changes::{literal, record, record_at};
use crate::bed::{Bed, path};

const NAME: &str = "orders.shards";

/// Asks a worker for a call, again where it is said what was there before it was asked for first.
async fn ask(shards: &Shards, worker: WorkerId, call: (u128, Option<u64>), name: &str) -> Result<u64> {
    let change = Bytes::from(json!({"put": record(1, name)}).to_string());
    shards.client().shards().change(worker, shards.id(), 0, call, change, Duration::from_secs(20)).await
}

async fn open(bed: &Bed) -> Shards {
    Shards::open(&bed.client, &path(NAME)).await.unwrap()
}

/// What was changed is merged, and no worker knows any more what it has read before.
async fn merge_and_forget(bed: &mut Bed) {
    open(bed).await.merge_shard(0).await.unwrap();
    for place in 0..2 {
        bed.take_worker(place).shutdown().await;
        bed.start_worker(place).await;
    }
}

async fn name_now(bed: &Bed) -> String {
    open(bed).await.get(&literal(1), None).await.unwrap().unwrap()["name"].as_str().unwrap().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_for_again_after_a_merge_is_made_once_or_refused() {
    let mut bed = Bed::start(2).await;
    let shards = bed.create(NAME, 1, vec![0.5, 0.5]).await;
    let workers: Vec<WorkerId> = bed.client.view().workers.iter().map(|worker| worker.id).collect();
    let made = ask(&shards, workers[0], (7, None), "first").await.unwrap();
    shards.put(&record(1, "second"), ChangeIf::Always).await.unwrap();
    merge_and_forget(&mut bed).await;
    let merged = open(&bed).await;
    assert_eq!(record_at(&bed.client, &merged, workers[0], 1).await.unwrap().as_deref(), Some("second"));
    bed.cluster.s3.inject(Fault::Crc32c(1), 100);
    let later = ask(&merged, workers[0], (7, Some(made - 1)), "first").await.unwrap_err();
    bed.cluster.s3.clear_faults();
    assert!(later.kind() == ErrorKind::Retry && !later.is_here_alone(), "shared storage may say it later: {later}");
    for worker in &workers {
        let again = ask(&merged, *worker, (7, Some(made - 1)), "first").await.unwrap();
        assert_eq!(again, made, "it is found in what was merged");
    }
    assert_eq!(name_now(&bed).await, "second", "what somebody else wrote since stays");
    // More objects than anyone looks through.
    for number in 0..70 {
        open(&bed).await.put(&record(1, &format!("write {number}")), ChangeIf::Always).await.unwrap();
    }
    merge_and_forget(&mut bed).await;
    for worker in &workers {
        let refused = ask(&open(&bed).await, *worker, (7, Some(made - 1)), "first").await.unwrap_err();
        assert!(refused.kind() == ErrorKind::Retry && refused.is_here_alone(), "{refused}");
        assert!(refused.message().contains("the change may be made"), "{refused}");
    }
    assert_eq!(name_now(&bed).await, "write 69");
    assert!(ask(&open(&bed).await, workers[0], (8, None), "third").await.is_ok(), "who asks first is not refused");
    assert_eq!(name_now(&bed).await, "third");
}
