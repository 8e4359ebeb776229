//! Copies while they are chosen: what room and bandwidth are left.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use forebay_types::WorkerId;

use super::damage::{Damage, Damaged, RepairRoom};
use super::source::{sources, urgency};
use super::{Copy, CopySource, Postponed, Repair};
use crate::shard::ShardId;

pub(super) struct Draft<'a> {
    damage: &'a Damage,
    rooms: Vec<RepairRoom>,
    domains: BTreeMap<WorkerId, u32>,
    in_flight_bytes: u64,
    /// Bytes that each is to send.
    sends: BTreeMap<WorkerId, u64>,
    /// To whom each shard is copied.
    takers: BTreeMap<ShardId, Vec<WorkerId>>,
    repair: Repair,
}

impl<'a> Draft<'a> {
    pub(super) fn new(damage: &'a Damage) -> Self {
        Self {
            damage,
            rooms: damage.workers.clone(),
            domains: damage.workers.iter().map(|room| (room.worker, room.domain)).collect(),
            in_flight_bytes: damage.in_flight_bytes,
            sends: BTreeMap::new(),
            takers: BTreeMap::new(),
            repair: Repair::default(),
        }
    }

    /// One copy of each shard, the most endangered first, then another of each that misses more.
    pub(super) fn copies(mut self) -> Repair {
        let mut shards: Vec<&Damaged> = self.damage.shards.iter().filter(|shard| shard.missing() > 0).collect();
        shards.sort_by_key(|shard| (urgency(shard.whole().count(), shard.waiting), shard.shard));
        let mut round = 0;
        while !shards.is_empty() {
            shards.retain(|shard| shard.missing() > round && self.copy(shard));
            round += 1;
        }
        self.repair
    }

    /// Whether a copy of the shard could be added; if not, why is noted.
    fn copy(&mut self, damaged: &Damaged) -> bool {
        let bytes = damaged.base_bytes;
        // One that is larger than the bound goes alone, or it would never go.
        if self.in_flight_bytes > 0 && self.in_flight_bytes.saturating_add(bytes) > self.damage.in_flight_bytes_max {
            return self.postpone(damaged, Postponed::Bandwidth);
        }
        let Some(at) = self.taker(damaged) else { return self.postpone(damaged, Postponed::NoRoom) };
        let from = self.source(damaged);
        if let CopySource::Worker(worker) = from {
            *self.sends.entry(worker).or_default() += bytes;
        }
        self.rooms[at].free_bytes -= bytes;
        self.in_flight_bytes += bytes;
        let to = self.rooms[at].worker;
        self.takers.entry(damaged.shard).or_default().push(to);
        self.repair.copies.push(Copy { shard: damaged.shard, from, to, bytes });
        true
    }

    fn postpone(&mut self, damaged: &Damaged, why: Postponed) -> bool {
        self.repair.postponed.push((damaged.shard, why));
        false
    }

    /// The smallest replica that is left; of equal ones that of the worker that sends least.
    fn source(&self, damaged: &Damaged) -> CopySource {
        let sends = |worker: WorkerId| self.sends.get(&worker).copied().unwrap_or(0);
        sources(&damaged.survivors, sends)[0]
    }

    /// The worker with the most room, in a failure domain of its own if there is one.
    fn taker(&self, damaged: &Damaged) -> Option<usize> {
        let holders = self.holders(damaged);
        let domains: Vec<u32> = holders.iter().filter_map(|worker| self.domains.get(worker).copied()).collect();
        let fits = |room: &RepairRoom| room.free_bytes >= damaged.base_bytes && !holders.contains(&room.worker);
        let candidates = (0..self.rooms.len()).filter(|at| fits(&self.rooms[*at]));
        candidates.max_by_key(|at| {
            let room = &self.rooms[*at];
            (!domains.contains(&room.domain), room.free_bytes, Reverse(room.worker))
        })
    }

    /// Who has the shard, or will.
    fn holders(&self, damaged: &Damaged) -> Vec<WorkerId> {
        let before = damaged.survivors.iter().map(|survivor| survivor.worker);
        let takers = self.takers.get(&damaged.shard).into_iter().flatten();
        before.chain(takers.copied()).collect()
    }
}
