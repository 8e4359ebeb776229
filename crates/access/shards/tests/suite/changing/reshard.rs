//! Datasets that come to have more or fewer shards while they are asked and changed, and whoever is lost meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use forebay_client::PutCondition;
use forebay_shard::{Key, KeyMap};
use forebay_shard_store::{ChangeIf, DatasetPin, LogObject, LogPlace, LoggedCall, Tail, moved_call};
use forebay_shards::{Cut, ReshardStep, ReshardTo, Shards};
use forebay_types::{ErrorKind, ForebayPath, Result};
use serde_json::{Value as Json, json};

use super::changes::{literal, record};
use crate::bed::{Bed, RECORDS, path, store, until};

pub const NAME: &str = "orders.shards";
/// Keys from here on are somebody else's.
const OTHERS: i64 = 2_000_000;

/// What the records are to be.
pub struct Model(BTreeMap<i64, Json>);

impl Model {
    pub fn of(bed: &Bed) -> Self {
        let reference = bed.reference();
        let keys = (0..RECORDS).map(|number| number - RECORDS / 4);
        Self(keys.map(|key| (key, reference.get_json(&Key::U64(key as u64), None).unwrap().unwrap())).collect())
    }

    async fn put(&mut self, shards: &Shards, key: i64, name: &str) {
        shards.put(&record(key, name), ChangeIf::Always).await.unwrap();
        self.0.insert(key, Json::Object(record(key, name)));
    }

    /// Changes some records, different ones each round, with a call a shard and with calls of their own.
    pub async fn change(&mut self, shards: &Shards, round: i64) {
        let keys: Vec<i64> = (round * 5..400).step_by(37).collect();
        let name = format!("round {round}");
        let puts: Vec<Json> = keys.iter().map(|key| json!({"put": record(*key, &name)})).collect();
        shards.change(&puts).await.unwrap();
        self.0.extend(keys.into_iter().map(|key| (key, Json::Object(record(key, &name)))));
        for key in (round * 7..400).step_by(61) {
            shards.delete(&literal(key), ChangeIf::Always).await.unwrap();
            self.0.remove(&key);
        }
        self.put(shards, 1_000_000 + round, "new").await;
    }

    async fn compare(&self, shards: &Shards, what: &str) {
        let keys: Vec<i64> = (-RECORDS / 4..RECORDS).chain(1_000_000..1_000_020).collect();
        let found = shards.get_many(&keys.iter().map(|key| Key::U64(*key as u64)).collect::<Vec<_>>(), None).await.unwrap();
        for (key, found) in keys.iter().zip(found) {
            assert_eq!(found.as_ref(), self.0.get(key), "{what}: {key}");
        }
        for name in ["clerk031", "new", "round 1"] {
            let condition = json!({"attr": "name", "eq": name});
            assert_eq!(shards.search(&condition, None, None).await.unwrap(), self.named(name), "{what}: {name}");
        }
    }

    /// The same, where nobody else writes.
    pub async fn compare_all(&self, shards: &Shards, what: &str) {
        self.compare(shards, what).await;
        assert_eq!(shards.count(None).await.unwrap(), self.0.len() as u64, "{what}");
    }

    fn named(&self, name: &str) -> Vec<Key> {
        self.0.iter().filter(|(_, record)| record["name"] == name).map(|(key, _)| Key::U64(*key as u64)).collect()
    }
}

pub async fn open(bed: &Bed) -> Shards {
    Shards::open(&bed.client, &path(NAME)).await.unwrap()
}

async fn reshard(bed: &Bed, to: ReshardTo) -> Result<Shards> {
    forebay_shards::reshard(&bed.client, &path(NAME), to, &bed.folder().join("scratch"), |_| {}).await
}

/// Announces that a dataset is to have so many shards, made before `model` changes once more.
pub async fn announce(bed: &Bed, shards: &Shards, count: usize, model: &mut Model) -> Shards {
    let cut = Cut::of(shards, KeyMap::Hash(count), &bed.folder().join("scratch"), |_| {}).await.unwrap();
    model.change(shards, 1).await;
    cut.announce().await.unwrap();
    open(bed).await
}

/// Writes keys and reads each back, until it is told to stop; gives what was acknowledged.
async fn write_and_read(shards: Shards, stop: Arc<AtomicBool>) -> BTreeMap<i64, String> {
    let mut written = BTreeMap::new();
    for number in 0.. {
        if stop.load(Relaxed) {
            break;
        }
        let (key, name) = (OTHERS + number % 50, format!("write {number}"));
        shards.put(&record(key, &name), ChangeIf::Always).await.unwrap();
        let there = shards.get(&literal(key), None).await.unwrap().unwrap();
        assert_eq!(there["name"], name, "read after write");
        let found = shards.search(&json!({"attr": "name", "eq": name}), None, None).await.unwrap();
        assert_eq!(found, [Key::U64(key as u64)], "found after write");
        written.insert(key, name);
    }
    written
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dataset_has_more_and_then_fewer_shards_while_it_is_asked_and_changed() {
    let bed = Bed::start(3).await;
    let first = bed.create(NAME, 2, vec![0.9, 0.5]).await;
    let mut model = Model::of(&bed);
    let stop = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn(write_and_read(first.clone(), Arc::clone(&stop)));
    let mut opened = vec![first];
    let steps = [(ReshardTo::Shards(5), 5), (ReshardTo::Shards(3), 3), (ReshardTo::BytesEach(u64::MAX), 1)];
    for (round, (to, count)) in steps.into_iter().enumerate() {
        model.change(&opened[round], round as i64).await;
        let resharded = reshard(&bed, to).await.unwrap();
        assert_eq!(resharded.dataset().shards.len(), count);
        assert!(resharded.dataset().next.is_none() && resharded.dataset().before.len() == round + 1);
        opened.push(resharded);
        model.change(&opened[0], round as i64 + 10).await;
        // Whoever has opened it before, however long ago, is answered by the shards of now.
        for shards in &opened {
            model.compare(shards, &format!("{count} shards")).await;
        }
    }
    stop.store(true, Relaxed);
    let last = open(&bed).await;
    for (key, name) in writer.await.unwrap() {
        let there = last.get(&literal(key), None).await.unwrap().unwrap();
        assert_eq!(there["name"], name, "{key}");
        last.delete(&literal(key), ChangeIf::Always).await.unwrap();
    }
    model.compare_all(&last, "alone").await;
    assert_eq!(std::fs::read_dir(bed.folder().join("scratch")).unwrap().count(), 0, "nothing is left of it here");
    let again = reshard(&bed, ReshardTo::Shards(1)).await.unwrap();
    assert_eq!(again.manifest(), last.manifest(), "it has as many");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_began_is_ended_by_whoever_meets_it_wherever_he_stopped() {
    let bed = Bed::start(2).await;
    // Logs that were ended, and new shards whose logs were begun.
    for (ended, begun) in [(0, 0), (1, 0), (2, 0), (2, 1), (2, 3)] {
        let what = format!("{ended} logs ended, {begun} begun");
        let before = match forebay_shards::latest_manifest(&bed.client, &path(NAME)).await.unwrap() {
            Some(_) => {
                store(&bed.client, &path(NAME), 2, vec![0.5, 0.5], true, bed.folder()).await.unwrap();
                open(&bed).await
            }
            None => bed.create(NAME, 2, vec![0.5, 0.5]).await,
        };
        let mut model = Model::of(&bed);
        model.change(&before, 0).await;
        for shard in 0..2 {
            before.merge_shard(shard).await.unwrap();
        }
        let announced = announce(&bed, &open(&bed).await, 3, &mut model).await;
        let mut ends = Vec::new();
        for shard in 0..2 {
            ends.push(if shard < ended { end_log(&bed, &announced, shard).await } else { 0 });
        }
        for shard in 0..begun {
            begin_log(&bed, &announced, &ends, shard).await;
        }
        if ended == 0 {
            model.compare_all(&announced, &what).await;
            model.change(&before, 2).await;
            assert_eq!(open(&bed).await.dataset().shards.len(), 2, "it serves as before");
            announced.merge_shard(1).await.unwrap();
        } else if ended == 1 {
            model.compare_all(&before, &what).await;
        } else {
            model.put(&before, 7, "by whom it was ended").await;
        }
        let after = open(&bed).await;
        assert_eq!((after.dataset().shards.len(), after.dataset().next.is_none()), (3, true), "{what}");
        for shards in [&before, &announced, &after] {
            model.compare_all(shards, &what).await;
        }
        model.change(&announced, 3).await;
        model.compare_all(&after, &what).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_gives_it_again_makes_nothing_anew_that_is_announced() {
    let bed = Bed::start(1).await;
    let before = bed.create(NAME, 2, vec![0.5]).await;
    announce(&bed, &before, 3, &mut Model::of(&bed)).await;
    let (scratch, steps) = (bed.folder().join("scratch"), std::sync::Mutex::new(Vec::new()));
    let progress = |step| steps.lock().unwrap().push(step);
    let done = forebay_shards::reshard(&bed.client, &path(NAME), ReshardTo::Shards(3), &scratch, progress).await.unwrap();
    assert_eq!((done.dataset().shards.len(), steps.lock().unwrap().clone()), (3, vec![ReshardStep::Switching]));
}

pub fn log_path(place: &LogPlace, number: u64) -> ForebayPath {
    path(place.key(number).unwrap().as_str())
}

pub fn place(log: &str, shard: usize) -> LogPlace {
    LogPlace { folder: NAME.into(), log: log.into(), shard: shard as u32 }
}

/// The calls of a shard's log from a number on, and the number that the next object would have.
async fn calls_of(bed: &Bed, shards: &Shards, shard: usize) -> (Vec<Vec<LoggedCall>>, u64) {
    let dataset = shards.dataset();
    let (place, cut) = (place(dataset.log.as_ref().unwrap(), shard), dataset.next.as_ref().unwrap().cuts[shard]);
    let mut calls = Vec::new();
    for number in cut.. {
        let Ok(info) = bed.client.open(&log_path(&place, number)).await else { return (calls, number) };
        let bytes = bed.client.read(bed.client.operation(), &info.version, 0..info.version.size).await.unwrap();
        match LogObject::decode(&bytes, number, &dataset.columns.schema(), "log").unwrap() {
            LogObject::Calls(of) => calls.push(of),
            _ => return (calls, number),
        }
    }
    unreachable!()
}

/// Ends the log of a shard as a worker that is killed right behind it; gives the number of its end.
pub async fn end_log(bed: &Bed, shards: &Shards, shard: usize) -> u64 {
    let (_, end) = calls_of(bed, shards, shard).await;
    let log = shards.dataset().log.as_ref().unwrap();
    let bytes = Bytes::from(LogObject::Moved.encode(end));
    bed.client.put(&log_path(&place(log, shard), end), bytes, PutCondition::Absent).await.unwrap();
    end
}

/// The same for the first object of the log of a new shard.
async fn begin_log(bed: &Bed, shards: &Shards, ends: &[u64], shard: usize) {
    let next = shards.dataset().next.clone().unwrap();
    let mut tail = Tail::new(&next.log, shard, next.map());
    for of in 0..ends.len() {
        for calls in calls_of(bed, shards, of).await.0 {
            assert!(tail.push(calls).is_none(), "it is one object");
        }
    }
    let Some(object) = tail.end() else { return };
    let number = ends.iter().max().unwrap() + 1;
    let bytes = Bytes::from(object.encode(number));
    bed.client.put(&log_path(&place(&next.log, shard), number), bytes, PutCondition::Absent).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_are_killed_meanwhile_and_others_who_want_the_same_lose_nothing() {
    let mut bed = Bed::start(3).await;
    let first = bed.create(NAME, 2, vec![0.5, 0.5]).await;
    let mut model = Model::of(&bed);
    let stop = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn(write_and_read(first.clone(), Arc::clone(&stop)));
    for (round, count) in [5u32, 3, 4, 2].into_iter().enumerate() {
        model.change(&first, round as i64).await;
        let (client, folder) = (bed.client.clone(), bed.folder().to_path_buf());
        let both = [0, 1].map(|place| {
            let (client, scratch) = (client.clone(), folder.join(format!("scratch{place}")));
            tokio::spawn(async move {
                // Who is told that somebody else did, or that it can't be done now, tries again.
                for _ in 0..100 {
                    match forebay_shards::reshard(&client, &path(NAME), ReshardTo::Shards(count), &scratch, |_| {}).await {
                        Ok(shards) => return shards.dataset().shards.len(),
                        Err(error) => assert!(matches!(error.kind(), ErrorKind::Retry | ErrorKind::Conflict), "{error}"),
                    }
                    let _ = std::fs::remove_dir_all(&scratch);
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                panic!("it has no {count} shards in the end");
            })
        });
        tokio::time::sleep(Duration::from_millis(150 + 250 * round as u64)).await;
        drop(bed.take_worker(round % 3));
        tokio::time::sleep(Duration::from_millis(300)).await;
        bed.start_worker(round % 3).await;
        for one in both {
            assert_eq!(one.await.unwrap(), count as usize);
        }
        model.compare(&first, &format!("round {round}")).await;
    }
    stop.store(true, Relaxed);
    let last = open(&bed).await;
    for (key, name) in writer.await.unwrap() {
        assert_eq!(last.get(&literal(key), None).await.unwrap().unwrap()["name"], name, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_of_shards_that_are_no_more_are_searched_and_counted_whole() {
    let bed = Bed::start(2).await;
    let before = bed.create(NAME, 4, vec![0.5]).await;
    let model = Model::of(&bed);
    let all = json!({"and": []});
    let condition = json!({"attr": "note", "contains": "summer"});
    let mut wanted = Vec::new();
    for shard in 0..4 {
        wanted.push((
            before.search_shard(shard, &condition, None, None).await.unwrap(),
            before.search_shard(shard, &all, None, Some(10)).await.unwrap(),
            before.count_shard(shard, None).await.unwrap(),
            before.count_shard(shard, Some(&condition)).await.unwrap(),
        ));
    }
    // A scan that is under way, and one of a process that has the manifest alone.
    let elsewhere = Shards::at(&bed.client, path(NAME), before.id().clone(), before.dataset().clone());
    reshard(&bed, ReshardTo::Shards(3)).await.unwrap();
    for shards in [&before, &elsewhere] {
        for (shard, (found, first, count, counted)) in wanted.iter().enumerate() {
            assert_eq!(shards.search_shard(shard, &condition, None, None).await.unwrap(), *found);
            assert_eq!(shards.search_shard(shard, &all, None, Some(10)).await.unwrap(), *first);
            let behind = shards.search_shard(shard, &all, first.get(4), Some(5)).await.unwrap();
            assert_eq!(behind, first[5..10], "it goes on behind a key");
            assert_eq!(shards.count_shard(shard, None).await.unwrap(), *count);
            assert_eq!(shards.count_shard(shard, Some(&condition)).await.unwrap(), *counted);
            shards.merge_shard(shard).await.unwrap();
        }
        model.compare_all(shards, "whole").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_made_once_and_versions_are_never_used_again() {
    let bed = Bed::start(2).await;
    let before = bed.create(NAME, 2, vec![0.5]).await;
    let cut = Cut::of(&before, KeyMap::Hash(3), &bed.folder().join("scratch"), |_| {}).await.unwrap();
    let worker = bed.client.view().workers[0].id;
    let change = async |shards: &Shards, call: u128, name: &str| {
        let shard = shards.dataset().shard_of(&Key::U64(5)) as u32;
        let change = Bytes::from(json!({"put": record(5, name)}).to_string());
        bed.client.shards().change(worker, shards.id(), shard, (call, None), change, Duration::from_secs(20)).await
    };
    let first = change(&before, 77, "first").await.unwrap();
    let second = change(&before, 78, "second").await.unwrap();
    assert!(second > first);
    let there = before.get_versioned(&literal(9)).await.unwrap().version;
    cut.announce().await.unwrap();
    open(&bed).await.merge_shard(0).await.unwrap();
    let after = open(&bed).await;
    let error = change(&before, 79, "by a client that does not know it").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(error.message().contains("open it again"), "{error}");
    let (log, shard) = (after.dataset().log.clone().unwrap(), after.dataset().shard_of(&Key::U64(5)));
    let again = change(&after, moved_call(77, &log, shard), "first").await.unwrap();
    assert!(again > second, "versions rise");
    assert_eq!(after.get(&literal(5), None).await.unwrap().unwrap()["name"], "second", "it was made before");
    // What was read before is no state of now, though nobody has changed it: nobody may take it for one.
    let error = before.put(&record(9, "by its version"), ChangeIf::Version(there)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    let now = before.get_versioned(&literal(9)).await.unwrap().version;
    assert!(now > second);
    before.put(&record(9, "by its version"), ChangeIf::Version(now)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_begin_with_the_size_that_their_records_had_and_orders_hold_on() {
    // Nothing comes by its load, nor goes.
    let bed = Bed::start_as(1, 1 << 30, Duration::from_secs(3600)).await;
    let before = bed.create(NAME, 2, vec![0.4]).await;
    let model = Model::of(&bed);
    let pin = Some(DatasetPin { size: Some(1.0) });
    before.order(|orders| orders.pin = pin).await.unwrap().bring().await;
    grown(&open(&bed).await).await;
    before.order(|orders| (orders.pin, orders.frozen) = (None, true)).await.unwrap();
    let after = reshard(&bed, ReshardTo::Shards(3)).await.unwrap();
    assert!(after.orders().frozen);
    model.compare_all(&after, "grown").await;
    grown(&after).await;
}

/// Waits until all replicas are about as large as their input.
async fn grown(shards: &Shards) {
    until(shards, "all have grown", |status| {
        status.iter().flat_map(|shard| &shard.replicas).all(|replica| replica.now.is_some_and(|now| now > 0.94))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dataset_that_is_replaced_meanwhile_stays_replaced() {
    let bed = Bed::start(2).await;
    let before = bed.create(NAME, 2, vec![0.5]).await;
    let mut model = Model::of(&bed);
    let announced = announce(&bed, &before, 3, &mut model).await;
    end_log(&bed, &announced, 0).await;
    store(&bed.client, &path(NAME), 2, vec![0.5], true, bed.folder()).await.unwrap();
    let error = announced.merge_shard(0).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    let after = open(&bed).await;
    assert!(after.dataset().before.is_empty() && after.dataset().next.is_none());
    Model::of(&bed).compare_all(&after, "replaced").await;
    let cut = Cut::of(&before, KeyMap::Hash(3), &bed.folder().join("scratch"), |_| {}).await.unwrap();
    assert_eq!(cut.announce().await.unwrap_err().kind(), ErrorKind::Conflict);
    let error = reshard(&bed, ReshardTo::Shards(0)).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}
