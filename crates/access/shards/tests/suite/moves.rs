//! Datasets whose shards give way to others: for many who ask at the same time, beside somebody who replaces them, and put back to before that.

use std::time::Duration;

use bytes::Bytes;
use forebay_client::PutCondition;
use forebay_shard::KeyMap;
use forebay_shard_store::LogObject;
use forebay_shards::{Cut, ReshardTo, Shards, reshard};
use forebay_testbed::until_asked;
use forebay_types::{ErrorKind, ForebayPath};
use futures::future::join_all;

use crate::bed::{Bed, path, store};
use crate::changing::changes::{literal, name_of, put};
use crate::changing::reshard::{Model, NAME, announce, end_log, log_path, open, place};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_does_what_is_left_for_all_who_meet_an_ended_log() {
    let bed = Bed::start(1).await;
    let before = bed.create(NAME, 2, vec![0.5]).await;
    let mut model = Model::of(&bed);
    let announced = announce(&bed, &before, 3, &mut model).await;
    model.compare_all(&announced, "announced").await;
    end_log(&bed, &announced, 0).await;
    let worker = bed.client.view().workers[0].id;
    bed.cluster.s3.set_latency(Duration::from_millis(20));
    bed.cluster.s3.reset_counters();
    let ask = |_| {
        let question = Bytes::from_static(b"{\"count\":null}\n");
        bed.client.shards().ask(worker, announced.id(), 0, question, Duration::from_secs(30))
    };
    for answer in join_all((0..200).map(ask)).await {
        let error = answer.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(error.message().contains("other shards now"), "{error}");
    }
    let gets = bed.cluster.s3.counters().gets;
    assert!(gets < 150, "{gets} requests, of which each asker has none of its own");
    bed.cluster.s3.set_latency(Duration::ZERO);
    model.compare_all(&before, "moved").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_of_a_dataset_that_somebody_began_to_replace_are_left_to_who_replaces_it() {
    let bed = Bed::start(1).await;
    let before = bed.create(NAME, 2, vec![0.5]).await;
    let cut = Cut::of(&before, KeyMap::Hash(3), &bed.folder().join("scratch"), |_| {}).await.unwrap();
    cut.announce().await.unwrap();
    let announced = open(&bed).await;
    let (log, cuts) = (announced.dataset().log.clone().unwrap(), announced.dataset().next.clone().unwrap().cuts);
    // Who replaces it is killed before he comes to the other shard; nothing was changed since the cut.
    let sealed = Bytes::from(LogObject::Sealed.encode(cuts[0]));
    bed.client.put(&log_path(&place(&log, 0), cuts[0]), sealed, PutCondition::Absent).await.unwrap();
    let error = announced.merge_shard(0).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    for (shard, number) in [(0, cuts[0] + 1), (1, cuts[1])] {
        let found = bed.client.open(&log_path(&place(&log, shard), number)).await;
        assert_eq!(found.err().map(|error| error.kind()), Some(ErrorKind::NotFound), "shard {shard}");
    }
    store(&bed.client, &path(NAME), 2, vec![0.5], true, bed.folder()).await.unwrap();
    Model::of(&bed).compare_all(&open(&bed).await, "replaced").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dataset_that_is_put_back_to_before_it_had_other_shards_is_asked_and_changed() {
    let bed = Bed::start(2).await;
    let first = bed.create(NAME, 2, vec![0.5]).await;
    put(&first, 5, "before").await.unwrap();
    let folder = path(&format!("{NAME}/"));
    let at = |key| ForebayPath::new(folder.mount().clone(), key);
    let mut copy = Vec::new();
    for object in bed.client.list_all(&folder).await.unwrap() {
        let version = object.version;
        let bytes = bed.client.read(bed.client.operation(), &version, 0..version.size).await.unwrap();
        copy.push((at(version.key), bytes));
    }
    let scratch = bed.folder().join("scratch");
    let resharded = reshard(&bed.client, &path(NAME), ReshardTo::Shards(3), &scratch, |_| {}).await.unwrap();
    put(&resharded, 5, "after").await.unwrap();
    assert_eq!(name_of(&first, 5).await.as_deref(), Some("after"), "who had it open is led on");
    for object in bed.client.list_all(&folder).await.unwrap() {
        bed.client.delete(&at(object.version.key)).await.unwrap();
    }
    for (object, bytes) in copy {
        bed.client.put(&object, bytes, PutCondition::Any).await.unwrap();
    }
    let is_back = async || {
        let Ok(now) = Shards::open(&bed.client, &path(NAME)).await else { return false };
        now.get(&literal(5), None).await.is_ok_and(|record| record.is_some_and(|record| record["name"] == "before"))
    };
    until_asked("the dataset is answered as it is", is_back).await;
    let now = open(&bed).await;
    assert_eq!(now.dataset().shards.len(), 2);
    put(&now, 5, "again").await.unwrap();
    assert_eq!(name_of(&now, 5).await.as_deref(), Some("again"));
}
