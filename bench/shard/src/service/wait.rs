//! Waiting until a dataset's replicas are as they begin.

use std::time::{Duration, Instant};

use forebay_shards::{ReplicaStatus, Shards};
use forebay_types::{Error, Result};

use super::data::{Data, literal};
use crate::workload::Skew;

/// The longest that anything is waited for.
const WITHIN: Duration = Duration::from_secs(600);

/// Asks until every replica is there and at its size.
pub(crate) async fn until_at_rest(shards: &Shards, data: &Data) -> Result<()> {
    let keys = data.gets(Skew::Uniform, 4096, 7);
    let began = Instant::now();
    let mut at = keys.chunks(256).cycle();
    loop {
        // Those who wait for one another are asked by turns: all replicas of all shards come.
        let chunk = at.next().unwrap_or_default();
        let gets = chunk.iter().map(|key| async { shards.get(&literal(*key)?, None).await });
        futures::future::try_join_all(gets).await?;
        let status = shards.status().await?;
        // What is answered from afar has no bytes of its own.
        let is_there = |replica: &&ReplicaStatus| replica.bytes.is_some_and(|bytes| bytes > 0) && !replica.is_changing;
        let wanted = shards.dataset().replicas.len();
        if status.iter().all(|shard| shard.replicas.iter().filter(is_there).count() >= wanted) {
            return Ok(());
        }
        if began.elapsed() > WITHIN {
            return Err(Error::internal(format!("the replicas don't come to rest: {status:?}")));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub(crate) async fn stored_bytes(shards: &Shards) -> Result<u64> {
    let status = shards.status().await?;
    Ok(status.iter().flat_map(|shard| &shard.replicas).filter_map(|replica| replica.bytes).sum())
}
