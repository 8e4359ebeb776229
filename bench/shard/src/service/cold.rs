//! What questions take of shared storage that are about a shard which no worker has.

use forebay_bench_harness::{Bar, Figure, line};
use forebay_shard::Key;
use forebay_types::{Error, Result};
use serde_json::json;

use super::data::{Data, literal};
use super::rig::{Rig, Settings};
use crate::workload::{ATTRIBUTES, Skew};

/// Shards of the dataset; each question is the first one of its shard.
const SHARDS: usize = 8;
/// Bytes that a get, or an equality of a few hits, may bring, and those of each hit past these.
const BYTES: f64 = 65_536.0;
const FEW_HITS: u64 = 8;
const HIT_BYTES: u64 = 4 << 10;
/// Of input, what shards have by themselves.
const SHARD_BYTES: u64 = 128 << 20;

pub(crate) async fn figures(data: &Data) -> Result<()> {
    let mut rig = Rig::start(Settings { workers: 1, ..Settings::default() }).await?;
    let shards = rig.create(data, "cold.shards", SHARDS, vec![0.5]).await?;
    rig.replace_workers().await?;
    // The manifest is brought once for all shards, and is none of theirs.
    shards.status().await?;
    let keys = data.gets(Skew::Uniform, 1000, 17);
    let mut asked = std::collections::BTreeSet::new();
    let (mut gets, mut bytes) = (0, 0);
    for key in keys {
        let shard = shards.dataset().shard_of(&Key::U64(key));
        if !asked.insert(shard) {
            continue;
        }
        rig.s3.take_counters()?;
        let answer = shards.get(&literal(key)?, None).await?;
        if !data.is_right(key, answer.as_ref()) {
            return Err(Error::internal(format!("{key} has another record")));
        }
        let counts = rig.s3.take_counters()?;
        gets = gets.max(counts.requests);
        bytes = bytes.max(counts.bytes_out);
    }
    let what = format!("cold get of a shard of {} MB", shards.dataset().shards[0].input_bytes / 1_000_000);
    tell(&what, gets, bytes, 3.0);
    equality(&mut rig, data).await
}

/// One shard has all records, so that an equality asks one; the first one brings what is known of the shard from then on.
async fn equality(rig: &mut Rig, data: &Data) -> Result<()> {
    let shards = rig.create(data, "equality.shards", 1, vec![0.5]).await?;
    let input = shards.dataset().shards[0].input_bytes;
    rig.replace_workers().await?;
    shards.status().await?;
    let (mut requests, mut bytes) = (0, 0);
    for condition in data.searches(Skew::Uniform, 200, 23).into_iter().filter(|search| search["attr"] == "l_partkey").take(3) {
        rig.s3.take_counters()?;
        let found = shards.search(&condition, None, Some(100)).await?;
        let counts = rig.s3.take_counters()?;
        if found.is_empty() {
            return Err(Error::internal(format!("{condition} finds nothing")));
        }
        requests = requests.max(counts.requests);
        bytes = bytes.max(counts.bytes_out.saturating_sub(of_many(found.len() as u64)));
    }
    tell(&format!("cold equality in a shard of {} MB", input / 1_000_000), requests, bytes, 4.0);
    Ok(())
}

/// Bytes that hits past a few may bring.
fn of_many(hits: u64) -> u64 {
    hits.saturating_sub(FEW_HITS) * HIT_BYTES
}

fn tell(what: &str, requests: u64, bytes: u64, bar: f64) {
    line(format!("{what}: requests"), requests as f64, "requests", Bar::ValueAtMost(bar));
    let name = format!("{what}: bytes, less 4 KiB a hit beyond eight");
    line(name, bytes as f64, "bytes", Bar::ValueAtMost(BYTES));
}

/// A substring needs the files of all shards: they come once, and the next one needs nothing of shared storage.
pub(crate) async fn substring(values_bytes: usize) -> Result<()> {
    let data = Data::lineitem(values_bytes)?;
    let mut rig = Rig::start(Settings { workers: 1, ..Settings::default() }).await?;
    let count = (data.input_bytes() / SHARD_BYTES).max(1) as usize;
    let shards = rig.create(&data, "substring.shards", count, vec![0.5]).await?;
    let base: u64 = shards.dataset().shards.iter().map(|shard| shard.bytes()).sum();
    rig.replace_workers().await?;
    shards.status().await?;
    let mut fetched = Vec::new();
    for row in [data.records.len() / 3, data.records.len() / 2] {
        // All of a comment but how it begins: few others have it.
        let comment = data.records.value(row, ATTRIBUTES.len() - 1);
        let condition = json!({"attr": "l_comment", "contains": String::from_utf8_lossy(&comment[1..])});
        rig.s3.take_counters()?;
        let found = shards.search(&condition, None, None).await?;
        fetched.push(rig.s3.take_counters()?.bytes_out as f64);
        if !found.contains(&Key::U64(data.records.keys[row])) {
            return Err(Error::internal(format!("{condition} does not find where it is from")));
        }
    }
    let what = format!("cold substring in {} MB of input", data.input_bytes() / 1_000_000);
    let bytes = format!("{what}: bytes fetched");
    Figure::new(bytes, fetched[0], "bytes", "the files of the shards", base as f64, Bar::RatioAtMost(1.0)).print(true);
    line(format!("{what}: bytes that the next one fetches"), fetched[1], "bytes", Bar::ValueAtMost(BYTES));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_hits_bring_nothing_of_their_own() {
        assert_eq!([0, 8, 9, 30].map(of_many), [0, 0, 4_096, 22 * 4_096]);
    }
}
