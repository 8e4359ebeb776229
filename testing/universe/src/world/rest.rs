//! What must hold of a world beside what its clients were told.

use std::sync::atomic::Ordering::SeqCst;

use forebay_oracle::{Rule, Violation};
use forebay_s3::Holding;
use forebay_types::PAGE_BYTES;

use super::load::BOUND_BYTES;
use super::plan::STORE;
use super::run::World;

/// Mounts, each with its bound.
const MOUNTS: u64 = 2;
/// The bound holds over any time of this length, in microseconds.
const BOUND_OVER_US: u64 = 5_000_000;
/// A worker that is cut off takes a twentieth of a bound that others may have been given.
const CUT_OFF_PERCENT: u64 = 5;

/// Percent of the bounds that so many workers read at most: all but one are cut off, and that one was given what they had. Who joins
/// comes in the place of one that is gone.
const fn percent_of_bound(workers: u64) -> u64 {
    102 + CUT_OFF_PERCENT * workers.saturating_sub(1)
}

impl World<'_> {
    /// Reads of the store stay within the bounds of its mounts.
    pub(super) fn beyond_bound(&self, until_us: u64) -> Option<Violation> {
        let percent = percent_of_bound(self.plan.workers as u64);
        let bound = MOUNTS * BOUND_BYTES * (BOUND_OVER_US / 1_000_000) * percent / 100;
        let reads: Vec<(u64, u64)> = self.network.read_from(STORE).into_iter().filter(|(at_us, _)| *at_us < until_us).collect();
        let (mut first, mut sum) = (0, 0);
        for (at_us, bytes) in &reads {
            sum += bytes;
            while reads[first].0 + BOUND_OVER_US <= *at_us {
                sum -= reads[first].1;
                first += 1;
            }
            if sum > bound {
                let what = format!("{sum} bytes were read of the store in the 5 s before {at_us} us, {bound} are the most");
                return Some(Violation::new(Rule::WithinBound, what));
            }
        }
        None
    }

    /// All workers are back.
    pub(super) fn not_back(&self) -> Option<Violation> {
        let live = *self.seen.live.lock();
        (live != self.plan.workers).then(|| {
            Violation::new(
                Rule::Recovers,
                format!("{live} of {} workers are live two leases after the last fault", self.plan.workers),
            )
        })
    }

    /// The gateway holds nothing, and no upload in parts is open at the store but those that nobody was told of.
    pub(super) fn held_by_gateway(&self) -> Option<Violation> {
        self.plan.gateway()?;
        let (held, open, unanswered) =
            (*self.seen.held.lock(), self.shared.server.uploads_open() as u64, self.course.asked.unanswered());
        (held != Holding::default() || open > unanswered).then(|| {
            let what = format!("the gateway has {held:?}; {open} uploads are open at the store, {unanswered} were not answered");
            Violation::new(Rule::NothingLeft, what)
        })
    }

    /// Nothing is held for anybody any more, but blocks that a node may still come for.
    pub(super) fn left_over(&self) -> Option<Violation> {
        let pinned = self.seen.pinned.lock();
        let unclaimed = self.course.counts.unclaimed.load(SeqCst) as u64 * PAGE_BYTES;
        (pinned.iter().sum::<u64>() > unclaimed)
            .then(|| Violation::new(Rule::NothingLeft, format!("bytes pinned by worker: {pinned:?}, {unclaimed} at most in all")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_given_what_others_gave_up_is_not_cut_off_as_well() {
        assert_eq!([1, 3, 7].map(percent_of_bound), [102, 112, 132]);
    }
}
