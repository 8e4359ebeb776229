//! Where a dataset's shards are, and how they stand.

use forebay_client::{ShardClaim, ShardState};
use forebay_types::{Result, WorkerId};
use futures::future::join_all;
use serde_json::Value as Json;

use crate::Shards;

/// A shard and its replicas.
#[derive(Clone, Debug, schemars::JsonSchema, serde::Serialize)]
pub struct ShardStatus {
    /// Its number.
    pub shard: u32,
    /// Its records.
    pub records: u64,
    /// Bytes of its keys and values.
    pub input_bytes: u64,
    /// Bytes of its objects in shared storage.
    pub stored_bytes: u64,
    /// When a change of its records is acknowledged: `storage` when shared storage has it, `two-workers` when the disks of two workers do.
    pub ack: String,
    /// Who has two disks acknowledge its changes now; not there where nobody does, as while none come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimStatus>,
    /// The keys that it may have, where these are in ranges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<RangeStatus>,
    /// The workers that hold it, the first one first, and others that answered for them.
    pub replicas: Vec<ReplicaStatus>,
}

/// Keys from one to another, in the order in which they are kept: numbers below zero stand behind all others.
#[derive(Clone, Debug, Default, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
pub struct RangeStatus {
    /// The least; not there where none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Json>,
    /// All are below this; not there where nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below: Option<Json>,
}

/// Who writes a shard, whose changes are acknowledged when two workers' disks have them.
#[derive(Clone, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
pub struct ClaimStatus {
    /// The worker that writes.
    pub writer: String,
    /// The worker that has the same on its disk.
    pub second: String,
    /// For how long, in milliseconds.
    pub held_ms: u64,
    /// Objects of its log that are on their disks and that shared storage has not.
    pub behind_objects: u32,
    /// Their bytes.
    pub behind_bytes: u64,
    /// How long the first of them is there, in milliseconds.
    pub behind_ms: u64,
}

impl ClaimStatus {
    fn of(claim: ShardClaim) -> Self {
        let ShardClaim { writer, second, held_ms, behind_objects, behind_bytes, behind_ms } = claim;
        let (writer, second) = (writer.to_string(), second.to_string());
        Self { writer, second, held_ms, behind_objects, behind_bytes, behind_ms }
    }
}

/// A replica of a shard.
#[derive(Clone, Debug, Default, schemars::JsonSchema, serde::Serialize)]
pub struct ReplicaStatus {
    /// The worker.
    pub worker: String,
    /// The size that it starts with and returns to, as a part of the input; none for a worker that only stood in.
    pub size: Option<f64>,
    /// Bytes of its files; none where it was not asked for yet, or the worker does not answer.
    pub bytes: Option<u64>,
    /// Its layers are being made or dropped.
    pub is_changing: bool,
    /// Calls that it has answered.
    pub answered: u64,
    /// Calls that came in a minute, by those of the last look at its queue (10 s).
    pub calls_per_min: u32,
    /// Calls under way or waiting.
    pub queue: u32,
    /// The size that it is kept at now, as a part of the input.
    pub now: Option<f64>,
    /// Why.
    pub why: Option<String>,
    /// The size that it is pinned at, at least, as a part of the input; none where it is not pinned.
    pub least: Option<f64>,
    /// Its layers stay as they are.
    pub is_frozen: bool,
}

impl Shards {
    /// All shards, in order of their numbers.
    pub async fn status(&self) -> Result<Vec<ShardStatus>> {
        let workers: Vec<WorkerId> = self.client.view().workers.iter().map(|worker| worker.id).collect();
        let asked = workers.iter().map(async |worker| (*worker, self.client.shards().states(*worker, &self.id).await));
        let mut states: Vec<(WorkerId, ShardState)> = Vec::new();
        for (worker, answer) in join_all(asked).await {
            match answer {
                Ok(of_worker) => states.extend(of_worker.into_iter().map(|state| (worker, state))),
                Err(error) => tracing::debug!(%worker, %error, "a worker does not say what it has"),
            }
        }
        Ok((0..self.dataset.shards.len()).map(|shard| self.shard_status(shard, &states)).collect())
    }

    fn range_of(&self, shard: usize) -> Option<RangeStatus> {
        let splits = self.dataset.splits.as_ref()?;
        let key = |place: Option<usize>| splits.get(place?).map(|key| self.columns().key_json(key));
        Some(RangeStatus { from: key(shard.checked_sub(1)), below: key(Some(shard)) })
    }

    fn shard_status(&self, shard: usize, states: &[(WorkerId, ShardState)]) -> ShardStatus {
        let (sizes, orders) = (&self.dataset.replicas, self.dataset.orders);
        let holders = self.holders(shard);
        let state_of = |worker: &WorkerId| {
            states.iter().find(|(of, state)| of == worker && state.shard as usize == shard).map(|(_, state)| state)
        };
        let replicas = holders.iter().enumerate().filter_map(|(place, worker)| {
            let (size, state) = (sizes.get(place).copied(), state_of(worker));
            (size.is_some() || state.is_some()).then(|| ReplicaStatus {
                worker: worker.to_string(),
                size,
                bytes: state.map(|state| state.bytes),
                is_changing: state.is_some_and(|state| state.is_changing),
                answered: state.map_or(0, |state| state.answered),
                calls_per_min: state.map_or(0, |state| state.calls_per_min),
                queue: state.map_or(0, |state| state.queue),
                now: state.map(|state| f64::from(state.size_milli) / 1000.0),
                why: state.map(|state| state.why.clone()),
                least: size.and_then(|size| orders.least(size)),
                is_frozen: orders.frozen,
            })
        });
        // Of two the one that began later: the other has not heard yet that it is over.
        let claims = states.iter().filter(|(_, state)| state.shard as usize == shard).filter_map(|(_, state)| state.claim);
        let of = &self.dataset.shards[shard];
        ShardStatus {
            shard: shard as u32,
            records: of.records,
            input_bytes: of.input_bytes,
            stored_bytes: of.bytes(),
            ack: orders.ack.to_string(),
            claim: claims.min_by_key(|claim| claim.held_ms).map(ClaimStatus::of),
            range: self.range_of(shard),
            replicas: replicas.collect(),
        }
    }
}
