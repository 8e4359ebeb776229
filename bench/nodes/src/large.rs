//! Bar of large values: get of 64 KB and of 1 MB over TCP, against Redis.

use forebay_client::{CreateOptions, NodeType};

use crate::clock::{p50, rate};
use crate::echo::{Echo, SMALL};
use crate::redis::Redis;
use crate::rig::Rig;
use forebay_bench_harness::{Bar, Figure, median};

/// Get over TCP: 64 KB by its middle time, 1 MB by values a second, one at a time both; the limit is a plain socket that gives as many
/// bytes.
pub async fn all(requests: usize, rounds: usize) {
    let (rig, redis, echo) = (Rig::start(), Redis::start(), Echo::start());
    let nodes = rig.nodes(false).await;
    nodes.create("/tmp/t", CreateOptions::new(NodeType::Table)).await.unwrap();
    for bytes in [64 << 10, 1 << 20] {
        nodes.put("/tmp/t/k", vec![7; bytes]).await.unwrap();
        let requests = if bytes > 64 << 10 { requests / 20 } else { requests / 2 };
        let (mut ours, mut theirs, mut limit) = (Vec::new(), Vec::new(), Vec::new());
        let get = async || assert_eq!(nodes.get("/tmp/t/k").await.unwrap().len(), bytes);
        for _ in 0..rounds {
            let (mut plain, mut echo) = (redis.plain("get", bytes, 1, false), echo.plain((SMALL, bytes), 1, false));
            if bytes > 64 << 10 {
                ours.push(rate(requests, 1, |_| get()).await);
                theirs.push(plain.rate(requests).max(redis.run("get", bytes, requests, 1, false)));
                limit.push(echo.rate(requests));
            } else {
                ours.push(p50(requests, |_| get()).await);
                theirs.push(plain.p50(requests));
                limit.push(echo.p50(requests));
            }
        }
        let (name, unit, bar) = if bytes > 64 << 10 {
            ("tcp get 1 MB", "ops/s", Bar::RatioAtLeast(1.2))
        } else {
            ("tcp get 64 KB p50", "us", Bar::RatioAtMost(0.9))
        };
        Figure::new(name, median(ours), unit, "redis", median(theirs), bar).within(median(limit)).print(true);
    }
}
