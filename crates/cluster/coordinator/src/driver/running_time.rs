//! Time as the coordinator counts it: only what it ran in.
//!
//! A process that is stopped, or a machine that is paused, hears no heartbeat meanwhile. Counted by the machine's clock every lease
//! would be over when it goes on, and with the workers all temporary data would be lost, though none of them was away.

use std::time::Duration;

use tracing::warn;

/// Time is looked at with every tick, several times a second. Where nobody looked for so long, the coordinator did not run.
const STOOD_STILL_AFTER: Duration = Duration::from_secs(1);

/// The time that the coordinator has run. It never goes back.
#[derive(Debug, Default)]
pub(super) struct RunningTime {
    /// When it was looked at last, since the coordinator's start.
    looked: Duration,
    /// What it did not run in.
    stood_still: Duration,
}

impl RunningTime {
    /// The time that it has run, `elapsed` after its start by the machine's clock.
    pub(super) fn at(&mut self, elapsed: Duration) -> Duration {
        let (before, since) = (self.looked - self.stood_still, elapsed.saturating_sub(self.looked));
        if since > STOOD_STILL_AFTER {
            warn!(secs = since.as_secs_f64(), "the coordinator stood still: leases go on from where they were");
            self.stood_still += since;
        }
        self.looked = self.looked.max(elapsed);
        assert!(self.stood_still <= self.looked, "it can't have stood still for longer than it is there");
        let now = self.looked - self.stood_still;
        debug_assert!(now >= before, "time never goes back");
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: f64) -> Duration {
        Duration::from_secs_f64(secs)
    }

    #[test]
    fn time_that_is_looked_at_goes_on() {
        let mut time = RunningTime::default();
        for quarter in 0..100 {
            assert_eq!(time.at(at(f64::from(quarter) / 4.0)), at(f64::from(quarter) / 4.0));
        }
    }

    #[test]
    fn what_it_stood_still_for_is_left_out() {
        let mut time = RunningTime::default();
        assert_eq!(time.at(at(0.5)), at(0.5));
        assert_eq!(time.at(at(9.25)), at(0.5), "stopped for 8.75 s");
        assert_eq!(time.at(at(9.5)), at(0.75));
        assert_eq!(time.at(at(20.0)), at(0.75), "and again");
    }

    #[test]
    fn it_never_goes_back() {
        let mut time = RunningTime::default();
        assert_eq!(time.at(at(0.75)), at(0.75));
        assert_eq!(time.at(at(0.5)), at(0.75));
    }
}
