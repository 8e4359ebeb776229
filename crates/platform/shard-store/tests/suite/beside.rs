//! Readers beside changes: every answer is right, and memory comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use forebay_shard::{Key, LayerId, LayerKind, Value};
use forebay_shard_store::{Change, Condition, Sealer, Store};
use rand::Rng;

use crate::support::{build, check, random, records};

#[test]
fn answers_stay_right_while_layers_records_and_files_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.shard");
    let all = records(&mut random(1), 400);
    build(&path, &all, 0.8);
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
fn layers_that_queries_filled_are_written_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.shard");
    let all = records(&mut random(5), 300);
    build(&path, &all, 0.1);
    let store = Arc::new(Store::open_to_change(&path).unwrap());
    store.tune(0.01).unwrap();
    assert!(store.layers().is_empty());
    let id = LayerId { kind: LayerKind::IsaAttribute, which: 2, slice: 0 };
    store.fill_layers(&[id]).unwrap();
    check(&store, &all, 1);
    let sealer = Sealer::start(store.clone()).unwrap();
    for key in all.keys() {
        assert_eq!(store.get(key, None).unwrap().as_ref(), all.get(key));
    }
    let started = std::time::Instant::now();
    let on_disk = || Store::open(&path).unwrap().layers().iter().any(|layer| layer.id == id);
    while !on_disk() && started.elapsed().as_secs() < 10 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(on_disk());
    sealer.stop().unwrap();
    check(&store, &all, 2);
    check(&Store::open(&path).unwrap(), &all, 2);
}

#[test]
fn a_sealer_that_could_not_write_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (path, away) = (folder.path().join("x.shard"), folder.path().join("away"));
    let all = records(&mut random(6), 300);
    build(&path, &all, 0.1);
    let store = Arc::new(Store::open_to_change(&path).unwrap());
    store.tune(0.01).unwrap();
    let id = LayerId { kind: LayerKind::IsaAttribute, which: 2, slice: 0 };
    store.fill_layers(&[id]).unwrap();
    std::fs::rename(&path, &away).unwrap();
    let sealer = Sealer::start(store.clone()).unwrap();
    for key in all.keys() {
        assert_eq!(store.get(key, None).unwrap().as_ref(), all.get(key));
    }
    assert!(store.seal_filled().is_err());
    std::thread::sleep(std::time::Duration::from_millis(300));
    std::fs::rename(&away, &path).unwrap();
    let started = std::time::Instant::now();
    let on_disk = || Store::open(&path).unwrap().layers().iter().any(|layer| layer.id == id);
    while !on_disk() && started.elapsed().as_secs() < 20 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(on_disk());
    sealer.stop().unwrap();
    check(&Store::open(&path).unwrap(), &all, 2);
}

#[test]
fn a_search_that_crosses_zero_sees_one_state() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.shard");
    let all = records(&mut random(7), 100);
    build(&path, &all, 0.5);
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
