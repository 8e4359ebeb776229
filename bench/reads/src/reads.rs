//! Benchmarks of reads through the client's API, without an engine.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use forebay_client::Client;
use forebay_protocol::RangeSpec;
use forebay_shared_storage::{Class, Get, GetRange, Storage};
use forebay_types::{Key, ObjectVersion, OperationId, Result, SEGMENT_BYTES};
use futures::stream::{self, StreamExt, TryStreamExt};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::bytes_of::{random_bytes, sum};
use crate::rig::{Rig, RigSettings, path};
use crate::traffic::Traffic;
use forebay_bench_harness::{Bar, Figure, median};

pub(crate) const READER: OperationId = OperationId(1);
const GBIT: u64 = 125_000_000;

/// Makes sure that what was computed is not optimised away.
pub(crate) fn keep(value: u64) {
    std::hint::black_box(value);
}

async fn fill(rig: &mut Rig, key: &str, bytes: u64) -> Result<ObjectVersion> {
    rig.s3.put(key, random_bytes(bytes, bytes as usize)).await?;
    Ok(rig.client.open(&path(key)?).await?.version)
}

async fn warm(client: &Client, version: &ObjectVersion) -> Result<()> {
    client.load(vec![version.clone()], false, |_| ()).await?;
    Ok(())
}

/// One read of an object that nobody has opened.
pub async fn unknown() -> Result<Vec<Figure>> {
    let mut rig = Rig::start(RigSettings::default()).await?;
    rig.s3.put("fresh.bin", random_bytes(1, 100_000)).await?;
    rig.s3.take_counters()?;
    let (_, range, bytes) = rig.client.read_latest(READER, &path("fresh.bin")?, RangeSpec::From { start: 0 }).await?;
    assert_eq!((range, bytes.len()), (0..100_000, 100_000), "the whole object came");
    let counts = rig.s3.take_counters()?;
    let requests = counts.requests as f64;
    Ok(vec![Figure::new("unknown object, one read: requests", requests, "requests", "one GET", 1.0, Bar::ValueAtMost(1.0))])
}

async fn direct_read(storage: &Storage, key: &Key, start: u64, len: u64) -> Result<()> {
    let range = GetRange::Bounded(start..start + len);
    let mut body = storage.get(Get { key, range, if_match: None, class: Class::Demand }).await?;
    while let Some(chunk) = body.next().await {
        keep(sum(&chunk?));
    }
    Ok(())
}

/// 1,500 random reads of 64 KB over 1 Gbit/s, four at a time, cold; the peer reads shared storage directly.
pub async fn random() -> Result<Vec<Figure>> {
    const READS: usize = 1_500;
    const LEN: u64 = 65_536;
    const OBJECTS: u64 = 16;
    let mut rig = Rig::start(RigSettings { link: Some(GBIT), ..RigSettings::default() }).await?;
    let mut versions = Vec::new();
    rig.s3.set_link(0, Duration::ZERO)?;
    for object in 0..OBJECTS {
        versions.push(fill(&mut rig, &format!("random/{object}"), SEGMENT_BYTES).await?);
    }
    rig.s3.set_link(GBIT, Duration::ZERO)?;
    let storage = rig.s3.storage()?;
    let (mut ours, mut direct, mut fetched, mut asked) = (Vec::new(), Vec::new(), 0, 0);
    for round in 0..3u64 {
        let mut random = StdRng::seed_from_u64(round);
        let picks: Vec<(usize, u64)> =
            (0..READS).map(|_| (random.random_range(0..OBJECTS as usize), random.random_range(0..SEGMENT_BYTES - LEN))).collect();

        let start = Instant::now();
        stream::iter(picks.iter().map(Ok))
            .try_for_each_concurrent(4, |(object, at)| direct_read(&storage, &versions[*object].key, *at, LEN))
            .await?;
        direct.push(READS as f64 / start.elapsed().as_secs_f64());

        rig.client.free(versions.clone()).await?;
        rig.s3.take_counters()?;
        let start = Instant::now();
        stream::iter(picks.iter().map(Ok))
            .try_for_each_concurrent(4, |(object, at)| {
                let (client, version, at) = (&rig.client, &versions[*object], *at);
                async move {
                    keep(sum(&client.read(READER, version, at..at + LEN).await?));
                    Ok::<_, forebay_types::Error>(())
                }
            })
            .await?;
        ours.push(READS as f64 / start.elapsed().as_secs_f64());
        fetched += rig.s3.take_counters()?.bytes_out;
        asked += READS as u64 * LEN;
    }
    Ok(vec![
        Figure::alone("1,500 random 64 KB reads, cold: bytes fetched", fetched as f64 / 1e6, "MB", Bar::RatioAtMost(1.1))
            .beside("bytes asked for", asked as f64 / 1e6),
        Figure::alone("1,500 random 64 KB reads, cold", median(ours), "ops/s", Bar::RatioAtLeast(0.94))
            .beside("shared storage directly", median(direct)),
    ])
}

/// A bound of 400 Mbit/s on a link of 1 Gbit/s, sampled at the worker's sockets while data is missing.
pub async fn bound() -> Result<Vec<Figure>> {
    const BOUND: u64 = 50_000_000;
    const BYTES: u64 = 8 * SEGMENT_BYTES;
    let mut rig = Rig::start(RigSettings { link: Some(GBIT), bound: Some(BOUND), ..RigSettings::default() }).await?;
    rig.s3.set_link(0, Duration::ZERO)?;
    let version = fill(&mut rig, "bound.bin", BYTES).await?;
    rig.s3.set_link(GBIT, Duration::ZERO)?;
    // The worker's first share arrives with its next heartbeat.
    tokio::time::sleep(Duration::from_secs(2)).await;

    let reader = {
        let (client, version) = (rig.client.clone(), version.clone());
        tokio::spawn(async move {
            stream::iter((0..BYTES / (4 << 20)).map(Ok))
                .try_for_each_concurrent(8, |part| {
                    let (client, version) = (&client, &version);
                    async move {
                        keep(sum(&client.read(READER, version, part * (4 << 20)..(part + 1) * (4 << 20)).await?));
                        Ok::<_, forebay_types::Error>(())
                    }
                })
                .await
        })
    };
    let traffic = Traffic::watch(|| rig.node.socket_bytes_in(), || reader.is_finished()).await?;
    reader.await.expect("the reader does not panic")?;
    Ok(traffic.figures("bound 400 Mbit/s", BOUND))
}

/// 1 GiB warm, read in place from start to end; the peers read as many bytes from the page cache, and from their own memory.
pub async fn sequential() -> Result<Vec<Figure>> {
    const BYTES: u64 = 16 * SEGMENT_BYTES;
    let mut rig = Rig::start(RigSettings::default()).await?;
    let version = fill(&mut rig, "sequential.bin", BYTES).await?;
    warm(&rig.client, &version).await?;
    let own = random_bytes(BYTES, BYTES as usize);
    let file = page_cache_file(&own)?;
    let (mut ours, mut cached, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    let mut buffer = vec![0; 1 << 20];
    for _ in 0..7 {
        let start = Instant::now();
        own.chunks(8 << 20).for_each(|part| keep(sum(part)));
        memory.push(BYTES as f64 / 1e9 / start.elapsed().as_secs_f64());

        let start = Instant::now();
        for part in 0..BYTES / (1 << 20) {
            file.read_exact_at(&mut buffer, part << 20)?;
            keep(sum(&buffer));
        }
        cached.push(BYTES as f64 / 1e9 / start.elapsed().as_secs_f64());

        let start = Instant::now();
        for part in 0..BYTES / (8 << 20) {
            keep(sum(&rig.client.read(READER, &version, part * (8 << 20)..(part + 1) * (8 << 20)).await?));
        }
        ours.push(BYTES as f64 / 1e9 / start.elapsed().as_secs_f64());
    }
    let (what, ours) = ("warm sequential read, same host, every byte consumed", median(ours));
    Ok(vec![
        Figure::new(what, ours, "GB/s", "page cache, 1 MiB reads", median(cached), Bar::RatioAtLeast(0.95)),
        Figure::new(what, ours, "GB/s", "memory of one's own", median(memory), Bar::Nothing),
    ])
}

/// A file with these bytes, all of them in the page cache.
pub(crate) fn page_cache_file(bytes: &[u8]) -> Result<File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(bytes)?;
    let mut buffer = vec![0; 1 << 20];
    for part in 0..bytes.len() as u64 >> 20 {
        file.read_exact_at(&mut buffer, part << 20)?;
    }
    Ok(file)
}

/// 512 MiB warm over TCP, 1 MiB a read, four in flight; the peer is a plain loopback connection read 1 MiB at a time.
pub async fn tcp() -> Result<Vec<Figure>> {
    const BYTES: u64 = 8 * SEGMENT_BYTES;
    let mut rig = Rig::start(RigSettings::default()).await?;
    let version = fill(&mut rig, "tcp.bin", BYTES).await?;
    warm(&rig.client, &version).await?;
    let client = rig.node.client(false).await?;
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..7 {
        plain.push(plain_tcp(BYTES).await?);
        let start = Instant::now();
        stream::iter(0..BYTES >> 20)
            .map(|part| client.read(READER, &version, part << 20..(part + 1) << 20))
            .buffered(4)
            .try_for_each(|bytes| {
                keep(bytes.len() as u64);
                futures::future::ok(())
            })
            .await?;
        ours.push(BYTES as f64 / 1e9 / start.elapsed().as_secs_f64());
    }
    Ok(vec![
        Figure::alone("warm read over TCP loopback, 1 MiB reads", median(ours), "GB/s", Bar::RatioAtLeast(0.8))
            .beside("plain loopback TCP, 1 MiB buffers", median(plain)),
    ])
}

async fn plain_tcp(bytes: u64) -> Result<f64> {
    use std::io::Read;
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let sender = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut socket, _) = listener.accept()?;
        let buffer = vec![7; 1 << 20];
        (0..bytes >> 20).try_for_each(|_| socket.write_all(&buffer))
    });
    let mut socket = std::net::TcpStream::connect(address)?;
    let mut buffer = vec![0; 1 << 20];
    let start = Instant::now();
    for _ in 0..bytes >> 20 {
        socket.read_exact(&mut buffer)?;
    }
    let rate = bytes as f64 / 1e9 / start.elapsed().as_secs_f64();
    sender.join().expect("the sender does not panic")?;
    Ok(rate)
}

/// p50 of warm random reads of 64 KiB, one at a time.
pub async fn latency() -> Result<Vec<Figure>> {
    const BYTES: u64 = 8 * SEGMENT_BYTES;
    const LEN: u64 = 64 << 10;
    const READS: usize = 10_000;
    let mut rig = Rig::start(RigSettings::default()).await?;
    let version = fill(&mut rig, "latency.bin", BYTES).await?;
    warm(&rig.client, &version).await?;
    let file = page_cache_file(&random_bytes(BYTES, BYTES as usize))?;
    let mut random = StdRng::seed_from_u64(7);
    let mut picks = || -> Vec<u64> { (0..READS).map(|_| random.random_range(0..BYTES / LEN) * LEN).collect() };

    let mut cached = Vec::new();
    let mut buffer = vec![0; LEN as usize];
    for at in picks() {
        let start = Instant::now();
        file.read_exact_at(&mut buffer, at)?;
        cached.push(start.elapsed().as_secs_f64() * 1e6);
    }
    let cached = median(cached);
    let mut figures = Vec::new();
    for (in_place, what, bar) in [(true, "same host", Bar::RatioAtMost(2.0)), (false, "loopback TCP", Bar::ValueAtMost(120.0))] {
        let client = rig.node.client(in_place).await?;
        let mut times = Vec::new();
        for at in picks() {
            let start = Instant::now();
            let bytes = client.read(READER, &version, at..at + LEN).await?;
            times.push(start.elapsed().as_secs_f64() * 1e6);
            keep(sum(&bytes));
        }
        // The first tenth opens connections and maps the tier.
        let p50 = median(times.split_off(READS / 10));
        figures.push(
            Figure::alone(format!("64 KiB random read, warm, {what}: p50"), p50, "us", bar)
                .beside("pread from the page cache", cached),
        );
    }
    Ok(figures)
}

/// How the live heap of the worker's process grows with each further GiB in its DRAM tier: the middle of four steps,
/// since a connection that is opened or closed meanwhile shows in one of them with its buffers.
pub async fn memory() -> Result<Vec<Figure>> {
    const STEP: u64 = 16 * SEGMENT_BYTES;
    let mut rig = Rig::start(RigSettings { dram_bytes: 8 << 30, ..RigSettings::default() }).await?;
    let mut live = Vec::new();
    for step in 0..5 {
        let version = fill(&mut rig, &format!("memory/{step}"), STEP).await?;
        warm(&rig.client, &version).await?;
        tokio::time::sleep(Duration::from_secs(3)).await;
        live.push(rig.node.live_bytes()? as f64);
    }
    let blocks = (STEP >> 20) as f64;
    let per_block = median(live.windows(2).map(|two| (two[1] - two[0]) / blocks).collect());
    Ok(vec![Figure::new("worker memory beyond its tiers, a block", per_block, "bytes", "the bar", 64.0, Bar::ValueAtMost(64.0))])
}
