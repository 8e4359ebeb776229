//! Bar of small values: get and put by TCP, Unix socket and shared memory, against Redis; and what an idle worker costs.

use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_client::{CreateOptions, NodeType, Nodes};

use crate::clock::{p50, rate};
use crate::redis::Redis;
use crate::rig::{Rig, Way};
use forebay_bench_harness::{at_least, at_most, median};

/// Keys that are used in turn.
const KEYS: usize = 96;
/// Requests that go together.
const TOGETHER: usize = 16;

/// How long an idle worker is watched.
const IDLE: Duration = Duration::from_secs(5);

/// Get and put, one at a time and 16 together: as one batch, which is what Redis's pipeline is, and as calls of their own. The
/// peer's one at a time are asked by a plain client, since redis-benchmark tells times of less than 10 us in steps of 8. Shared
/// memory stands beside Redis over its Unix socket.
pub async fn all(requests: usize, rounds: usize) {
    let (rig, redis) = (Rig::start(), Redis::start());
    for (by, way, bar) in [(Way::Tcp, "tcp", 0.8), (Way::Unix, "unix", 0.75), (Way::SharedMemory, "shared-memory", 0.75)] {
        let (nodes, unix) = (rig.nodes_by(by).await, by != Way::Tcp);
        let table = format!("/tmp/{way}");
        nodes.create(&table, CreateOptions::new(NodeType::Table)).await.unwrap();
        let names: Vec<String> = (0..KEYS).map(|key| format!("key:{key:012}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let paths: Vec<String> = names.iter().map(|name| format!("{table}/{name}")).collect();
        for bytes in [64, 1024] {
            let value = Bytes::from(vec![7; bytes]);
            for test in ["set", "get"] {
                let (mut ours, mut theirs) = (Vec::new(), Vec::new());
                for _ in 0..rounds {
                    ours.push(p50(requests, |at| one(&nodes, test, &paths[at % KEYS], &value)).await);
                    theirs.push(plain_p50(&redis, test, bytes, requests, unix));
                }
                let name = format!("{way} {test} {bytes} B p50");
                let ours = median(ours);
                at_most(&name, "us", ours, ("redis", median(theirs)), bar);
                if by == Way::SharedMemory {
                    at_most(&name, "us", ours, ("the bar", 3.0), 1.0);
                }
                let (mut ours, mut single, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
                for _ in 0..rounds {
                    let batches = requests * 10 / TOGETHER;
                    let batch = |at: usize| many(&nodes, test, &table, &names[at * TOGETHER % KEYS..][..TOGETHER], &value);
                    ours.push(rate(batches, 1, batch).await * TOGETHER as f64);
                    single.push(rate(requests * 10, TOGETHER, |at| one(&nodes, test, &paths[at % KEYS], &value)).await);
                    let best = plain_rate(&redis, test, bytes, batches, unix);
                    theirs.push(redis.run(test, bytes, batches * TOGETHER, TOGETHER, unix).max(best));
                }
                let theirs = ("redis", median(theirs));
                at_least(&format!("{way} {test} {bytes} B, 16 together"), "ops/s", median(ours), theirs, 1.3);
                at_least(&format!("{way} {test} {bytes} B, 16 calls in flight"), "ops/s", median(single), theirs, 1.3);
            }
        }
        if by == Way::SharedMemory {
            // The client is connected still.
            let before = rig.processor_secs();
            tokio::time::sleep(IDLE).await;
            let share = (rig.processor_secs() - before) / IDLE.as_secs_f64();
            at_most("idle worker with a ring, share of a core", "%", share * 100.0, ("the bar", 1.0), 1.0);
        }
    }
}

async fn one(nodes: &Nodes, test: &str, path: &str, value: &Bytes) {
    match test {
        "set" => nodes.put(path, value.clone()).await.unwrap(),
        _ => assert_eq!(nodes.get(path).await.unwrap().len(), value.len()),
    }
}

async fn many(nodes: &Nodes, test: &str, table: &str, names: &[&str], value: &Bytes) {
    match test {
        "set" => {
            let values: Vec<_> = names.iter().map(|name| (*name, value.clone())).collect();
            assert!(nodes.put_many(table, &values).await.unwrap().iter().all(Result::is_ok));
        }
        _ => {
            let values = nodes.get_many(table, names).await.unwrap();
            assert!(values.into_iter().all(|got| got.unwrap().len() == value.len()));
        }
    }
}

fn plain_p50(redis: &Redis, test: &str, bytes: usize, requests: usize, unix: bool) -> f64 {
    let mut plain = redis.plain(test, bytes, 1, unix);
    let times = (0..requests).map(|_| {
        let began = Instant::now();
        plain.ask();
        began.elapsed().as_secs_f64() * 1e6
    });
    median(times.collect())
}

fn plain_rate(redis: &Redis, test: &str, bytes: usize, batches: usize, unix: bool) -> f64 {
    let mut plain = redis.plain(test, bytes, TOGETHER, unix);
    let began = Instant::now();
    (0..batches).for_each(|_| plain.ask());
    (batches * TOGETHER) as f64 / began.elapsed().as_secs_f64()
}
