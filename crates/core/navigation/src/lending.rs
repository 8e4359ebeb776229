//! Room that a worker's cache lends to the layers of its shards, part by part.

use forebay_types::{Error, Result};

use crate::budget::{Ladder, Step, divide};
use crate::plan::Plan;
use crate::snapshot::Replica;

/// A cache that can lend room, and what shards have beside that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lending {
    /// Bytes that layers may take without anything lent: what replicas take at their least level is taken off.
    pub own_bytes: u64,
    /// Bytes that the cache may lend at most.
    pub most_bytes: u64,
    /// Bytes that it lends now.
    pub lent_bytes: u64,
    /// Seconds that each byte of the cache saves in a second, at its margin ([`margin`]).
    pub cache_saves: f64,
}

impl Lending {
    /// What may be lent goes and comes back in so many parts, one in a period: so that what the cache misses without it is seen first.
    pub const PARTS: u64 = 16;
    /// How much more a byte has to save, as a share, to be taken from where it is.
    pub const INERTIA: f64 = 0.25;
}

/// The layers of a replica above its least level, which may go elsewhere, and what each saves: the requests that came on average until the
/// plan `before`, times what each takes less with it. `period_secs` is the time between two plans.
pub fn layers(replica: &Replica<'_>, before: &Plan, period_secs: f64) -> Ladder {
    debug_assert!(period_secs > 0.0, "plans take their time");
    let arrivals = before.of(replica.shard).map_or(0.0, |decision| decision.memory.arrivals) / period_secs;
    let curve = replica.curve;
    let step = |level: u32| Step {
        bytes: curve.bytes(level) - curve.bytes(level - 1),
        saved: arrivals * (curve.service_us(level - 1) - curve.service_us(level)) / 1e6,
        is_held: level <= replica.ordered,
    };
    let highest = if replica.frozen { replica.ordered } else { replica.highest };
    (replica.least() + 1..=highest).map(step).collect()
}

/// Seconds that each byte more of a cache would save in a second, when of what it let go so many `returned` a second, each of which
/// was waited for so much longer, and it remembers `remembered_bytes` of what it let go: with so much more room those would have
/// been there.
pub fn margin(returned: f64, waited_secs: f64, remembered_bytes: u64) -> f64 {
    match returned > 0.0 && waited_secs > 0.0 && remembered_bytes > 0 {
        true => returned * waited_secs / remembered_bytes as f64,
        false => 0.0,
    }
}

/// How many bytes the cache is to lend in the next period: those that save more as layers, given by [`layers`] for each replica of the
/// worker, and at most a part more or less than now.
/// `Invalid`: layers that can't be, a margin that is negative or no number.
pub fn lend(lending: &Lending, mut ladders: Vec<Ladder>) -> Result<u64> {
    let Lending { own_bytes, most_bytes, lent_bytes, cache_saves } = *lending;
    if !(cache_saves.is_finite() && cache_saves >= 0.0) {
        return Err(Error::invalid(format!("a byte of a cache can't save {cache_saves} seconds: give a number from 0 on")));
    }
    let part = most_bytes / Lending::PARTS;
    if part == 0 {
        return Ok(0);
    }
    let with_cache = Lending::PARTS.saturating_sub(lent_bytes.div_ceil(part));
    let block = |place: u64| Step { bytes: part, saved: cache_saves * part as f64, is_held: place < with_cache };
    // The first of equals: where nobody asks for anything, blocks stay.
    ladders.insert(0, (0..Lending::PARTS).map(block).collect());
    let division = divide(own_bytes.saturating_add(part * Lending::PARTS), &ladders, Lending::INERTIA)?;
    let left = part * (Lending::PARTS - division.steps[0] as u64);
    let lent = left.clamp(lent_bytes.saturating_sub(part), lent_bytes.saturating_add(part)).min(part * Lending::PARTS);
    assert!(lent <= most_bytes, "no more is lent than may be");
    Ok(lent)
}
