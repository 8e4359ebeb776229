//! The lease under which what is known of objects may be answered.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use forebay_runtime::{Defect, planted};
use forebay_types::Validate;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::lease::counted;

/// Whether this worker hears of what others write: they tell it, or wait until it has forgotten what it knew, as long as the
/// coordinator's lease holds. Without, it asks shared storage at every open, and acknowledges no write: there may be workers
/// that it has not told.
pub(crate) struct Hearing {
    began: Instant,
    /// Nanoseconds after `began`.
    until: AtomicU64,
    lease: Mutex<Lease>,
    /// Told when it hears again.
    hears: Notify,
}

struct Lease {
    /// The number with which it forgot last; none while the coordinator does not let it hear.
    number: Option<u64>,
    lasts: Duration,
}

impl Default for Hearing {
    fn default() -> Self {
        let lease = Mutex::new(Lease { number: None, lasts: Duration::from_secs(5) });
        Self { began: forebay_runtime::now(), until: AtomicU64::new(0), lease, hears: Notify::new() }
    }
}

impl Hearing {
    /// Whether it hears of everything now.
    pub(crate) fn holds(&self) -> bool {
        self.holds_at(forebay_runtime::now())
    }

    /// The same for who has looked at the clock.
    pub(crate) fn holds_at(&self, now: Instant) -> bool {
        self.since_began(now) < self.until.load(Ordering::Acquire)
    }

    /// A mount's rule, as strict as it has to be now.
    pub(crate) fn rule(&self, rule: Validate) -> Validate {
        if self.holds() || planted(Defect::StaleAfterStop) { rule } else { Validate::Always }
    }

    /// The number with which it forgot last, for the next heartbeat.
    pub(crate) fn number(&self) -> Option<u64> {
        self.lease.lock().number
    }

    /// How long a worker counts as live without a heartbeat.
    pub(crate) fn lease(&self) -> Duration {
        self.lease.lock().lasts
    }

    /// A heartbeat that was sent at `sent` has been answered. What is known is forgotten by `forget` where it must be, before
    /// anyone is answered from it under the new lease.
    pub(crate) fn renew(&self, sent: Instant, lasts: Duration, number: Option<u64>, forget: impl FnOnce()) {
        let mut lease = self.lease.lock();
        let is_over = self.until.load(Ordering::Acquire) == 0;
        assert!(is_over || lease.number.is_some(), "who does not hear answers from nothing that it knows");
        lease.lasts = lasts;
        if number.is_none() {
            self.until.store(0, Ordering::Release);
        } else if lease.number != number {
            self.until.store(0, Ordering::Release);
            forget();
        }
        lease.number = number;
        if number.is_some() {
            self.until.store(self.since_began(sent + counted(lasts)), Ordering::Release);
            drop(lease);
            self.hears.notify_waiters();
        }
    }

    /// Before it registers, again or for the first time: the coordinator takes it for one that answers from nothing.
    pub(crate) fn end(&self) {
        let mut lease = self.lease.lock();
        lease.number = None;
        self.until.store(0, Ordering::Release);
    }

    /// Waits until it hears.
    pub(crate) async fn hears(&self) {
        loop {
            let told = self.hears.notified();
            if self.holds() {
                return;
            }
            told.await;
        }
    }

    fn since_began(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.began).as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn it_hears_for_one_lease_after_a_heartbeat_and_forgets_with_each_new_number() {
        let (hearing, forgot) = (Hearing::default(), Cell::new(0));
        let second = Duration::from_secs(1);
        let now = forebay_runtime::now();
        let renew = |sent, number| hearing.renew(sent, 5 * second, number, || forgot.set(forgot.get() + 1));
        assert!(!hearing.holds_at(now));
        renew(now, None);
        assert!(!hearing.holds_at(now), "not everyone knows of it");
        renew(now, Some(1));
        let for_tenths = |tenths: u32| hearing.holds_at(now + second * tenths / 10);
        assert_eq!((for_tenths(47), for_tenths(48)), (true, false), "its clock may be a slow one");
        renew(now + 6 * second, Some(1));
        assert!(hearing.holds_at(now + 6 * second), "the coordinator took it for live, and whoever wrote waited");
        assert_eq!(forgot.get(), 1);
        renew(now + 7 * second, Some(2));
        assert_eq!((forgot.get(), hearing.number()), (2, Some(2)));
        hearing.end();
        assert_eq!((hearing.holds_at(now), hearing.number()), (false, None));
        renew(now + 8 * second, Some(2));
        assert_eq!(forgot.get(), 3, "whatever the number");
    }

    #[test]
    fn the_rule_is_always_while_it_hears_nothing() {
        let hearing = Hearing::default();
        assert_eq!(hearing.rule(Validate::Immutable), Validate::Always);
        hearing.renew(forebay_runtime::now(), Duration::from_secs(60), Some(1), || {});
        assert_eq!(hearing.rule(Validate::Immutable), Validate::Immutable);
    }

    #[test]
    #[should_panic(expected = "who does not hear answers from nothing that it knows")]
    fn a_lease_without_a_number_is_caught() {
        let hearing = Hearing::default();
        hearing.until.store(1, Ordering::Release);
        hearing.renew(forebay_runtime::now(), Duration::from_secs(60), Some(1), || {});
    }
}
