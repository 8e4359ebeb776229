use bytes::Bytes;
use forebay_client::{CreateOptions, NodeType, Nodes};

use crate::clock::{p50, rate};
use crate::figure::{at_least, at_most, median};
use crate::redis::Redis;
use crate::rig::Rig;

/// Keys that are used in turn.
const KEYS: usize = 100;

pub async fn all(requests: usize, rounds: usize) {
    let (rig, redis) = (Rig::start(), Redis::start());
    for (unix, way, bar) in [(false, "tcp", 0.8), (true, "unix", 0.75)] {
        let nodes = rig.nodes(unix).await;
        let table = format!("/tmp/{way}");
        nodes.create(&table, CreateOptions::new(NodeType::Table)).await.unwrap();
        let paths: Vec<String> = (0..KEYS).map(|key| format!("{table}/key:{key:012}")).collect();
        for bytes in [64, 1024] {
            let value = Bytes::from(vec![7; bytes]);
            for test in ["set", "get"] {
                let (mut ours, mut theirs) = (Vec::new(), Vec::new());
                for _ in 0..rounds {
                    ours.push(p50(requests, |at| one(&nodes, test, &paths[at % KEYS], &value)).await);
                    theirs.push(redis.run(test, bytes, requests, 1, unix).p50_us);
                }
                let name = format!("{way} {test} {bytes} B p50");
                at_most(&name, "us", median(ours), ("redis", median(theirs)), bar);
                let (mut ours, mut theirs) = (Vec::new(), Vec::new());
                for _ in 0..rounds {
                    ours.push(rate(requests * 10, 16, |at| one(&nodes, test, &paths[at % KEYS], &value)).await);
                    theirs.push(redis.run(test, bytes, requests * 10, 16, unix).ops_per_sec);
                }
                let name = format!("{way} {test} {bytes} B, 16 in flight");
                at_least(&name, "ops/s", median(ours), ("redis", median(theirs)), 1.3);
            }
        }
    }
}

async fn one(nodes: &Nodes, test: &str, path: &str, value: &Bytes) {
    match test {
        "set" => nodes.put(path, value.clone()).await.unwrap(),
        _ => assert_eq!(nodes.get(path).await.unwrap().len(), value.len()),
    }
}
