//! When new shards take the place of those that they were made of.

use super::cut::Share;

/// The log of a shard that keys come from, as shared storage has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogState {
    /// The number of the first object that is not in the new shards.
    pub next: u64,
    /// The number that its next object would have; where it is sealed, that of the seal.
    pub end: u64,
    /// It was ended: nothing that was not in it then is acknowledged any more.
    pub is_sealed: bool,
}

/// What a change of shards is held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchLimits {
    /// Objects of all logs that may be left when they are ended: who writes waits while these are brought over.
    pub tail_max: u64,
    /// How often what came meanwhile is brought over before that, at most.
    pub rounds_max: u32,
}

/// What a dataset that is served is held to: what is brought over before its logs are ended is in the new shards already.
pub const SWITCH_LIMITS: SwitchLimits = SwitchLimits { tail_max: 16_384, rounds_max: 0 };
/// Bytes that may be left in the logs of the old shards of one new shard together: it keeps them in memory until it is merged.
pub const TAIL_BYTES_MAX: u64 = 64 << 20;

/// Whether what the logs of all shards have left, in bytes, fits into the memory of new ones, of each of which `sources` says what it is made of.
pub fn tails_fit(bytes: &[u64], sources: &[Vec<Share>]) -> bool {
    let left = |from: &Vec<Share>| from.iter().fold(0u64, |sum, share| sum.saturating_add(bytes[share.shard as usize]));
    sources.iter().all(|from| left(from) <= TAIL_BYTES_MAX)
}

/// Whether what is `merged` of the logs since `cuts` alone is not too much to be brought over already. Who knows that it is need not look
/// at the logs.
pub fn may_switch(cuts: &[u64], merged: impl IntoIterator<Item = u64>, limits: &SwitchLimits) -> bool {
    let left = cuts.iter().zip(merged).fold(0u64, |left, (cut, merged)| left.saturating_add(merged.saturating_sub(*cut)));
    left <= limits.tail_max
}

/// What comes next. Logs are named by their shard's number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchStep {
    /// What these logs have from `next` to `end` goes into the new shards, in its order.
    Replay(Vec<u32>),
    /// These logs are ended, each by an object that takes the next number under a condition.
    Seal(Vec<u32>),
    /// The new shards have all that was acknowledged: the next manifest names them, under a condition too.
    Switch,
    /// More is written than is brought over. All is as it was, and the new parts are garbage.
    GiveUp,
}

/// What comes next after `round` replays, as the logs are now.
pub fn switch(logs: &[LogState], round: u32, limits: &SwitchLimits) -> SwitchStep {
    assert!(logs.iter().all(|log| log.next <= log.end), "logs are read forwards");
    let of = |is_it: fn(&LogState) -> bool| {
        (0u32..).zip(logs).filter(|(_, log)| is_it(log)).map(|(shard, _)| shard).collect::<Vec<_>>()
    };
    let (open, behind) = (of(|log| !log.is_sealed), of(|log| log.next < log.end));
    let tail = logs.iter().fold(0u64, |tail, log| tail.saturating_add(log.end - log.next));
    // Once a log has ended nobody can write to it any more, so the switch goes on, by this worker or the next one that looks.
    let has_begun = open.len() < logs.len();
    if open.is_empty() {
        return if behind.is_empty() { SwitchStep::Switch } else { SwitchStep::Replay(behind) };
    }
    if has_begun || tail <= limits.tail_max {
        return SwitchStep::Seal(open);
    }
    if round < limits.rounds_max { SwitchStep::Replay(behind) } else { SwitchStep::GiveUp }
}
