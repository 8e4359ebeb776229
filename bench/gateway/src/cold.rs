//! Reads of what no cache has yet: ranges, small objects and large files through the gateway, against the store itself.

use crate::load::{self, Ask, run, whole};
use crate::rig::{LINK, Rig, environment};
use forebay_bench_harness::{at_least, at_most};

const FILE_BYTES: u64 = 30_000_000;

/// Directly and through the gateway, each asked the same; seconds of both, and what the store sent for the gateway.
async fn both(rig: &Rig, asks: &[Ask], connections: usize) -> (f64, f64) {
    let direct = run(rig.s3.address(), asks, connections).await;
    rig.s3.reset_counters();
    let ours = run(rig.address(), asks, connections).await;
    (direct.as_secs_f64(), ours.as_secs_f64())
}

pub async fn ranges() {
    environment();
    let rig = Rig::start().await;
    let paths = rig.store("files", 32, FILE_BYTES as usize);
    let asks = load::ranges(&paths, FILE_BYTES, 64 << 10, 1500);
    let (direct, ours) = both(&rig, &asks, 4).await;
    let ops = asks.len() as f64;
    at_least("cold-64k-ranges", "ops/s", ops / ours, ("direct", ops / direct), 0.9);
    let asked: u64 = asks.iter().map(|ask| ask.bytes).sum();
    at_most("cold-64k-ranges-store-bytes", "bytes", rig.s3.counters().bytes_out as f64, ("asked", asked as f64), 1.1);
}

pub async fn small() {
    environment();
    let rig = Rig::start().await;
    let paths = rig.store("small", 2000, 50_000);
    let asks = whole(&paths, 50_000);
    let (direct, ours) = both(&rig, &asks, 16).await;
    at_least("cold-50kb-objects", "ops/s", 2000.0 / ours, ("direct", 2000.0 / direct), 0.8);
    let counted = rig.s3.counters();
    at_most("cold-50kb-objects-store-requests", "requests", counted.requests() as f64, ("objects", 2000.0), 1.0);
}

pub async fn files() {
    environment();
    let rig = Rig::start().await;
    let paths = rig.store("files", 32, FILE_BYTES as usize);
    let asks = whole(&paths, FILE_BYTES);
    let ours = run(rig.address(), &asks, 8).await.as_secs_f64();
    at_least("cold-30mb-files", "bytes/s", 32.0 * FILE_BYTES as f64 / ours, ("link", LINK as f64), 0.95);
}
