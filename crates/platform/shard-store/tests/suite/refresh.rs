//! An open store follows what another process publishes, when it is asked to.

use forebay_shard::{Key, Value};
use forebay_shard_store::{Batch, Change, LocalLog, Store};
use rand::Rng;
use serde_json::json;

use crate::support::*;

fn put(key: u64, seed: u64) -> (Key, Vec<Value>) {
    (Key::U64(key), values(&mut random(seed * 31 + key)))
}

#[test]
fn a_batch_answers_from_what_others_put_since_it_was_opened() {
    let (_folder, path, _) = built(1, 200, 0.8);
    let mut batch = Batch::open(&path).unwrap();
    let mut word = || batch.answer(br#"{"get": 1000000, "columns": ["word"]}"#);
    assert_eq!(word(), json!(null));
    let store = Store::open_to_change(&path).unwrap();
    let put = |word: &str| {
        let values = vec![Value::Text(word.into()), Value::Null, Value::Null, Value::Null];
        store.change(vec![Change::Put(Key::U64(1_000_000), values)]).unwrap();
    };
    put("first");
    assert_eq!(word(), json!({"word": "first"}));
    put("second");
    assert_eq!(word(), json!({"word": "second"}));
    store.merge().unwrap();
    assert_eq!(word(), json!({"word": "second"}));
    store.change(vec![Change::Delete(Key::U64(1_000_000))]).unwrap();
    assert_eq!(word(), json!(null));
}

#[test]
fn a_refreshed_store_is_as_one_that_is_opened_anew() {
    let (_folder, path, mut all) = built(1, 500, 0.8);
    let reader = Store::open(&path).unwrap();
    assert!(!reader.refresh().unwrap());
    let writer = Store::open_to_change(&path).unwrap();
    assert!(!writer.refresh().unwrap(), "it knows what it does");
    let mut random = random(2);
    for round in 0..24u64 {
        match random.random_range(0..5) {
            0 => writer.merge().unwrap(),
            1 => writer.tune_with(random.random_range(0.4..3.0), 1).unwrap(),
            2 => {
                let some: Vec<_> = writer.layers().iter().map(|layer| layer.id).step_by(3).collect();
                writer.drop_layers(&some).unwrap();
            }
            _ => {
                let key = random.random_range(0..1000);
                let (key, values) = put(key, round);
                let gone = Key::U64(random.random_range(0..1000));
                writer.change(vec![Change::Put(key.clone(), values.clone()), Change::Delete(gone.clone())]).unwrap();
                all.insert(key, values);
                all.remove(&gone);
            }
        }
        if random.random_bool(0.6) {
            reader.refresh().unwrap();
            check(&reader, &all, round);
            assert_eq!(reader.layers(), Store::open(&path).unwrap().layers());
            assert!(!reader.refresh().unwrap(), "nothing came since");
        }
    }
    reader.refresh().unwrap();
    check(&reader, &all, 99);
}

#[test]
fn a_shard_that_was_built_anew_is_seen_too() {
    let (_folder, path, all) = built(1, 300, 0.8);
    let change = |key: u64| {
        let (key, values) = put(key, 1);
        Store::open_to_change(&path).unwrap().change(vec![Change::Put(key, values)]).unwrap();
    };
    change(5_000);
    let reader = Store::open(&path).unwrap();
    assert_eq!(reader.count_all().unwrap(), all.len() as u64 + 1);
    // Byte for byte the same shard, but without the update.
    build(&path, &all, 0.8);
    assert!(reader.refresh().unwrap());
    check(&reader, &all, 1);
    let other = records(&mut random(7), 250);
    build(&path, &other, 1.5);
    assert!(reader.refresh().unwrap());
    check(&reader, &other, 2);
    // One that is gone is an error, and what was seen last goes on to answer.
    std::fs::remove_dir_all(&path).unwrap();
    reader.refresh().unwrap_err();
    check(&reader, &other, 3);
}

#[test]
fn readers_that_refresh_beside_a_writer_never_lose_an_update() {
    let (_folder, path, _) = built(1, 100, 0.6);
    let writer = Store::open_to_change(&path).unwrap();
    let published = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let reader = Store::open(&path).unwrap();
            loop {
                let there = published.load(std::sync::atomic::Ordering::Acquire);
                reader.refresh().unwrap();
                let opened = Store::open(&path).unwrap();
                for key in 0..there {
                    let (key, values) = put(10_000 + key, 3);
                    assert_eq!(reader.get(&key, None).unwrap().as_ref(), Some(&values), "{key} of {there}, refreshed");
                    assert_eq!(opened.get(&key, None).unwrap().as_ref(), Some(&values), "{key} of {there}, opened");
                }
                if there == 60 {
                    return;
                }
            }
        });
        for key in 0..60 {
            let (put_key, values) = put(10_000 + key, 3);
            writer.change(vec![Change::Put(put_key, values)]).unwrap();
            published.store(key + 1, std::sync::atomic::Ordering::Release);
            if key % 3 == 0 {
                writer.merge().unwrap();
            }
        }
        reading.join().unwrap();
    });
}

#[test]
fn a_log_without_the_part_that_is_asked_for_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let log = LocalLog::open(folder.path(), 1).unwrap();
    (0..3).for_each(|_| _ = log.append(b"entry").unwrap());
    let next = log.roll().unwrap();
    log.append(b"entry").unwrap();
    log.forget(next).unwrap();
    LocalLog::read(folder.path(), next, &mut |_, _| Ok(())).unwrap();
    // Whoever read the manifest before a merge, and the log after it, must not take the rest of the log for all of it.
    LocalLog::read(folder.path(), 1, &mut |_, _| Ok(())).unwrap_err();
}
