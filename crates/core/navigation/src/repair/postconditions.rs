//! What must hold of repairs, whatever the damage.

use std::collections::{BTreeMap, BTreeSet};

use super::damage::{Damage, Damaged};
use super::{Copy, CopySource, Repair};
use crate::shard::ShardId;

/// What those who make the copies rely on.
pub(super) fn of_repair(damage: &Damage, repair: &Repair) {
    let total: u64 = repair.copies.iter().map(|copy| copy.bytes).sum();
    let alone = repair.copies.len() == 1 && damage.in_flight_bytes == 0;
    let bounded = damage.in_flight_bytes.saturating_add(total) <= damage.in_flight_bytes_max;
    assert!(repair.copies.is_empty() || bounded || alone, "{total} bytes more stay within the bound on what is on its way");
    of_rooms(damage, repair);
    let mut copies: BTreeMap<ShardId, Vec<&Copy>> = BTreeMap::new();
    repair.copies.iter().for_each(|copy| copies.entry(copy.shard).or_default().push(copy));
    for damaged in &damage.shards {
        of_shard(damaged, &copies.remove(&damaged.shard).unwrap_or_default());
    }
    assert!(copies.is_empty(), "copies are of shards that miss replicas");
}

fn of_rooms(damage: &Damage, repair: &Repair) {
    let mut taken = BTreeMap::new();
    for copy in &repair.copies {
        *taken.entry(copy.to).or_insert(0u64) += copy.bytes;
    }
    let mut known = 0;
    for room in &damage.workers {
        let taken = taken.get(&room.worker).copied();
        known += usize::from(taken.is_some());
        assert!(taken.unwrap_or(0) <= room.free_bytes, "{:?}: copies fit into its room", room.worker);
    }
    assert_eq!(known, taken.len(), "copies go to workers that live");
}

fn of_shard(damaged: &Damaged, copies: &[&Copy]) {
    let shard = damaged.shard;
    assert!(copies.len() <= damaged.missing() as usize, "{shard}: no more copies than are missing");
    let holders = damaged.survivors.iter().map(|survivor| survivor.worker);
    let all: BTreeSet<_> = holders.chain(copies.iter().map(|copy| copy.to)).collect();
    assert_eq!(all.len(), damaged.survivors.len() + copies.len(), "{shard}: no worker has two replicas");
    let least = damaged.whole().map(|survivor| survivor.bytes).min();
    for copy in copies {
        let from = match copy.from {
            CopySource::SharedStorage => None,
            CopySource::Worker(worker) => damaged.whole().find(|survivor| survivor.worker == worker).map(|from| from.bytes),
        };
        assert_eq!(from, least, "{shard}: copied from the smallest replica that is left");
        assert_eq!(copy.bytes, damaged.base_bytes, "{shard}: a copy is the base");
    }
}
