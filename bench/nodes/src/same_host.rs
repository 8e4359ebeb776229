//! Bar of values read beside their worker: time to the first byte in place, and copying against memcpy.

use std::hint::black_box;
use std::time::Instant;

use forebay_client::{CreateOptions, NodeType};

use crate::clock::p50;
use crate::rig::Rig;
use crate::sequential::gbytes;
use forebay_bench_harness::{at_least, at_most, median};

const BYTES: usize = 1 << 20;
/// Values that are read in turn: more than a processor's caches hold.
const VALUES: usize = 64;

/// Get of 1 MB beside its worker: in place to the first byte, and copied against a copy of as much memory.
pub async fn all(requests: usize, rounds: usize) {
    let rig = Rig::start();
    let nodes = rig.nodes(true).await;
    nodes.create("/tmp/t", CreateOptions::new(NodeType::Table)).await.unwrap();
    let paths: Vec<String> = (0..VALUES).map(|at| format!("/tmp/t/{at}")).collect();
    for path in &paths {
        nodes.put(path, vec![7; BYTES]).await.unwrap();
    }
    let plain: Vec<Vec<u8>> = (0..VALUES).map(|at| vec![at as u8; BYTES]).collect();
    let mut into = vec![0; BYTES];
    let (mut first_bytes, mut copied, mut copies) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (nodes, paths) = (&nodes, &paths);
        first_bytes.push(
            p50(requests / 10, |at| async move {
                assert_eq!(black_box(nodes.get(&paths[at % VALUES]).await.unwrap()[0]), 7);
            })
            .await,
        );
        let began = Instant::now();
        for at in 0..requests / 10 {
            into.copy_from_slice(&nodes.get(&paths[at % VALUES]).await.unwrap());
            black_box(&mut into);
        }
        copied.push(gbytes(requests / 10 * BYTES, began));
        let began = Instant::now();
        for at in 0..requests / 10 {
            into.copy_from_slice(black_box(&plain[at % VALUES]));
            black_box(&mut into);
        }
        copies.push(gbytes(requests / 10 * BYTES, began));
    }
    at_most("unix get 1 MB in place, first byte, p50", "us", median(first_bytes), ("the bar", 10.0), 1.0);
    at_least("unix get 1 MB, copied", "GB/s", median(copied), ("memcpy", median(copies)), 0.85);
}
