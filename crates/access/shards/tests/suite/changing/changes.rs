//! Records that are changed: seen by everyone once they are acknowledged, once, and whatever fails.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use forebay_client::{Client, WantedRecords};
use forebay_demo::Fault;
use forebay_shard::Key;
use forebay_shard_store::{ChangeIf, Condition, Literal, LogObject, LogPlace, Store, Wanted, read_records, write_keys};
use forebay_shards::{Shards, Versioned};
use forebay_testbed::until_asked;
use forebay_types::{ErrorKind, Result, WorkerId};
use serde_json::{Map, Value as Json, json};

use crate::answers::compare;
use crate::bed::{BUCKET, Bed, RECORDS, columns, path, store};

pub fn record(key: i64, name: &str) -> Map<String, Json> {
    json!({"id": key, "name": name, "note": format!("changed {key}")}).as_object().unwrap().clone()
}

pub fn literal(key: i64) -> Literal {
    Literal::from_json(&json!(key)).unwrap()
}

pub async fn put(shards: &Shards, key: i64, name: &str) -> Result<u64> {
    shards.put(&record(key, name), ChangeIf::Always).await
}

pub async fn name_of(shards: &Shards, key: i64) -> Option<String> {
    let record = shards.get(&literal(key), None).await.unwrap();
    record.map(|record| record["name"].as_str().unwrap().to_string())
}

fn workers(bed: &Bed) -> Vec<WorkerId> {
    bed.client.view().workers.iter().map(|worker| worker.id).collect()
}

/// What one worker says of a record.
async fn name_at(bed: &Bed, shards: &Shards, worker: WorkerId, key: i64) -> Option<String> {
    record_at(&bed.client, shards, worker, key).await.unwrap()
}

/// The name that the record of a key has, as one worker says.
pub async fn record_at(client: &Client, shards: &Shards, worker: WorkerId, key: i64) -> Result<Option<String>> {
    let key = Key::U64(key as u64);
    let shard = shards.dataset().shard_of(&key) as u32;
    let mut keys = Vec::new();
    write_keys([&key], &mut keys);
    let of = WantedRecords { dataset: shards.id(), shard, attributes: &[0], versioned: false };
    let (answer, _) = client.shards().records(worker, &of, keys.into(), Duration::from_secs(20)).await?;
    let wanted = Wanted::new(shards.columns(), Some(vec![0]), false).unwrap();
    let record = read_records(&answer, 1, shards.columns(), &wanted).unwrap().remove(0).record;
    Ok(record.map(|record| String::from_utf8(record.bytes(0).unwrap().to_vec()).unwrap()))
}

/// What one worker says to a question about the shard of a key.
pub async fn answer_at(client: &Client, shards: &Shards, worker: WorkerId, key: i64, question: Json) -> Result<Json> {
    let shard = shards.dataset().shard_of(&forebay_shard::Key::U64(key as u64)) as u32;
    let question = Bytes::from(question.to_string());
    let (answer, _) = client.shards().ask(worker, shards.id(), shard, question, Duration::from_secs(20)).await?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

async fn change_at(bed: &Bed, shards: &Shards, worker: WorkerId, call: u128, change: Json) -> Result<u64> {
    let key = change["put"]["id"].as_i64().unwrap();
    let shard = shards.dataset().shard_of(&forebay_shard::Key::U64(key as u64)) as u32;
    let change = Bytes::from(change.to_string());
    bed.client.shards().change(worker, shards.id(), shard, (call, None), change, Duration::from_secs(20)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_acknowledged_is_seen_at_every_worker_and_by_every_search() {
    let bed = Bed::start(3).await;
    let shards = bed.create("orders.shards", 2, vec![0.5, 0.5, 0.5]).await;
    compare(&shards, &bed.reference()).await;
    let reference = bed.reference_to_change();
    for round in 0..5i64 {
        let mut changes = Vec::new();
        for key in (round * 3..2000).step_by(211) {
            changes.push(match key % 3 {
                0 => json!({"delete": key}),
                _ => json!({"put": record(key, &format!("clerk{:03}", (key + round) % 97))}),
            });
        }
        changes.push(json!({"put": record(100_000 + round, "clerk031")}));
        shards.change(&changes).await.unwrap();
        for change in &changes {
            reference.apply(change);
        }
        for worker in workers(&bed) {
            let name = name_at(&bed, &shards, worker, 100_000 + round).await;
            assert_eq!(name.as_deref(), Some("clerk031"), "round {round} at {worker}");
        }
        let condition = json!({"attr": "name", "eq": "clerk031"});
        let wanted = reference.0.search(&Condition::from_json(&condition).unwrap(), None, None).unwrap();
        assert_eq!(shards.search(&condition, None, None).await.unwrap(), wanted);
        let others = Condition::parse("(name in (clerk031, clerk032) or name i$= K096) and not note *= summer").unwrap();
        assert_eq!(shards.search(&others.to_json(), None, None).await.unwrap(), reference.0.search(&others, None, None).unwrap());
        assert_eq!(shards.count(None).await.unwrap(), reference.0.count_all().unwrap());
    }
    let keys: Vec<_> = (0..2000u64).map(forebay_shard::Key::U64).collect();
    for (key, record) in keys.iter().zip(shards.get_many(&keys, None).await.unwrap()) {
        assert_eq!(record, reference.0.get_json(key, None).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_are_kept() {
    let bed = Bed::start(2).await;
    let shards = bed.create("orders.shards", 2, vec![0.5, 0.5]).await;
    let conflict = async |record, condition| {
        let error = shards.put(&record, condition).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    };
    conflict(record(7, "there already"), ChangeIf::Absent).await;
    let Versioned { record: there, version } = shards.get_versioned(&literal(7)).await.unwrap();
    assert!(there.is_some() && version == 0, "as it came");
    let first = shards.put(&record(7, "one"), ChangeIf::Version(version)).await.unwrap();
    conflict(record(7, "two"), ChangeIf::Version(version)).await;
    let Versioned { record: there, version } = shards.get_versioned(&literal(7)).await.unwrap();
    assert_eq!((there.unwrap()["name"].as_str(), version), (Some("one"), first));
    let gone = shards.delete(&literal(7), ChangeIf::Version(first)).await.unwrap();
    assert_eq!(shards.get_versioned(&literal(7)).await.unwrap(), Versioned { record: None, version: gone });
    shards.put(&record(7, "again"), ChangeIf::Absent).await.unwrap();
    assert_eq!(name_of(&shards, 7).await.as_deref(), Some("again"));
    // All changes of a shard or none.
    let neighbour = (8..).find(|key| same_shard(&shards, 7, *key)).unwrap();
    let both = [json!({"put": record(neighbour, "half")}), json!({"put": record(7, "half"), "if_absent": true})];
    assert_eq!(shards.change(&both).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_ne!(name_of(&shards, neighbour).await.as_deref(), Some("half"));
    for wrong in [json!({"put": {"name": "no key"}}), json!({"put": record(1, "x"), "delete": 1}), json!({"get": 1})] {
        assert_eq!(shards.change(&[wrong]).await.unwrap_err().kind(), ErrorKind::Invalid);
    }
}

fn same_shard(shards: &Shards, a: i64, b: i64) -> bool {
    let of = |key: i64| shards.dataset().shard_of(&forebay_shard::Key::U64(key as u64));
    of(a) == of(b)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_at_different_workers_lose_none_of_each_others_changes() {
    let bed = Arc::new(Bed::start(3).await);
    let shards = bed.create("orders.shards", 1, vec![0.5, 0.5]).await;
    const EACH: u64 = 10;
    let conflicts = Arc::new(AtomicU64::new(0));
    let writers: Vec<_> = workers(&bed)
        .into_iter()
        .enumerate()
        .map(|(number, worker)| {
            let (bed, shards, conflicts) = (Arc::clone(&bed), shards.clone(), Arc::clone(&conflicts));
            tokio::spawn(async move {
                let mut made = 0;
                let mut call = number as u128 * 1_000_000;
                while made < EACH {
                    let Versioned { record: there, version } = shards.get_versioned(&literal(5)).await.unwrap();
                    let count = there.unwrap()["name"].as_str().unwrap().parse().unwrap_or(0u64);
                    call += 1;
                    let change = json!({"put": record(5, &(count + 1).to_string()), "if_version": version});
                    match change_at(&bed, &shards, worker, call, change).await {
                        Ok(_) => made += 1,
                        Err(error) if error.kind() == ErrorKind::Conflict => {
                            conflicts.fetch_add(1, Relaxed);
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(name_of(&shards, 5).await.unwrap(), (3 * EACH).to_string(), "each counted one on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_made_again_elsewhere_is_made_once() {
    let bed = Bed::start(2).await;
    let shards = bed.create("orders.shards", 1, vec![0.5, 0.5]).await;
    let workers = workers(&bed);
    let change = |name: &str| json!({"put": record(3, name)});
    let first = change_at(&bed, &shards, workers[0], 77, change("first")).await.unwrap();
    let second = change_at(&bed, &shards, workers[1], 78, change("second")).await.unwrap();
    assert!(second > first);
    for worker in workers {
        assert_eq!(change_at(&bed, &shards, worker, 77, change("first")).await.unwrap(), first, "it is done");
        assert_eq!(name_at(&bed, &shards, worker, 3).await.as_deref(), Some("second"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_shared_storage_that_are_lost_or_late_lose_nothing_and_double_nothing() {
    let bed = Bed::start(2).await;
    let shards = bed.create("orders.shards", 1, vec![0.5, 0.5]).await;
    put(&shards, 1, "before").await.unwrap();
    for (round, fault) in [Fault::LoseAnswer, Fault::Status(503)].into_iter().enumerate() {
        bed.cluster.s3.inject(fault, 3);
        let version = put(&shards, 1, &format!("round {round}")).await.unwrap();
        bed.cluster.s3.clear_faults();
        for worker in workers(&bed) {
            assert_eq!(name_at(&bed, &shards, worker, 1).await.unwrap(), format!("round {round}"));
        }
        assert_eq!(shards.get_versioned(&literal(1)).await.unwrap().version, version);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_are_killed_lose_nothing_that_was_acknowledged() {
    let mut bed = Bed::start(3).await;
    let shards = bed.create("orders.shards", 2, vec![0.5, 0.5]).await;
    let (client, stop) = (shards.clone(), Arc::new(AtomicU64::new(0)));
    let (until, counted) = (Arc::clone(&stop), Arc::new(AtomicU64::new(0)));
    let count = Arc::clone(&counted);
    let writer = tokio::spawn(async move {
        let mut acknowledged = BTreeMap::new();
        for number in 0.. {
            if until.load(Relaxed) > 0 {
                break;
            }
            let key = number % 40;
            let name = format!("write {number}");
            put(&client, key, &name).await.unwrap();
            assert_eq!(name_of(&client, key).await.as_deref(), Some(name.as_str()), "read after write");
            acknowledged.insert(key, name);
            count.fetch_add(1, Relaxed);
        }
        acknowledged
    });
    for place in [0, 1, 2] {
        let before = counted.load(Relaxed);
        drop(bed.take_worker(place));
        // A write that everyone must hear of waits for the end of the lease.
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(counted.load(Relaxed) > before, "writes go on");
        bed.start_worker(place).await;
    }
    stop.store(1, Relaxed);
    let acknowledged = writer.await.unwrap();
    assert!(!acknowledged.is_empty());
    for worker in workers(&bed) {
        for (key, name) in &acknowledged {
            assert_eq!(name_at(&bed, &shards, worker, *key).await.as_ref(), Some(name), "{key} at {worker}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dataset_that_is_replaced_takes_no_more_changes_and_the_new_one_has_none_of_the_old_ones() {
    let bed = Bed::start(2).await;
    let before = bed.create("orders.shards", 2, vec![0.5]).await;
    put(&before, 1, "of the old one").await.unwrap();
    store(&bed.client, &path("orders.shards"), 2, vec![0.5], true, bed.folder()).await.unwrap();
    let error = put(&before, 1, "too late").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(error.message().contains("open it again"), "{error}");
    assert_eq!(name_of(&before, 1).await.as_deref(), Some("of the old one"), "its readers go on");
    let after = Shards::open(&bed.client, &path("orders.shards")).await.unwrap();
    assert_ne!(name_of(&after, 1).await.as_deref(), Some("of the old one"));
    put(&after, 1, "of the new one").await.unwrap();
    assert_eq!(name_of(&before, 1).await.as_deref(), Some("of the old one"));
    assert_eq!(after.count(None).await.unwrap(), RECORDS as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_merge_while_the_next_dataset_is_built_does_not_stand_in_its_way_and_another_dataset_does() {
    let bed = Bed::start(1).await;
    let before = bed.create("orders.shards", 1, vec![0.5]).await;
    put(&before, 1, "merged").await.unwrap();
    let begin = async || {
        let path = path("orders.shards");
        let mut creating = forebay_shards::create(&bed.client, &path, columns(), vec![0.5], true).await.unwrap();
        creating.push(&bed.folder().join("part0of1"), |_| {}).await.unwrap();
        creating
    };
    let creating = begin().await;
    before.merge_shard(0).await.unwrap();
    assert_eq!(creating.finish().await.unwrap(), 3, "behind the merge");
    let (first, second) = (begin().await, begin().await);
    assert_eq!(first.finish().await.unwrap(), 4);
    assert_eq!(second.finish().await.unwrap_err().kind(), ErrorKind::Conflict);
    let after = Shards::open(&bed.client, &path("orders.shards")).await.unwrap();
    put(&after, 1, "goes on").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_written_past_these_workers_is_found_when_they_are_told_to_look_and_damage_is_named() {
    let bed = Bed::start(1).await;
    let shards = bed.create("orders.shards", 1, vec![0.5]).await;
    put(&shards, 1, "told").await.unwrap();
    let log = shards.dataset().log.clone().unwrap();
    let place = LogPlace { folder: "orders.shards".into(), log, shard: 0 };
    let key = |number| place.key(number).unwrap().to_string();
    // As another cluster over the same storage would write it.
    let columns = shards.columns();
    let (of, values) = columns.record_of(&record(1, "from elsewhere")).unwrap();
    let call = forebay_shard_store::LoggedCall { id: 5, changes: vec![forebay_shard_store::Change::Put(of, values)] };
    bed.cluster.s3.put(BUCKET, &key(2), &LogObject::Calls(vec![call]).encode(2)).unwrap();
    bed.client.refresh(&path("orders.shards")).await.unwrap();
    assert_eq!(name_of(&shards, 1).await.as_deref(), Some("from elsewhere"));
    // A writer finds it there without being told, and goes on behind it.
    bed.cluster.s3.put(BUCKET, &key(3), &LogObject::Calls(vec![]).encode(3)).unwrap();
    assert_eq!(put(&shards, 1, "behind it").await.unwrap(), 4);
    bed.cluster.s3.put(BUCKET, &key(5), b"no log").unwrap();
    bed.client.refresh(&path("orders.shards")).await.unwrap();
    let error = shards.clone().with_patience(Duration::from_secs(2)).get(&literal(1), None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains(&key(5)), "{error}");
}

async fn manifests(bed: &Bed) -> usize {
    bed.client.list_all(&path("orders.shards/manifest-")).await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn merged_changes_are_in_the_files_and_everyone_answers_as_before() {
    let mut bed = Bed::start(2).await;
    let before = bed.create("orders.shards", 2, vec![0.5, 0.5]).await;
    let reference = bed.reference_to_change();
    let change = async |shards: &Shards, key: i64, name: &str| {
        let put = json!({"put": record(key, name)});
        shards.change(std::slice::from_ref(&put)).await.unwrap();
        reference.apply(&put);
    };
    for key in 0..40 {
        change(&before, key * 17, "merged").await;
    }
    for shard in 0..2 {
        before.merge_shard(shard).await.unwrap();
    }
    assert_eq!(manifests(&bed).await, 3, "one a shard");
    change(&before, 5, "after").await;
    let after = Shards::open(&bed.client, &path("orders.shards")).await.unwrap();
    assert_eq!((before.manifest(), after.manifest()), (1, 3));
    assert!(after.dataset().shards.iter().all(|shard| shard.log_from > 1));
    change(&after, 6, "by the new one").await;
    let all: Vec<_> = (-800..2300i64).map(|key| forebay_shard::Key::U64(key as u64)).collect();
    let same = async |shards: &Shards, bed: &Bed| {
        for (key, record) in all.iter().zip(shards.get_many(&all, None).await.unwrap()) {
            assert_eq!(record, reference.0.get_json(key, None).unwrap(), "{key}");
        }
        let merged = json!({"attr": "name", "eq": "merged"});
        let wanted = reference.0.search(&Condition::from_json(&merged).unwrap(), None, None).unwrap();
        assert_eq!(shards.search(&merged, None, None).await.unwrap(), wanted);
        for worker in workers(bed) {
            assert_eq!(name_at(bed, shards, worker, 5).await.as_deref(), Some("after"), "at {worker}");
        }
    };
    same(&before, &bed).await;
    same(&after, &bed).await;
    for shard in 0..2 {
        after.merge_shard(shard).await.unwrap();
        after.merge_shard(shard).await.unwrap();
    }
    assert_eq!(manifests(&bed).await, 5, "where nothing was changed nothing is made");
    // A worker that knows nothing of all this begins with the last files, whoever asks.
    bed.take_worker(0).shutdown().await;
    std::fs::remove_dir_all(bed.folder().join("worker0")).unwrap();
    bed.start_worker(0).await;
    bed.cluster.s3.reset_counters();
    same(&before, &bed).await;
    same(&after, &bed).await;
    let Versioned { version, .. } = before.get_versioned(&literal(5)).await.unwrap();
    before.put(&record(5, "once more"), ChangeIf::Version(version)).await.unwrap();
    assert_eq!(name_of(&after, 5).await.as_deref(), Some("once more"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_changes_are_merged_by_themselves() {
    let bed = Bed::start(2).await;
    let shards = bed.create("orders.shards", 1, vec![0.5, 0.5]).await;
    let note = "a line that is long enough to make it much ".repeat(100);
    let long = |key: i64| json!({"put": {"id": key, "name": "long", "note": format!("{key} {note}")}});
    for round in 0..6 {
        let changes: Vec<Json> = (0..200).map(|key| long(round * 200 + key)).collect();
        shards.change(&changes).await.unwrap();
    }
    until_asked("it is merged", async || manifests(&bed).await >= 2).await;
    assert_eq!(shards.count(Some(&json!({"attr": "name", "eq": "long"}))).await.unwrap(), 1200);
    let after = Shards::open(&bed.client, &path("orders.shards")).await.unwrap();
    assert!(after.dataset().shards[0].records >= RECORDS as u64 && after.dataset().shards[0].log_from > 1);
    assert_eq!(after.count(Some(&json!({"attr": "name", "eq": "long"}))).await.unwrap(), 1200);
}

/// A folder's shard that is changed beside the served one.
pub struct Reference(pub Store);

impl Reference {
    fn apply(&self, change: &Json) {
        let wanted = forebay_shard_store::WantedChange::parse(self.0.records().unwrap(), change.to_string().as_bytes());
        self.0.change(vec![wanted.unwrap().change]).unwrap();
    }
}
