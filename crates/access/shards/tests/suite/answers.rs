//! Answers are those that one shard with all records gives.

use std::time::Duration;

use bytes::Bytes;
use forebay_client::PutCondition;
use forebay_shard::Key;
use forebay_shard_store::{ChangeIf, Condition, Literal, Store};
use forebay_shards::{OpenShards, Shards};
use forebay_types::{ErrorKind, ForebayPath};
use serde_json::{Value as Json, json};

use crate::bed::{Bed, RECORDS, path, store};
use crate::changing::changes::{literal, put, record};

fn conditions() -> Vec<Json> {
    vec![
        json!({"attr": "name", "eq": "clerk031"}),
        json!({"attr": "name", "eq": "nobody"}),
        json!({"attr": "name", "prefix": "clerk09"}),
        json!({"attr": "note", "contains": "autumn of 11"}),
        json!({"attr": "note", "regex": "line [0-9]*7 (spring|winter)"}),
        json!({"attr": "name", "from": "clerk010", "to": "clerk012"}),
        json!({"and": [{"attr": "name", "prefix": "clerk0"}, {"attr": "note", "contains": "summer"}]}),
        json!({"attr": "name", "in": ["clerk031", "clerk032", "nobody"]}),
        json!({"attr": "note", "suffix": "of 17"}),
        json!({"attr": "note", "contains": "AUTUMN of 11", "ignore_case": true}),
        json!({"or": [{"attr": "name", "eq": "clerk031"}, {"attr": "note", "suffix": "7"}]}),
        json!({"not": {"or": [{"attr": "name", "prefix": "clerk0"}, {"attr": "note", "contains": "summer"}]}}),
        json!({"and": [{"attr": "name", "prefix": "clerk01"}, {"not": {"attr": "note", "regex": "(spring|winter)"}}]}),
    ]
}

pub async fn compare(shards: &Shards, reference: &Store) {
    for condition in conditions() {
        let parsed = Condition::from_json(&condition).unwrap();
        let all = reference.search(&parsed, None, None).unwrap();
        assert_eq!(shards.search(&condition, None, None).await.unwrap(), all, "{condition}");
        assert_eq!(shards.count(Some(&condition)).await.unwrap(), all.len() as u64, "{condition}");
        for (after, limit) in [(None, 3), (all.get(1), 2), (all.last(), 5)] {
            let page = reference.search(&parsed, after, Some(limit)).unwrap();
            assert_eq!(shards.search(&condition, after, Some(limit)).await.unwrap(), page, "{condition} {after:?} {limit}");
        }
    }
    let columns = ["note".to_string(), "id".to_string()];
    for number in (-RECORDS..RECORDS).step_by(173) {
        let key = Literal::from_json(&json!(number)).unwrap();
        let here = reference.records().unwrap().key_of(&key).unwrap();
        assert_eq!(shards.get(&key, None).await.unwrap(), reference.get_json(&here, None).unwrap(), "{number}");
        let few = reference.get_json(&here, Some(&columns)).unwrap();
        assert_eq!(shards.get(&key, Some(&columns)).await.unwrap(), few, "{number}");
    }
    assert_eq!(shards.count(None).await.unwrap(), RECORDS as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dataset_stays_open_until_it_has_another_manifest() {
    let bed = Bed::start(1).await;
    bed.create("kept.shards", 2, vec![0.9]).await;
    let (open, kept) = (OpenShards::default(), path("kept.shards"));
    let first = open.open(&bed.client, &kept).await.unwrap();
    let again = open.open(&bed.client, &kept).await.unwrap();
    assert!(std::ptr::eq(first.dataset(), again.dataset()), "its manifest is not read again");
    first.order(|orders| orders.frozen = true).await.unwrap();
    let later = open.open(&bed.client, &kept).await.unwrap();
    assert!(later.manifest() > first.manifest() && later.dataset().orders.frozen, "{}", later.manifest());
    compare(&later, &bed.reference()).await;
    let none = open.open(&bed.client, &path("none.shards")).await.err().unwrap();
    assert!(none.kind() == ErrorKind::NotFound && none.message().contains("forebay shard create"), "{none}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dataset_is_looked_for_once_a_second_by_who_may() {
    let bed = Bed::start(1).await;
    bed.create("kept.shards", 1, vec![0.9]).await;
    let (open, kept) = (OpenShards::default(), path("kept.shards"));
    let first = open.open_lately(&bed.client, &kept).await.unwrap();
    let began = forebay_runtime::now();
    bed.cluster.s3.reset_counters();
    for _ in 0..100 {
        let again = open.open_lately(&bed.client, &kept).await.unwrap();
        assert!(std::ptr::eq(first.dataset(), again.dataset()));
    }
    let (lists, seconds) = (bed.cluster.s3.counters().lists, began.elapsed().as_secs());
    assert!(lists <= seconds + 10, "{lists} looks in {seconds} s");
    first.order(|orders| orders.frozen = true).await.unwrap();
    let ordered = forebay_runtime::now();
    while open.open_lately(&bed.client, &kept).await.unwrap().manifest() == first.manifest() {
        assert!(ordered.elapsed().as_secs() < 10, "the next manifest is not seen");
        forebay_runtime::time::sleep(Duration::from_millis(50)).await;
    }
    // Who looks each time has others see what he saw.
    let seen = open.open(&bed.client, &kept).await.unwrap();
    assert_eq!(open.open_lately(&bed.client, &kept).await.unwrap().manifest(), seen.manifest());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_many_shards_are_those_of_one() {
    let bed = Bed::start(3).await;
    let shards = bed.create("orders.shards", 4, vec![0.9, 0.5]).await;
    compare(&shards, &bed.reference()).await;
    let keys: Vec<Key> = (-800i64..400).rev().map(|key| Key::U64(key as u64)).collect();
    let records = shards.get_many(&keys, Some(&["id".into()])).await.unwrap();
    for (key, record) in (-800..400).rev().zip(records) {
        assert_eq!(record, (key >= -RECORDS / 4).then(|| json!({"id": key})), "in the order of the keys");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_changed_since_it_was_found_is_left_out() {
    let bed = Bed::start(1).await;
    let shards = bed.create("orders.shards", 2, vec![0.5]).await;
    let condition = json!({"attr": "name", "eq": "clerk031"});
    // The column that is tested need not be among those that are read.
    let columns = ["id".to_string(), "note".to_string()];
    let keys = shards.search(&condition, None, None).await.unwrap();
    let (count, all) = shards.get_found(&keys, &condition, &columns).await.unwrap();
    assert_eq!(count, keys.len());
    let read = shards.get_many(&keys, Some(&columns)).await.unwrap();
    assert_eq!(all, read.into_iter().flatten().collect::<Vec<_>>());
    assert!(all.len() > 2);
    let changed = json!({"put": {"id": all[0]["id"], "name": "somebody else"}});
    let deleted = json!({"delete": all[1]["id"]});
    shards.change(&[changed, deleted]).await.unwrap();
    assert_eq!(shards.get_found(&keys, &condition, &columns).await.unwrap().1, all[2..]);
    let (_, any) = shards.get_found(&keys, &json!({"and": []}), &columns).await.unwrap();
    assert_eq!(any.len(), all.len() - 1, "all but the deleted one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_operations_are_answered_as_for_a_file() {
    let bed = Bed::start(1).await;
    let shards = bed.create("orders.shards", 2, vec![0.5]).await;
    let reference = bed.folder().join("reference");
    drop(bed.reference());
    let mut file = forebay_shard_store::Batch::open(&reference).unwrap();
    for operation in [
        r#"{"get": 5}"#,
        r#"{"get": -700, "columns": ["note"]}"#,
        r#"{"get": 99999}"#,
        r#"{"search": {"attr": "name", "eq": "clerk031"}, "limit": 4}"#,
        r#"{"search": {"attr": "name", "eq": "clerk031"}, "limit": 4, "after": 100}"#,
        r#"{"count": {"attr": "note", "contains": "winter"}}"#,
        r#"{"count": null}"#,
    ] {
        assert_eq!(shards.answer(operation.as_bytes()).await, file.answer(operation.as_bytes()), "{operation}");
    }
    for operation in
        [r#"{"put": {"id": 5, "name": "x"}}"#, r#"{"get": 5}"#, r#"{"delete": 6}"#, r#"{"get": 6}"#, r#"{"count": null}"#]
    {
        assert_eq!(shards.answer(operation.as_bytes()).await, file.answer(operation.as_bytes()), "{operation}");
    }
    let versioned = shards.answer(br#"{"put": {"id": 5, "name": "y"}, "versioned": true}"#).await;
    assert_eq!(shards.answer(br#"{"get": 5, "versioned": true}"#).await["version"], versioned["version"]);
    for wrong in [
        r#"{"get": 5, "limit": 1}"#,
        r#"{"get": "text"}"#,
        r#"{"get": 5, "columns": ["nothing"]}"#,
        r#"{"search": {"attr": "nothing", "eq": "x"}}"#,
        r#"{"search": {"attr": "note", "regex": "("}}"#,
        r#"{"search": {"or": [{"attr": "name", "eq": "x"}, {"attr": "nothing", "eq": "x"}]}}"#,
        r#"{"count": {"not": []}}"#,
        r#"{"put": {"name": "no key"}}"#,
        r#"{"put": {"id": 1}, "get": 1}"#,
        r#"{"get": 5, "columns": ["note"], "versioned": true}"#,
        "[1]",
        "nothing",
    ] {
        assert_eq!(shards.answer(wrong.as_bytes()).await["error"], "invalid", "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dataset_is_replaced_as_a_whole() {
    let bed = Bed::start(2).await;
    let before = bed.create("orders.shards", 2, vec![0.5]).await;
    // An object of a folder within is none of its manifests.
    let within: ForebayPath = format!("{}/manifest-copy/manifest-0000000009", path("orders.shards")).parse().unwrap();
    bed.client.put(&within, Bytes::from_static(b"of somebody else"), PutCondition::Any).await.unwrap();
    let again = store(&bed.client, &path("orders.shards"), 3, vec![0.5], false, bed.folder()).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Conflict);
    assert_eq!(store(&bed.client, &path("orders.shards"), 3, vec![0.5], true, bed.folder()).await.unwrap(), 2);
    let after = Shards::open(&bed.client, &path("orders.shards")).await.unwrap();
    assert_eq!((before.manifest(), after.manifest(), after.dataset().shards.len()), (1, 2, 3));
    for shards in [&before, &after] {
        assert_eq!(shards.count(None).await.unwrap(), RECORDS as u64, "who has it open goes on");
    }
    let none = Shards::open(&bed.client, &path("nothing.shards")).await.err().unwrap();
    assert_eq!(none.kind(), ErrorKind::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_read_of_a_dataset_that_is_replaced_is_no_version_of_the_next_one() {
    let bed = Bed::start(1).await;
    let before = bed.create("orders.shards", 2, vec![0.5]).await;
    put(&before, 5, "changed").await.unwrap();
    // One that was changed, and one that is as it was made.
    let mut read = Vec::new();
    for key in [5, 6] {
        read.push((key, before.get_versioned(&literal(key)).await.unwrap().version));
    }
    store(&bed.client, &path("orders.shards"), 3, vec![0.5], true, bed.folder()).await.unwrap();
    let after = Shards::open(&bed.client, &path("orders.shards")).await.unwrap();
    for (key, version) in read {
        let error = after.put(&record(key, "by its version"), ChangeIf::Version(version)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        let now = after.get_versioned(&literal(key)).await.unwrap().version;
        assert!(now > version, "{now} is above {version}");
        after.put(&record(key, "by its version"), ChangeIf::Version(now)).await.unwrap();
    }
}

/// Whoever may write below a mount does not fill the memory of who opens a dataset there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_longer_than_any_manifest_is_not_read() {
    let bed = Bed::start(1).await;
    bed.cluster.store("long.shards/manifest-0000000001", &vec![b' '; (16 << 20) + 1]);
    let error = Shards::open(&bed.client, &path("long.shards")).await.err().unwrap();
    assert!(error.kind() == ErrorKind::Corrupt && error.message().contains("/lake/long.shards/manifest-"), "{error}");
    let fetched = bed.cluster.s3.counters().bytes_out;
    assert!(fetched < 1 << 20, "{fetched} bytes were read of it");
}

/// As told with the answer, whatever layers there are: clients weigh a worker's queue by it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_tells_as_how_much_work_it_counted() {
    let bed = Bed::start(1).await;
    let shards = bed.create("orders.shards", 1, vec![0.5]).await;
    let worker = bed.client.view().workers[0].id;
    let steps = async |questions: Json| {
        let questions = Bytes::from(questions.to_string());
        let asked = bed.client.shards().ask(worker, shards.id(), 0, questions, Duration::from_secs(20)).await;
        let (_, queue) = asked.unwrap();
        assert_eq!(queue.queue, 0, "nobody else asks");
        u64::from(queue.steps)
    };
    let get = steps(json!({"get": 1})).await;
    let many = steps(json!({"search": {"attr": "note", "contains": "line"}, "limit": 100_000})).await;
    let few = steps(json!({"search": {"attr": "note", "contains": "line 17 "}, "limit": 100_000})).await;
    assert!((9..1000).contains(&get) && (1..1000).contains(&few), "{get}, {few}");
    assert!(many >= RECORDS as u64 && many > 10 * few, "{many} of {RECORDS} hits, {few} of one");
}
