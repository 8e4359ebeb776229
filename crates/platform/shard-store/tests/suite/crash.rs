//! A writer that is killed: what was acknowledged is there, what is there is whole.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use forebay_shard::{Key, Value};
use forebay_shard_store::{Change, Store, UpdateLimits};
use rand::Rng;

use crate::support::{build, check, random, records, values};

const FOLDER: &str = "FOREBAY_TEST_WRITER_FOLDER";
const SEED: &str = "FOREBAY_TEST_WRITER_SEED";

/// The values that the writer puts for a key in a round.
fn put(seed: u64, key: u64) -> Vec<Value> {
    values(&mut random(seed * 1_000_003 + key))
}

/// The process that is killed: it runs this same test, with an environment that says so.
#[test]
fn writer() {
    let (Ok(folder), Ok(seed)) = (std::env::var(FOLDER), std::env::var(SEED)) else { return };
    let seed: u64 = seed.parse().unwrap();
    // Updates are gathered and merged all the time.
    let limits = UpdateLimits { gather_bytes: 256, merge_bytes: 1 << 10, pending_bytes: 8 << 10 };
    let store = std::sync::Arc::new(Store::open_to_change_with(std::path::Path::new(&folder), limits).unwrap());
    let tuning = store.clone();
    std::thread::spawn(move || {
        let mut random = random(seed);
        loop {
            tuning.tune_with(random.random_range(0.4..2.0), 1).unwrap();
        }
    });
    for key in 0.. {
        store.change(vec![Change::Put(Key::U64(key), put(seed, key)), Change::Delete(Key::U64(key + 1_000_000))]).unwrap();
        // Acknowledged, also to the one who kills.
        eprintln!("acknowledged {key}");
    }
}

#[test]
fn nothing_acknowledged_is_lost_by_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.shard");
    let mut all = records(&mut random(1), 300);
    for key in 0..300u64 {
        all.insert(Key::U64(key + 1_000_000), values(&mut random(key)));
    }
    build(&path, &all, 0.8);
    for seed in 1..=4u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::writer", "--nocapture"])
            .env(FOLDER, &path)
            .env(SEED, seed.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut acknowledged = Vec::new();
        for line in lines.by_ref().take(20 + 37 * seed as usize) {
            acknowledged.push(line.unwrap());
        }
        child.kill().unwrap();
        // What it said before it died counts as well.
        acknowledged.extend(lines.map_while(Result::ok));
        child.wait().unwrap();
        let last = acknowledged.iter().filter_map(|line| line.strip_prefix("acknowledged ")?.parse::<u64>().ok()).max().unwrap();
        for key in 0..=last {
            all.insert(Key::U64(key), put(seed, key));
            all.remove(&Key::U64(key + 1_000_000));
        }
        let store = Store::open(&path).unwrap();
        // One change more may be there: it was durable, and the process died before it could say so.
        let next = Key::U64(last + 1);
        if store.get(&next, None).unwrap() == Some(put(seed, last + 1)) {
            all.insert(next, put(seed, last + 1));
            all.remove(&Key::U64(last + 1_000_001));
        }
        check(&store, &all, seed);
        let store = Store::open_to_change(&path).unwrap();
        check(&store, &all, seed);
        store.merge().unwrap();
        check(&store, &all, seed);
    }
}
