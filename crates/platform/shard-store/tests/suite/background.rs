//! Updates go from the log to a suffix array to the compressed shard by themselves.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use forebay_shard::{Key, Value};
use forebay_shard_store::{Change, Store, UpdateLimits};
use rand::Rng;

use crate::support::*;

/// Limits that a small test reaches.
pub(crate) const SMALL: UpdateLimits = UpdateLimits { gather_bytes: 2 << 10, merge_bytes: 16 << 10, pending_bytes: 64 << 10 };

/// Waits until something holds; a test that waits too long fails.
fn eventually(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Puts records of these keys, ten at a time.
fn put(store: &Store, all: &mut Records, keys: std::ops::Range<u64>, seed: u64) {
    let keys: Vec<u64> = keys.collect();
    for keys in keys.chunks(10) {
        let put = |key: &u64| (Key::U64(*key), values(&mut random(seed ^ key)));
        let records: Records = keys.iter().map(put).collect();
        store.change(records.iter().map(|(key, values)| Change::Put(key.clone(), values.clone())).collect()).unwrap();
        all.extend(records);
    }
}

fn base_of(path: &Path) -> Vec<String> {
    let files = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    files.filter(|name| name.starts_with("base-")).collect()
}

#[test]
fn updates_are_merged_by_themselves_and_answers_stay_right_all_the_way() {
    let (_folder, path, mut all) = built(3, 1000, 0.8);
    let (before, limits) = (base_of(&path), SMALL);
    let store = Store::open_to_change_with(&path, limits).unwrap();
    let mut random = random(4);
    for round in 0..40u64 {
        let from = random.random_range(0..2500);
        put(&store, &mut all, from..from + 60, round * 7919);
        let gone: Vec<Key> = (0..10).map(|_| Key::U64(random.random_range(0..3000))).collect();
        store.change(gone.iter().cloned().map(Change::Delete).collect()).unwrap();
        gone.iter().for_each(|key| drop(all.remove(key)));
        if round % 4 == 0 {
            check(&store, &all, round);
        }
    }
    eventually("no merge came", || base_of(&path) != before);
    check(&store, &all, 1);
    check(&Store::open(&path).unwrap(), &all, 2);
    store.close().unwrap();
    // What was not merged yet is in the log, and is merged when there is more.
    let store = Store::open_to_change_with(&path, limits).unwrap();
    check(&store, &all, 3);
    store.merge().unwrap();
    assert_eq!(store.inspect().unwrap().updates, 0);
    check(&store, &all, 4);
}

#[test]
fn questions_go_on_while_it_merges() {
    let (_folder, path, mut all) = built(5, 3000, 0.8);
    let store = Store::open_to_change(&path).unwrap();
    put(&store, &mut all, 0..500, 1);
    let (done, asked) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            store.merge().unwrap();
            done.store(true, Ordering::Release);
        });
        let mut random = random(6);
        while !done.load(Ordering::Acquire) {
            let key = Key::U64(random.random_range(0..3000));
            assert_eq!(store.get(&key, None).unwrap().as_ref(), all.get(&key));
            asked.fetch_add(1, Ordering::Relaxed);
        }
    });
    assert!(asked.load(Ordering::Relaxed) > 10, "questions waited for the merge");
    check(&store, &all, 7);
}

#[test]
fn many_writers_and_a_merge_lose_nothing() {
    let (_folder, path, all) = built(8, 500, 0.8);
    let store = Store::open_to_change_with(&path, SMALL).unwrap();
    let written: Vec<BTreeMap<Key, Vec<Value>>> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4u64)
            .map(|writer| {
                let store = &store;
                scope.spawn(move || {
                    let (mut mine, mut random) = (BTreeMap::new(), random(writer));
                    for _ in 0..60 {
                        // Keys of its own, so that the last one to write is known.
                        let key = Key::U64(random.random_range(0..150) * 4 + writer);
                        let values = values(&mut random);
                        store.change(vec![Change::Put(key.clone(), values.clone())]).unwrap();
                        mine.insert(key, values);
                    }
                    mine
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let mut all = all;
    written.into_iter().for_each(|mine| all.extend(mine));
    check(&store, &all, 9);
    drop(store);
    check(&Store::open(&path).unwrap(), &all, 10);
}
