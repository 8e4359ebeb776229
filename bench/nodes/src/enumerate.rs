//! Bar of small nodes: memory a node of a million, and entries listed a second.

use std::time::Instant;

use bytes::Bytes;
use forebay_client::{CreateOptions, NodeType};

use crate::clock::rate;
use crate::rig::Rig;
use forebay_bench_harness::{at_least, at_most};

const NODES: usize = 1_000_000;

/// A million key-values of 100 bytes: what the worker's process grows by, and how fast they are listed.
pub async fn all() {
    let rig = Rig::start();
    let nodes = rig.nodes(true).await;
    nodes.create("/tmp/t", CreateOptions::new(NodeType::Table)).await.unwrap();
    let value = Bytes::from(vec![7; 100]);
    nodes.put("/tmp/t/first", value.clone()).await.unwrap();
    let before = rig.resident_bytes();
    let put = |at| {
        let (nodes, path, value) = (&nodes, format!("/tmp/t/key:{at:012}"), value.clone());
        async move { nodes.put(&path, value).await.unwrap() }
    };
    rate(NODES, 256, put).await;
    let each = (rig.resident_bytes() - before) as f64 / NODES as f64;
    at_most("memory of a key-value of 100 bytes", "bytes", each, ("the bar", 300.0), 1.0);
    let began = Instant::now();
    let (mut count, mut after, mut last) = (0, None::<String>, false);
    while !last {
        let mut name_of_last = String::new();
        let page = nodes.list_into("/tmp/t", after.as_deref(), 10_000, |name, _, _| {
            count += 1;
            name_of_last.clear();
            name_of_last.push_str(name);
        });
        last = page.await.unwrap();
        after = Some(name_of_last);
    }
    assert_eq!(count, NODES + 1);
    let rate = count as f64 / began.elapsed().as_secs_f64();
    at_least("entries listed", "entries/s", rate, ("the bar", 1e6), 1.0);
}
