//! Bar of large values: get of 64 KB and of 1 MB over TCP, against Redis.

use forebay_client::{CreateOptions, NodeType};

use crate::clock::{p50, rate};
use crate::redis::Redis;
use crate::rig::Rig;
use forebay_bench_harness::{at_least, at_most, median};

/// Get over TCP: 64 KB by its middle time, 1 MB by values a second, one at a time both.
pub async fn all(requests: usize, rounds: usize) {
    let (rig, redis) = (Rig::start(), Redis::start());
    let nodes = rig.nodes(false).await;
    nodes.create("/tmp/t", CreateOptions::new(NodeType::Table)).await.unwrap();
    for bytes in [64 << 10, 1 << 20] {
        nodes.put("/tmp/t/k", vec![7; bytes]).await.unwrap();
        let requests = if bytes > 64 << 10 { requests / 20 } else { requests / 2 };
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let get = async || assert_eq!(nodes.get("/tmp/t/k").await.unwrap().len(), bytes);
        for _ in 0..rounds {
            let mut plain = redis.plain("get", bytes, 1, false);
            let mut theirs_at = |_| {
                plain.ask();
                std::future::ready(())
            };
            if bytes > 64 << 10 {
                ours.push(rate(requests, 1, |_| get()).await);
                theirs.push(rate(requests, 1, &mut theirs_at).await.max(redis.run("get", bytes, requests, 1, false)));
            } else {
                ours.push(p50(requests, |_| get()).await);
                theirs.push(p50(requests, &mut theirs_at).await);
            }
        }
        if bytes > 64 << 10 {
            at_least("tcp get 1 MB", "ops/s", median(ours), ("redis", median(theirs)), 1.2);
        } else {
            at_most("tcp get 64 KB p50", "us", median(ours), ("redis", median(theirs)), 0.9);
        }
    }
}
