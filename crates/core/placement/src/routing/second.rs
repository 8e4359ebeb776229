//! When a read that has no answer is asked of a second holder too.
//!
//! A read that takes long is no reason by itself: a cold one waits for its share of the bandwidth, and to ask another worker would fetch
//! everything twice. So a read that is late is a reason to ask its worker whether it is there, and only one that does not even answer that
//! is passed by. As much as an [`Allowance`] lets go: whatever slows all workers down must not double what they are asked.

/// No read is late before this, in microseconds.
const LATE_MIN_US: u64 = 300_000;
/// Whatever a worker's reads take, one is late after this.
const LATE_MAX_US: u64 = 2_000_000;
/// How many deviations above the mean are late, and the weights of a new time in both: as TCP counts its retransmission timeout (RFC 6298).
const DEVIATIONS: u64 = 4;
const MEAN_WEIGHT: u64 = 8;
const DEVIATION_WEIGHT: u64 = 4;

/// What reads of one worker take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usual {
    mean_us: u64,
    deviation_us: u64,
}

impl Usual {
    /// A read took so many microseconds.
    pub fn took(&mut self, us: u64) {
        if self.mean_us == 0 {
            (self.mean_us, self.deviation_us) = (us, us / 2);
            return;
        }
        assert!(self.mean_us > 0, "a mean of what was seen");
        let off = self.mean_us.abs_diff(us);
        self.deviation_us = self.deviation_us - self.deviation_us / DEVIATION_WEIGHT + off / DEVIATION_WEIGHT;
        self.mean_us = self.mean_us - self.mean_us / MEAN_WEIGHT + us / MEAN_WEIGHT;
    }

    /// After how many microseconds without an answer a read is late.
    pub fn late_us(&self) -> u64 {
        self.mean_us.saturating_add(self.deviation_us.saturating_mul(DEVIATIONS)).clamp(LATE_MIN_US, LATE_MAX_US)
    }
}

/// How many reads more may be asked of a second holder: one in twenty, and some at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    twentieths: u32,
}

/// A second question costs as much as so many reads bring.
const ONE: u32 = 20;
const SAVED_MAX: u32 = 32 * ONE;

impl Default for Allowance {
    fn default() -> Self {
        Self { twentieths: SAVED_MAX }
    }
}

impl Allowance {
    /// A read was asked for.
    pub fn read(&mut self) {
        self.twentieths = (self.twentieths + 1).min(SAVED_MAX);
    }

    /// Takes one, if there is one left.
    pub fn take(&mut self) -> bool {
        assert!(self.twentieths <= SAVED_MAX, "no more is saved than may be");
        let left = self.twentieths.checked_sub(ONE);
        self.twentieths = left.unwrap_or(self.twentieths);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_late_by_what_its_worker_s_reads_take_within_limits() {
        let mut usual = Usual::default();
        assert_eq!(usual.late_us(), LATE_MIN_US, "nothing is known");
        for _ in 0..100 {
            usual.took(500);
        }
        assert_eq!(usual.late_us(), LATE_MIN_US);
        for _ in 0..100 {
            usual.took(400_000);
        }
        assert!((400_000..800_000).contains(&usual.late_us()), "{}", usual.late_us());
        for us in [100, 5_000_000].into_iter().cycle().take(100) {
            usual.took(us);
        }
        assert_eq!(usual.late_us(), LATE_MAX_US);
        usual.took(u64::MAX);
        assert_eq!(usual.late_us(), LATE_MAX_US);
    }

    #[test]
    fn one_read_in_twenty_is_asked_twice_at_most() {
        let mut allowance = Allowance::default();
        let taken = (0..1000).filter(|_| allowance.take()).count();
        assert_eq!(taken, 32, "some at once");
        let taken = (0..1000)
            .filter(|_| {
                allowance.read();
                allowance.take()
            })
            .count();
        assert_eq!(taken, 50);
    }
}
