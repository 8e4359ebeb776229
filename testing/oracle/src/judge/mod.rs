//! What must hold of a history, whatever was done to the processes meanwhile.
//!
//! `objects`: every answer is bytes of one version, none older than the mount's rule lets it be, and no acknowledged write is
//! lost. `nodes`: temporary nodes are linearizable, or say that they are lost where a worker was. `records`: records of shards are
//! linearizable by key, and searches see them so. `epochs`: one coordinator an epoch.
//! `recovery`: how long after the fault's end reads are as fast as before. The search for an order of calls (`linear`) is that of a crate.

mod epochs;
mod linear;
mod nodes;
mod objects;
mod records;
mod recovery;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::history::Call;

pub use epochs::Views;
pub use nodes::Losses;
pub use records::{RecordCall, RecordOp, is_certain, records};
pub use recovery::Recovery;

/// Something that must not have happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// What is broken.
    pub rule: Rule,
    /// By which calls.
    pub what: String,
}

/// What can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// An answer is bytes of one version, and all that was asked for.
    OneVersion,
    /// An answer is no older than the mount's rule lets it be.
    NotStale,
    /// Nobody sees what is not written.
    Written,
    /// What was acknowledged is there.
    NotLost,
    /// Calls are as if one was done after the other, each between its begin and its end.
    Linearizable,
    /// Temporary data is lost only with a worker.
    LostWithWorker,
    /// Reads are soon as fast again as they were, and all that was away is back.
    Recovers,
    /// Shared storage is read no faster than its bounds allow.
    WithinBound,
    /// What nobody may do is refused.
    Refused,
    /// There is room as long as little is kept.
    HasRoom,
    /// Each row of a query's answer is there, once.
    RowsOnce,
    /// What fails for a moment says that it can be asked again.
    AsksAgain,
    /// At rest nothing is left over.
    NothingLeft,
    /// Processes stay up, and end when they are told to.
    StaysUp,
    /// In each epoch one coordinator writes, and nobody goes back to an earlier one.
    OneEpoch,
    /// All has to be decided, and some of it was not in the time for that.
    Decided,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.what)
    }
}

impl Violation {
    /// Of a rule, by what broke it.
    pub fn new(rule: Rule, what: impl Into<String>) -> Self {
        Self { rule, what: what.into() }
    }
}

/// What readers of an object are promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Each open asks the store: one order of all reads and writes explains what they saw.
    InOrder,
    /// What is known is taken for current until a write is acknowledged. While one is under way, one reader may see it and a later one
    /// not yet.
    SinceAcknowledged,
    /// An older version may be read for so many microseconds after a newer one was acknowledged.
    Within(u64),
}

/// What must hold of a history's contents, by what is promised of each object.
pub fn judge(calls: &[Call], promise: impl Fn(u32) -> Promise, losses: &Losses) -> Vec<Violation> {
    let mut violations = objects::judge(calls, promise);
    violations.extend(nodes::judge(calls, losses));
    violations
}

/// How soon reads were as fast as before the fault.
pub fn recovery(calls: &[Call], struck_us: u64, healed_us: u64) -> Recovery {
    recovery::of(calls, struck_us, healed_us)
}

/// Errors by way, call and kind.
pub fn errors(calls: &[Call]) -> BTreeMap<String, u64> {
    let mut errors = BTreeMap::new();
    for call in calls {
        if let Some(failure) = &call.error {
            *errors.entry(format!("{:?} {}: {}", call.door, call.name(), failure.kind)).or_default() += 1;
        }
    }
    errors
}
