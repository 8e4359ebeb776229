//! What a plan says: each replica's level in the next period, and why.

use std::fmt;

use crate::shard::ShardId;

/// Why a replica's level moved, or didn't.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// It was not known before: averages begin.
    New,
    /// Layers are being built.
    Building,
    /// Neither busy nor idle enough for a change.
    Steady,
    /// Requests wait too long now, but not on average: it may be a spike.
    Spike,
    /// Requests wait too long, but the load is low enough for the queue to be gone in time.
    Draining,
    /// Requests wait too long: a layer more, for which there was room.
    Grew,
    /// Requests wait too long: a layer more, for which these gave some of theirs.
    Took(Vec<ShardId>),
    /// Requests wait too long, but it has all layers that make it faster.
    AtHighest,
    /// Requests wait too long, but there is no room, and nobody can spare enough.
    NoRoom,
    /// Requests wait too long, but as many replicas build layers as may at once.
    TooManyBuilding,
    /// A layer went to this shard, whose requests wait too long.
    Gave(ShardId),
    /// The load is low, but not for long enough: so many of so many periods.
    Calm {
        /// Periods of low load.
        periods: u32,
        /// Periods after which a layer goes.
        of: u32,
    },
    /// The load was low for long: a layer less.
    Shrank,
    /// It has less than it started with, and there is room: back to the start in one pass.
    Returned,
    /// The worker's room became smaller than what its replicas took.
    Crowded,
    /// A layer went to this shard, which is pinned at more than it had.
    Yielded(ShardId),
    /// It is pinned at more than it had, and comes there in one pass.
    Pinned,
    /// It is pinned at more than it has, but there is no room, and others have nothing to spare.
    PinWaits,
    /// Its layers are to stay as they are.
    Frozen,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::New => "not known before",
            Self::Building => "layers are being built",
            Self::Steady => "nothing to change",
            Self::Spike => "requests wait too long now, but not on average",
            Self::Draining => "requests wait too long, and the queue will be gone in time",
            Self::Grew => "requests wait too long, and there was room for a layer",
            Self::AtHighest => "requests wait too long, and no layer would help",
            Self::NoRoom => "requests wait too long, and nobody can spare room for a layer",
            Self::TooManyBuilding => "requests wait too long, and as many build layers as may at once",
            Self::Shrank => "the load was low for long",
            Self::Returned => "less than at the start, and there is room",
            Self::Crowded => "the worker has less room than before",
            Self::Pinned => "pinned at more than it had",
            Self::PinWaits => "pinned at more than it has, and there is no room for that",
            Self::Frozen => "frozen: its layers stay as they are",
            Self::Gave(to) => return write!(f, "a layer went to {to}, whose requests wait too long"),
            Self::Yielded(to) => return write!(f, "a layer went to {to}, which is pinned at more than it had"),
            Self::Calm { periods, of } => return write!(f, "the load is low since {periods} periods of {of}"),
            Self::Took(from) => {
                let from: Vec<String> = from.iter().map(ShardId::to_string).collect();
                return write!(f, "requests wait too long, and {} gave room for a layer", from.join(", "));
            }
        })
    }
}

/// What is remembered of a replica from plan to plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Memory {
    /// Its queue on average, in requests or steps as it was told: the paper's Q_avg.
    pub queue: f64,
    /// What comes in a period, in the same unit, averaged alike.
    pub arrivals: f64,
    /// Periods in a row, since its level last changed, in which requests waited too long.
    pub high_periods: u32,
    /// Periods in a row in which its load was low.
    pub calm_periods: u32,
}

/// What happens to a replica.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Which shard's.
    pub shard: ShardId,
    /// The level that it was told to have before.
    pub from: u32,
    /// The level that it has to have. Above what it serves with: build; below: drop at once.
    pub to: u32,
    /// Why.
    pub reason: Reason,
    /// Microseconds that a request waits on average, as far as the queue tells.
    pub wait_us: f64,
    /// For the next plan.
    pub memory: Memory,
}

impl Decision {
    /// Whether there is something to do.
    pub fn moves(&self) -> bool {
        self.from != self.to
    }
}

/// A plan; the empty one stands before the first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// One for each replica of the snapshot, by shard.
    pub decisions: Vec<Decision>,
    /// Bytes that the replicas take when all is done.
    pub bytes: u64,
}

impl Plan {
    /// What was decided of `shard`. O(log n).
    pub fn of(&self, shard: ShardId) -> Option<&Decision> {
        let at = self.decisions.binary_search_by_key(&shard, |decision| decision.shard).ok()?;
        self.decisions.get(at)
    }
}
