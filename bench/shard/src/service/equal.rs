//! Gets against Redis with the same memory, twice and three times as many records as that holds.

use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_bench_harness::{Bar, Figure, Rounds};
use forebay_shared_storage::{Class, Get, GetRange, Storage};
use forebay_types::{Error, ObjectVersion, Result};

use super::data::Data;
use super::gets::{IN_FLIGHT, rate_of_json, tell};
use super::redis::{Connection, Redis};
use super::rig::{Rig, Settings};
use super::wait::{stored_bytes, until_at_rest};
use crate::workload::Skew;

/// What the records as Redis keeps them are over what either has of memory.
const OVER: [f64; 2] = [2.0, 3.0];
/// Of a request to shared storage.
const LATENCY: Duration = Duration::from_millis(10);
/// The replica's size, as a part of the records' own bytes, at most: beyond it gets are little faster.
const SIZE_MAX: f64 = 1.5;
/// Of what both may have a shard takes so much at most: its files are a little larger or smaller than its size says.
const FILLED: f64 = 0.97;

/// One worker against one Redis, misses of which are read by range from the same store.
pub(crate) async fn figures(data: &Data, rounds: usize, seconds: u64) -> Result<()> {
    let all = memory_of_all(data).await? as f64;
    for over in OVER {
        at(data, rounds, seconds, (over, all / over)).await?;
    }
    Ok(())
}

async fn at(data: &Data, rounds: usize, seconds: u64, (over, memory): (f64, f64)) -> Result<()> {
    let mut rig = Rig::start(Settings { workers: 1, ..Settings::default() }).await?;
    let size = (memory * FILLED / data.input_bytes() as f64).min(SIZE_MAX);
    let shards = rig.create(data, "equal.shards", 4, vec![size]).await?;
    until_at_rest(&shards, data).await?;
    let lake = Lake::store(&mut rig, data).await?;
    let ours = stored_bytes(&shards).await? as f64;
    if ours > memory {
        return Err(Error::internal(format!("the shards take {ours} bytes, which is more than the {memory} that both may have")));
    }
    let what = format!("equal memory, records {over}x of it");
    Figure::new(format!("{what}: bytes of the shards"), ours, "bytes", "what Redis has", memory, Bar::RatioAtMost(1.0))
        .print(true);
    let most = format!("{}", memory as u64);
    let redis = Redis::start(&["--maxmemory", &most, "--maxmemory-policy", "allkeys-lfu"])?;
    rig.until_heard().await;
    rig.s3.set_link(0, LATENCY)?;
    let rows: Vec<usize> = data.gets(Skew::Zipf, 400_000, 5).into_iter().filter_map(|key| data.row(key)).collect();
    let length = Duration::from_secs(seconds);
    // It learns what is asked often first.
    lake.rate(&redis, &rows, length * 3).await?;
    let keys: Vec<u64> = rows.iter().map(|row| data.records.keys()[*row]).collect();
    let (mut gets, mut missed) = (Rounds::default(), Vec::new());
    for _ in 0..rounds {
        // Both hand over JSON.
        let (ours, _) = rate_of_json(&shards, &keys, length).await?;
        let (theirs, misses) = lake.rate(&redis, &rows, length).await?;
        gets.push(ours, theirs);
        missed.push(misses);
    }
    let missed = forebay_bench_harness::median(missed) * 100.0;
    tell(&format!("gets at {what}, zipf 0.99; {missed:.1} % of Redis' miss"), &gets, "redis", Bar::RatioAtLeast(3.0));
    Ok(())
}

/// What Redis takes for all of the records.
async fn memory_of_all(data: &Data) -> Result<u64> {
    let redis = Redis::start(&[])?;
    redis.fill((0..data.records.len()).map(|row| data.json(row).to_string())).await?;
    redis.connect().await?.used_memory().await
}

/// The records as one object, a JSON line each.
struct Lake {
    storage: Storage,
    version: ObjectVersion,
    lines: Vec<Range<u64>>,
}

impl Lake {
    async fn store(rig: &mut Rig, data: &Data) -> Result<Self> {
        let (mut bytes, mut lines) = (Vec::new(), Vec::new());
        for row in 0..data.records.len() {
            let from = bytes.len() as u64;
            bytes.extend(data.json(row).to_string().into_bytes());
            lines.push(from..bytes.len() as u64);
        }
        let info = rig.s3.put("equal.jsonl", Bytes::from(bytes)).await?;
        Ok(Self { storage: rig.s3.storage()?, version: info.version, lines })
    }

    /// Gets a second, and the part of them that had to go to the store.
    async fn rate(&self, redis: &Redis, rows: &[usize], length: Duration) -> Result<(f64, f64)> {
        let began = Instant::now();
        let asker = |asker: usize| async move {
            let mut connection = redis.connect().await?;
            let (mut count, mut misses) = (0u64, 0u64);
            for row in rows.iter().skip(asker).step_by(IN_FLIGHT).cycle() {
                if began.elapsed() > length {
                    break;
                }
                misses += u64::from(self.get(&mut connection, *row).await?);
                count += 1;
            }
            Ok::<_, Error>((count, misses))
        };
        let counts = futures::future::try_join_all((0..IN_FLIGHT).map(asker)).await?;
        let (count, misses) = counts.into_iter().fold((0, 0), |(a, b), (count, misses)| (a + count, b + misses));
        Ok((count as f64 / began.elapsed().as_secs_f64(), misses as f64 / count as f64))
    }

    /// One record; true where it was not there, and is put there for the next one.
    async fn get(&self, connection: &mut Connection, row: usize) -> Result<bool> {
        if let Some(record) = connection.get(row).await? {
            parse(&record)?;
            return Ok(false);
        }
        let record = self.read(row).await?;
        parse(&record)?;
        connection.set(row, &record).await?;
        Ok(true)
    }

    async fn read(&self, row: usize) -> Result<Vec<u8>> {
        let range = GetRange::Bounded(self.lines[row].clone());
        let get = Get { key: &self.version.key, range, if_match: Some(&self.version.tag), class: Class::Demand };
        let mut body = self.storage.get(get).await?;
        let mut record = Vec::new();
        while let Some(bytes) = body.next().await {
            record.extend_from_slice(&bytes?);
        }
        Ok(record)
    }
}

/// As the other side's client does.
fn parse(record: &[u8]) -> Result<()> {
    let json: serde_json::Value = serde_json::from_slice(record).map_err(|error| Error::internal(error.to_string()))?;
    std::hint::black_box(json);
    Ok(())
}
