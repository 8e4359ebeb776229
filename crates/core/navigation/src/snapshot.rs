//! What one worker knows of its own replicas when it decides. It needs to know nothing of any other worker.

use forebay_types::{Error, Result};

use crate::curve::Curve;
use crate::shard::ShardId;

/// A replica of a shard on this worker.
#[derive(Clone, Copy, Debug)]
pub struct Replica<'a> {
    /// Which shard.
    pub shard: ShardId,
    /// What its levels cost and bring.
    pub curve: &'a Curve,
    /// The level below which it never goes: where it is pinned. One that is below comes there first.
    pub lowest: u32,
    /// The level to which it returns when its load is low.
    pub start: u32,
    /// The level above which it never goes.
    pub highest: u32,
    /// The level that it serves with.
    pub level: u32,
    /// The level that it was told to have; above `level` while layers are being built.
    pub ordered: u32,
    /// Requests that wait or are being answered now; or the steps that they are estimated to take, where those are what the curve has the
    /// time of.
    pub queue: u32,
    /// What came since the last plan, in the same unit.
    pub arrived: u32,
    /// Its layers stay as they are, whatever its load.
    pub frozen: bool,
}

impl Replica<'_> {
    /// Whether layers are being built.
    pub fn is_building(&self) -> bool {
        self.ordered > self.level
    }

    /// Bytes that are taken, what is being built among them.
    pub fn bytes(&self) -> u64 {
        self.curve.bytes(self.ordered)
    }

    /// The level below which no plan brings it.
    pub fn least(&self) -> u32 {
        if self.frozen { self.ordered } else { self.lowest.min(self.ordered) }
    }

    fn validate(&self) -> Result<()> {
        let Self { shard, lowest, start, highest, level, ordered, .. } = self;
        let levels = lowest <= start && start <= highest && *highest <= self.curve.highest();
        if !levels {
            let most = self.curve.highest();
            return Err(Error::invalid(format!(
                "{shard} can't start at level {start} between {lowest} and {highest}: give levels that rise, {most} at most"
            )));
        }
        if level > ordered || ordered > highest {
            return Err(Error::invalid(format!(
                "{shard} can't serve at level {level} and be told {ordered}: give levels from 0 to {highest}, what is served not \
                 above what is ordered"
            )));
        }
        Ok(())
    }
}

/// All that a plan depends on, beside the settings and the plan before.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// The worker's replicas, by ascending shard.
    pub replicas: &'a [Replica<'a>],
    /// Bytes that they may take together: a hard limit.
    pub room_bytes: u64,
}

impl Snapshot<'_> {
    /// Replicas of a worker at most.
    pub const REPLICAS_MAX: usize = 1 << 16;

    /// Bytes that the replicas take now.
    pub fn bytes(&self) -> u64 {
        self.replicas.iter().map(Replica::bytes).sum()
    }

    /// Refuses what can't be a worker.
    /// `Invalid`: shards that don't ascend, levels out of range, or bases that take more than the room.
    pub fn validate(&self) -> Result<()> {
        let (count, most) = (self.replicas.len(), Self::REPLICAS_MAX);
        if count > most {
            return Err(Error::invalid(format!("a worker can't have {count} replicas: give {most} at most")));
        }
        if let Some(pair) = self.replicas.windows(2).find(|pair| pair[0].shard >= pair[1].shard) {
            let (before, after) = (pair[0].shard, pair[1].shard);
            return Err(Error::invalid(format!("{after} can't follow {before}: give each shard once, by ascending number")));
        }
        self.replicas.iter().try_for_each(Replica::validate)?;
        let least: u64 = self.replicas.iter().map(|replica| replica.curve.bytes(replica.least())).sum();
        if least > self.room_bytes {
            let room = self.room_bytes;
            return Err(Error::invalid(format!(
                "{count} shards take {least} bytes at their lowest, and there is room for {room}: give the worker more or move shards"
            )));
        }
        Ok(())
    }
}
