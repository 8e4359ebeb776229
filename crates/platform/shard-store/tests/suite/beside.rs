//! Readers beside changes: every answer is right, and memory comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use forebay_shard::{Key, LayerId, Value};
use forebay_shard_store::{Change, Condition, Store};
use rand::Rng;

use crate::support::*;

#[test]
fn answers_stay_right_while_layers_records_and_files_change() {
    let (_folder, path, all) = built(1, 400, 0.8);
    let store = Arc::new(Store::open_to_change(&path).unwrap());
    let (stop, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2u64)
            .map(|reader| {
                let (store, path, all, stop, rounds) = (&store, &path, &all, &stop, &rounds);
                scope.spawn(move || {
                    let mut seed = reader;
                    while !stop.load(Ordering::Relaxed) {
                        check(store, all, seed);
                        // Another process' reader sees whole states as well.
                        check(&Store::open(path).unwrap(), all, seed);
                        seed += 2;
                        rounds.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let mut random = random(3);
        let mut round = 0;
        while (round < 12 || rounds.load(Ordering::Relaxed) < 8) && !readers.iter().any(|reader| reader.is_finished()) {
            round += 1;
            match round % 4 {
                0 => store.merge().unwrap(),
                1 => {
                    // The same values again: answers stay as they are.
                    let keys: Vec<_> = all.keys().filter(|_| random.random_bool(0.1)).cloned().collect();
                    store.change(keys.into_iter().map(|key| Change::Put(key.clone(), all[&key].clone())).collect()).unwrap();
                }
                2 => store.tune_with(random.random_range(0.4..4.0), 2).unwrap(),
                _ => {
                    let there: Vec<LayerId> =
                        store.layers().iter().map(|layer| layer.id).filter(|_| random.random_bool(0.4)).collect();
                    store.drop_layers(&there).unwrap();
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
    check(&store, &all, 99);
}

#[test]
fn a_search_that_crosses_zero_sees_one_state() {
    let (_folder, path, _) = built(7, 100, 0.5);
    let store = Store::open_to_change(&path).unwrap();
    let key = |number: i64| Key::U64(number as u64);
    let word = || vec![Value::Text("wanderer".into()), Value::Null, Value::Null, Value::Null];
    let condition = Condition::parse("word = wanderer").unwrap();
    store.change(vec![Change::Put(key(-1), word())]).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // One record that goes from below zero to above it and back, both in one change.
            for round in 0.. {
                let (from, to) = if round % 2 == 0 { (-1, 1_000_000) } else { (1_000_000, -1) };
                store.change(vec![Change::Delete(key(from)), Change::Put(key(to), word())]).unwrap();
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let found: Vec<usize> = (0..1000).map(|_| store.search(&condition, None, None).unwrap().len()).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(found.iter().all(|count| *count == 1), "{found:?}");
    });
}
