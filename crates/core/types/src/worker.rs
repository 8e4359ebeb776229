//! Identities of those who ask and serve: worker, host, operation and where its plan stands among others, and the owner of a piece of a tier.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A worker, by a random number that it makes at its first start and keeps in its data folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkerId(pub u64);

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "w{:016x}", self.0)
    }
}

/// A host, so that a client knows a worker beside it: the machine's boot id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HostId(pub String);

/// One job, query or client call; every read carries it, and popularity counts a segment once an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OperationId(pub u64);

/// What a plan counts for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Standing {
    /// Plans of a higher one go first.
    pub priority: i32,
    /// When it was made, by the clock of who made it, in milliseconds since 1970; 0 when nobody said.
    pub began_ms: u64,
}

impl Standing {
    /// The turn of an operation's plan. A plan without a time counts as made at `now_ms`.
    pub fn turn(self, operation: OperationId, now_ms: u64) -> PlanTurn {
        let began_ms = if self.began_ms == 0 { now_ms } else { self.began_ms };
        PlanTurn { standing: Self { began_ms, ..self }, operation }
    }
}

/// Where a plan stands among all others, the smallest first: by priority, then by when it was made, then by its operation's number. All
/// workers have the same order, so that each brings what the first plan needs before what the second plan needs.
///
/// ```
/// use forebay_types::{OperationId, Standing};
///
/// let turn = |priority, began_ms, operation| Standing { priority, began_ms }.turn(OperationId(operation), 9);
/// assert!(turn(0, 1, 7) < turn(0, 2, 3), "who came first");
/// assert!(turn(5, 2, 3) < turn(0, 1, 7), "but for priorities");
/// assert_eq!(turn(0, 0, 7), turn(0, 9, 7));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PlanTurn {
    /// What the plan counts for.
    pub standing: Standing,
    /// Who reads what is brought.
    pub operation: OperationId,
}

impl Ord for PlanTurn {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |turn: &Self| (turn.standing.began_ms, turn.operation.0);
        other.standing.priority.cmp(&self.standing.priority).then_with(|| key(self).cmp(&key(other)))
    }
}

impl PartialOrd for PlanTurn {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Whom an allocation in a tier is accounted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Owner {
    /// The cache of shared storage.
    Cache,
    /// The temporary namespace.
    Temporary,
    /// Shards.
    Shard,
    /// Columns in the table form, made from what the cache holds. On disk they are compressed, as segments of their own that are read back
    /// whole: as they are the raw form scans faster from there.
    Form,
}
