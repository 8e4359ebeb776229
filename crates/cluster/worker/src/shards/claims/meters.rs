//! What is counted of claims, and how long acknowledging takes with and without them.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use forebay_metrics::{Counter, Histogram, Kinds, table};
use forebay_shard_store::Acknowledged;
use lru::LruCache;
use parking_lot::Mutex;

/// Claims that are remembered as lost.
const LOST_MAX: usize = 1024;

/// The numbers of a worker's claims.
pub(in crate::shards) struct ClaimMeters {
    acknowledged: Kinds<Histogram>,
    begun: Arc<Counter>,
    ended: Arc<Counter>,
    lost: Arc<Counter>,
    /// Those that are counted as lost.
    known: Mutex<LruCache<u128, ()>>,
}

impl ClaimMeters {
    pub(super) fn new() -> Self {
        let kinds = [Acknowledged::Storage, Acknowledged::TwoWorkers].map(Acknowledged::as_str);
        // There from the start on: who watches what grows has to see it at 0.
        let [begun, ended, lost] = ["begun", "ended", "lost"].map(|event| table::WORKER_SHARD_CLAIMS.with([event]));
        let known = Mutex::new(LruCache::new(NonZeroUsize::new(LOST_MAX).expect("not 0")));
        Self { acknowledged: Kinds::new(&table::WORKER_SHARD_ACK_SECONDS, &kinds), begun, ended, lost, known }
    }

    /// A call that changes a shard was acknowledged so long after it came.
    pub(in crate::shards) fn acknowledged(&self, by: Acknowledged, after: Duration) {
        if let Some(seconds) = self.acknowledged.of(by.as_str()) {
            seconds.record(after);
        }
    }

    /// This worker writes under a claim.
    pub(super) fn begun(&self) {
        self.begun.add(1);
    }

    /// This worker has ended a claim, its own or another one's.
    pub(super) fn ended(&self) {
        self.ended.add(1);
    }

    /// Both workers of a claim are gone with their disks, which is met by all who ask for the shard.
    pub(super) fn lost(&self, claim: u128) {
        if self.known.lock().put(claim, ()).is_none() {
            self.lost.add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_is_lost_is_counted_once_however_often_it_is_met() {
        let (meters, lost) = (ClaimMeters::new(), table::WORKER_SHARD_CLAIMS.with(["lost"]));
        let before = lost.get();
        [7, 7, 8, 7].into_iter().for_each(|claim| meters.lost(claim));
        assert_eq!(lost.get() - before, 2);
    }

    #[test]
    fn changes_are_timed_by_what_had_them() {
        let meters = ClaimMeters::new();
        let counts = || ["storage", "two-workers"].map(|by| table::WORKER_SHARD_ACK_SECONDS.with([by]).count());
        let before = counts();
        meters.acknowledged(Acknowledged::TwoWorkers, Duration::from_millis(3));
        assert!(counts()[1] > before[1] && counts()[0] >= before[0]);
    }
}
