//! What each worker is to have of each mount's bound, as it was split last, and when it is to be split anew.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forebay_types::{MountId, WorkerId};

/// How old a split may be: with many workers it is too much work for every heartbeat.
const TARGETS_AGE_MAX: Duration = Duration::from_millis(200);
/// How old it must be to be made anew because a worker asks for much more or less than before.
const TARGETS_AGE_MIN: Duration = Duration::from_millis(10);

/// The last split of every bound.
#[derive(Debug, Default)]
pub(in crate::decide) struct Targets {
    pub(in crate::decide) by_mount: BTreeMap<MountId, BTreeMap<WorkerId, u64>>,
    /// Live workers then.
    pub(in crate::decide) workers: u64,
    pub(in crate::decide) made_at: Option<Duration>,
    /// A worker asks for much more or less than it did at the last split.
    pub(in crate::decide) moved: bool,
    /// Workers far below their parts, for whom there was no room.
    pub(in crate::decide) short: BTreeSet<WorkerId>,
}

impl Targets {
    pub(in crate::decide) fn forget(&mut self) {
        self.made_at = None;
    }

    pub(in crate::decide) fn is_due(&self, now: Duration) -> bool {
        let age_max = if self.moved { TARGETS_AGE_MIN } else { TARGETS_AGE_MAX };
        self.made_at.is_none_or(|at| now >= at + age_max)
    }

    pub(in crate::decide) fn of(&self, mount: MountId, worker: WorkerId) -> u64 {
        self.by_mount.get(&mount).and_then(|targets| targets.get(&worker)).copied().unwrap_or(0)
    }
}
