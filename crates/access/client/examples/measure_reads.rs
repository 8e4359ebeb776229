//! Measures warm reads through a client: `cargo run --profile fast -p forebay-client --example measure_reads`.
//!
//! A coordinator and a worker run in this process, on a runtime of their own, over a folder of files.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement that fails says why and ends")]

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use forebay_client::{Client, ClientSettings, Security};
use forebay_node::Node;
use forebay_testbed::add_mount;
use forebay_types::{MountOptions, ObjectVersion};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const LARGE: u64 = 512 << 20;
const SMALL: u64 = 50_000;
const SMALL_COUNT: usize = 10_000;
const RANDOM: u64 = 64 << 10;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir_all(data.join("small")).unwrap();
    let bytes: Vec<u8> = (0..LARGE / 8).flat_map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect();
    std::fs::write(data.join("large"), &bytes).unwrap();
    for ix in 0..SMALL_COUNT {
        std::fs::write(data.join(format!("small/{ix:05}")), &bytes[ix * 1000..ix * 1000 + SMALL as usize]).unwrap();
    }
    drop(bytes);
    let servers = runtime();
    let node = servers.block_on(serve(folder.path(), &data));
    runtime().block_on(measure(node.client_settings()));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

async fn serve(folder: &Path, data: &Path) -> Node {
    let mut node = Node::lead_in(folder, Security::default()).await.unwrap();
    let worker = node.worker_in(folder, 3 << 30);
    node.start_worker(worker).await.unwrap();
    let client = node.client().await.unwrap();
    add_mount(&client, "data", &format!("file://{}", data.display()), MountOptions::default()).await;
    node
}

async fn measure(settings: ClientSettings) {
    let client = |in_place, pins_max| {
        let settings = ClientSettings { in_place, pins_max, ..settings.clone() };
        async { Client::connect(settings).await.unwrap() }
    };
    let kept = client(true, 16_384).await;
    let large = kept.open(&"/data/large".parse().unwrap()).await.unwrap().version;
    let small: Vec<_> = kept.list_all(&"/data/small/".parse().unwrap()).await.unwrap();
    let small: Vec<_> = small.into_iter().map(|info| info.version).collect();
    kept.load(vec![large.clone()], false, |_| {}).await.unwrap();
    kept.load(small.clone(), false, |_| {}).await.unwrap();

    for (name, client) in [("kept pins", kept.clone()), ("no kept pins", client(true, 0).await), ("tcp", client(false, 0).await)]
    {
        let began = Instant::now();
        let mut sum = 0u64;
        for at in (0..LARGE).step_by(8 << 20) {
            sum ^= consume(&client.read(client.operation(), &large, at..at + (8 << 20)).await.unwrap());
        }
        let per_sec = LARGE as f64 / began.elapsed().as_secs_f64() / 1e9;
        println!("{name}: sequential, 8 MiB a read, every byte consumed: {per_sec:.2} GB/s ({sum:x})");
        random(name, &client, &large).await;
        for pass in 1..=3 {
            small_objects(name, pass, &client, &small).await;
        }
        println!("  {:?}", client.counters());
    }
}

async fn random(name: &str, client: &Client, large: &ObjectVersion) {
    // The second round finds what the first has pinned.
    if name == "kept pins" {
        for at in (0..LARGE).step_by(64 << 20) {
            client.read(client.operation(), large, at..at + (64 << 20)).await.unwrap();
        }
    }
    let mut random = SmallRng::seed_from_u64(1);
    let operation = client.operation();
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..20_000 {
        let at = random.random_range(0..LARGE - RANDOM);
        let began = Instant::now();
        black_box(client.read(operation, large, at..at + RANDOM).await.unwrap());
        times.push(began.elapsed());
    }
    times.sort();
    let at = |share: f64| times[(times.len() as f64 * share) as usize];
    println!("{name}: random 64 KiB: p50 {:?}, p99 {:?}", at(0.5), at(0.99));
}

async fn small_objects(name: &str, pass: u32, client: &Client, small: &[ObjectVersion]) {
    let operation = client.operation();
    let began = Instant::now();
    let mut tasks = Vec::new();
    for part in small.chunks(small.len().div_ceil(16)) {
        let (client, part) = (client.clone(), part.to_vec());
        tasks.push(tokio::spawn(async move {
            let mut sum = 0;
            for version in &part {
                sum ^= consume(&client.read(operation, version, 0..SMALL).await.unwrap());
            }
            sum
        }));
    }
    let mut sum = 0;
    for task in tasks {
        sum ^= task.await.unwrap();
    }
    let per_sec = small.len() as f64 / began.elapsed().as_secs_f64();
    println!("{name}: objects of 50 KB, pass {pass}: {per_sec:.0} a second ({sum:x})");
}

/// Looks at every byte.
fn consume(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().fold(0u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    rest.iter().fold(words, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}
