//! What is known when shards have lost replicas.

use forebay_types::{Error, Result, WorkerId};

use crate::curve::Curve;
use crate::shard::ShardId;

/// A worker that could take a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairRoom {
    /// Which worker.
    pub worker: WorkerId,
    /// Bytes that it has for copies, less the copies on their way to it.
    pub free_bytes: u64,
    /// What fails together has the same number: a host, a rack, a zone.
    pub domain: u32,
}

/// A replica that is left, or a copy on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// Who has it.
    pub worker: WorkerId,
    /// Bytes that it takes with its layers.
    pub bytes: u64,
    /// Whether it is whole: a copy on its way isn't, and nothing is copied from it.
    pub is_whole: bool,
}

/// A shard with fewer replicas than it should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// Which shard.
    pub shard: ShardId,
    /// Bytes at the lowest dial, which is what a copy takes: the base is the same in all replicas.
    pub base_bytes: u64,
    /// Replicas that it should have.
    pub wanted: u32,
    /// Requests that wait for it: of two shards with as few replicas left the one with more requests comes first.
    pub waiting: u64,
    /// Replicas that are left and copies on their way.
    pub survivors: Vec<Survivor>,
}

impl Damaged {
    /// Replicas of a shard at most.
    pub const REPLICAS_MAX: u32 = 64;

    /// Replicas that could be copied from.
    pub(super) fn whole(&self) -> impl Iterator<Item = &Survivor> {
        self.survivors.iter().filter(|survivor| survivor.is_whole)
    }

    pub(super) fn missing(&self) -> u32 {
        self.wanted.saturating_sub(self.survivors.len() as u32)
    }

    fn validate(&self) -> Result<()> {
        let (shard, most) = (self.shard, Self::REPLICAS_MAX);
        if self.wanted > most || self.survivors.len() > most as usize {
            return Err(Error::invalid(format!("{shard} can't have {} replicas: ask for {most} at most", self.wanted)));
        }
        once(self.survivors.iter().map(|survivor| survivor.worker.0), "worker")?;
        let bytes = self.survivors.iter().map(|survivor| survivor.bytes).chain([self.base_bytes]);
        if bytes.clone().any(|bytes| bytes == 0 || bytes > Curve::BYTES_MAX) {
            let most = Curve::BYTES_MAX;
            return Err(Error::invalid(format!(
                "{shard} has a replica of no bytes, or of more than {most}: give what its files take"
            )));
        }
        Ok(())
    }
}

/// All that repairs depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Workers that live.
    pub workers: Vec<RepairRoom>,
    /// Shards that miss replicas; others may be among them.
    pub shards: Vec<Damaged>,
    /// Bytes of copies that may be on their way at once, in the whole cluster.
    pub in_flight_bytes_max: u64,
    /// Bytes of copies that are on their way.
    pub in_flight_bytes: u64,
}

impl Damage {
    /// Refuses what can't be.
    /// `Invalid`: no bound, a worker or shard that comes twice, bytes or replicas past the limits.
    pub fn validate(&self) -> Result<()> {
        if self.in_flight_bytes_max == 0 {
            return Err(Error::invalid("nothing can be repaired with 0 bytes on their way at once: give a bound above 0"));
        }
        once(self.workers.iter().map(|room| room.worker.0), "worker")?;
        once(self.shards.iter().map(|damaged| damaged.shard.0), "shard")?;
        self.shards.iter().try_for_each(Damaged::validate)
    }
}

fn once(numbers: impl Iterator<Item = u64>, what: &str) -> Result<()> {
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    match numbers.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::invalid(format!("{what} {} comes twice: give each once", pair[0]))),
        None => Ok(()),
    }
}
