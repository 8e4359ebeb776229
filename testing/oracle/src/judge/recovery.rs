//! How soon after a fault's end reads are as fast as they were before it.

use serde::Serialize;

use super::{Rule, Violation};
use crate::history::{Call, What};

/// Reads are to be as fast as before so soon, in microseconds.
const BACK_WITHIN_US: u64 = 10_000_000;
/// A machine on which reads take so long without a fault says nothing of what is as fast as before.
const BUSY_US: u64 = 1_000_000;
/// Reads are looked at together that ended within this time.
const WINDOW_US: u64 = 1_000_000;
/// So many windows in a row are good before it counts.
const WINDOWS: u64 = 3;
/// As fast as before: at most so many times what it took then, or this, which a busy machine may take without a fault.
const TIMES: u64 = 3;
const SLOW_US: u64 = 250_000;
/// Of so many reads one may find its version gone, as one does that opens what is written past Forebay and reads it later: no fault is
/// needed for that. Where a key's readers are told so one after the other they are more.
const GONE_ONE_IN: usize = 20;

/// What reads took, and when they took no more than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// The 99th percentile of reads that were over before the fault.
    pub reads_p99_before_us: Option<u64>,
    /// The same of those that were under way while it lasted.
    pub reads_p99_during_us: Option<u64>,
    /// Time from the fault's end until reads were as before. None where they never were.
    pub reads_back_us: Option<u64>,
    /// Time from the fault's end to the last write that failed.
    pub writes_back_us: u64,
}

impl Recovery {
    /// What does not hold of it.
    pub fn violation(&self) -> Option<Violation> {
        if let Some(before_us) = self.reads_p99_before_us.filter(|before_us| *before_us > BUSY_US) {
            let what = format!("reads took {} ms before the fault: the machine is too busy to tell", before_us / 1000);
            return Some(Violation::new(Rule::Decided, what));
        }
        let late = match self.reads_back_us {
            Some(back_us) if back_us <= BACK_WITHIN_US => return None,
            Some(back_us) => format!("reads were as before {} ms after the fault's end", back_us / 1000),
            None => "reads were not as before until the load's end".to_owned(),
        };
        Some(Violation::new(Rule::Recovers, late))
    }
}

pub(super) fn of(calls: &[Call], struck_us: u64, healed_us: u64) -> Recovery {
    assert!(struck_us <= healed_us, "a fault ends after it began");
    let reads: Vec<&Call> = calls.iter().filter(|call| matches!(call.what, What::Read { .. })).collect();
    let before = percentile(reads.iter().filter(|call| call.end_us < struck_us));
    // Those that hang count to the fault, also where they were asked before it or answered after it.
    let during = percentile(reads.iter().filter(|call| call.begin_us < healed_us && call.end_us >= struck_us));
    let limit_us = (before.unwrap_or(0) * TIMES).max(SLOW_US);
    let is_good = |from: u64| {
        let ended = || reads.iter().filter(|call| (from..from + WINDOW_US).contains(&call.end_us));
        let failed: Vec<_> = ended().filter_map(|call| call.error.as_ref()).collect();
        let few = failed.iter().all(|failure| failure.kind == "conflict") && failed.len() * GONE_ONE_IN <= ended().count();
        few && percentile(ended()).is_some_and(|slowest| slowest <= limit_us)
    };
    let last = reads.iter().map(|call| call.end_us).max().unwrap_or(0);
    let mut candidates = (healed_us..last).step_by(WINDOW_US as usize / 4);
    let back = candidates.find(|from| (0..WINDOWS).all(|window| is_good(from + window * WINDOW_US)));
    let failed_writes = calls.iter().filter(|call| matches!(call.what, What::Write { .. }) && call.error.is_some());
    Recovery {
        reads_p99_before_us: before,
        reads_p99_during_us: during,
        reads_back_us: back.map(|back| back - healed_us),
        writes_back_us: failed_writes.map(|call| call.end_us.saturating_sub(healed_us)).max().unwrap_or(0),
    }
}

/// The 99th percentile of the times that calls took; none of no calls.
fn percentile<'a>(calls: impl Iterator<Item = &'a &'a Call>) -> Option<u64> {
    let mut took: Vec<u64> = calls.map(|call| call.end_us - call.begin_us).collect();
    took.sort_unstable();
    took.get((took.len() * 99 / 100).min(took.len().saturating_sub(1))).copied()
}
