//! Changes that other replicas hear with what they are: shared storage is not asked for them.

use forebay_client::Client;
use forebay_demo::Fault;
use forebay_shards::Shards;
use forebay_testbed::until_asked;
use forebay_types::{ErrorKind, Result};
use serde_json::{Value as Json, json};

use super::changes::{answer_at, put, record};
use crate::bed::Bed;

/// How many records each worker counts that have a name. A search waits for no change that is only on its way.
async fn counts(client: &Client, shards: &Shards, name: &str) -> Vec<Result<Option<u64>>> {
    let mut counts = Vec::new();
    for worker in client.view().workers.iter().map(|worker| worker.id) {
        let question = json!({"count": {"attr": "name", "eq": name}});
        counts.push(answer_at(client, shards, worker, 7, question).await.map(|answer| answer["ok"].as_u64()));
    }
    counts
}

async fn counted(client: &Client, shards: &Shards, name: &str) -> Vec<Option<u64>> {
    counts(client, shards, name).await.into_iter().map(Result::unwrap).collect()
}

/// More than comes with a word.
fn much() -> Vec<Json> {
    (0..200).map(long).collect()
}

fn long(key: i64) -> Json {
    let note = "a line that is long enough to make it much ".repeat(50);
    json!({"put": {"id": key, "name": "much", "note": format!("{key} {note}")}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_changed_little_is_at_all_replicas_without_a_request_to_shared_storage() {
    let bed = Bed::start(3).await;
    let shards = bed.create("orders.shards", 1, vec![0.5, 0.5, 0.5]).await;
    let mut round = 0;
    // All have looked into the log once, and none was told since that it may have missed something.
    until_asked("changes go from worker to worker", async || {
        let before = format!("round {round}");
        put(&shards, 7, &before).await.unwrap();
        assert_eq!(counted(&bed.client, &shards, &before).await, [Some(1); 3]);
        bed.cluster.s3.reset_counters();
        for step in 0..5 {
            let name = format!("round {round} step {step}");
            put(&shards, 7, &name).await.unwrap();
            assert_eq!(counted(&bed.client, &shards, &name).await, [Some(1); 3]);
        }
        round += 1;
        let asked = bed.cluster.s3.counters();
        (asked.gets, asked.puts) == (0, 5)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_large_for_that_is_read_by_each_replica() {
    let bed = Bed::start(3).await;
    let shards = bed.create("orders.shards", 1, vec![0.5, 0.5, 0.5]).await;
    put(&shards, 7, "little").await.unwrap();
    assert_eq!(counted(&bed.client, &shards, "little").await, [Some(1); 3]);
    bed.cluster.s3.reset_counters();
    shards.change(&much()).await.unwrap();
    assert_eq!(counted(&bed.client, &shards, "much").await, [Some(200); 3]);
    assert!(bed.cluster.s3.counters().gets >= 2, "by those two that have not written it");
    // What comes behind it is of no use before that.
    shards.change(&[json!({"put": record(7, "behind")}), long(8)]).await.unwrap();
    assert_eq!(counted(&bed.client, &shards, "behind").await, [Some(1); 3]);
}

/// It says nothing of what was written, so nothing is decided by it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_of_a_log_that_is_not_what_the_store_says_of_it_is_asked_for_again() {
    let bed = Bed::start(2).await;
    let shards = bed.create("orders.shards", 1, vec![0.5, 0.5]).await;
    put(&shards, 7, "little").await.unwrap();
    assert_eq!(counted(&bed.client, &shards, "little").await, [Some(1); 2]);
    shards.change(&much()).await.unwrap();
    bed.cluster.s3.inject(Fault::Crc32c(1), 20);
    let counts = counts(&bed.client, &shards, "much").await;
    bed.cluster.s3.clear_faults();
    let refused: Vec<_> = counts.iter().filter_map(|count| count.as_ref().err()).collect();
    assert!(refused.len() == 1 && refused[0].kind() == ErrorKind::Retry, "by the one that has not written it: {counts:?}");
    assert!(refused[0].message().contains("x-amz-checksum-crc32c"), "{counts:?}");
    assert_eq!(counted(&bed.client, &shards, "much").await, [Some(200); 2]);
}
