//! The arithmetic of the bound: a token bucket. No clock; time passed is an argument.

use std::time::Duration;

/// Smallest burst: below this, reads would be too small to be worth their calls.
const BURST_MIN: u64 = 64 << 10;
/// Largest part of a read that is waited for: more saves no work.
const PORTION_MAX: u64 = 256 << 10;
/// Nanoseconds of a second: tokens are kept in bytes times this, so that no fraction is lost at any rate.
const SCALE: u128 = 1_000_000_000;

/// Fills with `rate` bytes a second up to `capacity`; what is read is taken out.
///
/// Over any time `t` at most `rate * t + capacity` bytes are taken. The capacity is the burst that was asked for, but at
/// most a tenth of a second's bytes, so that any five seconds stay within 1.02 times the rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    rate: u64,
    capacity: u64,
    /// Bytes that may be taken, times [`SCALE`].
    level: u128,
}

impl Bucket {
    /// A full bucket.
    pub(crate) fn new(rate: u64, burst: u64) -> Self {
        let capacity = burst.min(rate / 10).max(BURST_MIN);
        Self { rate, capacity, level: u128::from(capacity) * SCALE }
    }

    /// Another rate from now on. What was saved stays, as far as it fits: a new rate is no new burst.
    pub(crate) fn set(&mut self, rate: u64, burst: u64) {
        let level = self.level;
        *self = Self::new(rate, burst);
        self.level = self.level.min(level);
    }

    /// Time has passed.
    pub(crate) fn pass(&mut self, time: Duration) {
        let gained = u128::from(self.rate).saturating_mul(time.as_nanos());
        self.level = self.level.saturating_add(gained).min(u128::from(self.capacity) * SCALE);
    }

    /// What may be taken now, in bytes.
    pub(crate) fn available(&self) -> u64 {
        (self.level / SCALE) as u64
    }

    /// Takes `bytes`, which must be available.
    pub(crate) fn take(&mut self, bytes: u64) {
        self.level = self.level.checked_sub(u128::from(bytes) * SCALE).expect("takers ask what is available");
    }

    /// Puts back what was taken and not read.
    pub(crate) fn give_back(&mut self, bytes: u64) {
        self.level = (self.level + u128::from(bytes) * SCALE).min(u128::from(self.capacity) * SCALE);
    }

    /// How long until `bytes` are available; none when they never will be at this rate.
    pub(crate) fn wait_for(&self, bytes: u64) -> Option<Duration> {
        let missing = (u128::from(bytes.min(self.capacity)) * SCALE).saturating_sub(self.level);
        match (missing, self.rate) {
            (0, _) => Some(Duration::ZERO),
            (_, 0) => None,
            (missing, rate) => Some(Duration::from_nanos(missing.div_ceil(u128::from(rate)).min(u64::MAX.into()) as u64)),
        }
    }

    /// What a reader should wait for before it reads: five milliseconds' worth, so that reads are neither tiny nor
    /// bunched; of the capacity a quarter, so that nothing is lost while a reader wakes late.
    pub(crate) fn portion(&self) -> u64 {
        (self.rate / 200).min(self.capacity / 4).clamp(4 << 10, PORTION_MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_new_rate_is_no_new_burst() {
        let mut bucket = Bucket::new(50_000_000, 1 << 20);
        bucket.take(1 << 20);
        bucket.set(100_000_000, 1 << 20);
        assert_eq!(bucket.available(), 0);
        bucket.pass(Duration::from_millis(1));
        assert_eq!(bucket.available(), 100_000);
    }

    #[test]
    fn at_rate_zero_nothing_ever_comes() {
        let mut bucket = Bucket::new(0, 0);
        bucket.take(bucket.available());
        bucket.pass(Duration::from_secs(1000));
        assert_eq!((bucket.available(), bucket.wait_for(1)), (0, None));
    }

    proptest! {
        /// Whatever is asked for and when, no window of time holds more than its share and one burst, and a reader who
        /// takes all there is gets no less than the rate.
        #[test]
        fn no_window_exceeds_the_bound(
            rate in 1u64..200_000_000,
            burst in 0u64..8_000_000,
            steps in prop::collection::vec((0u64..20_000_000, 0u64..2_000_000), 1..200),
        ) {
            let mut bucket = Bucket::new(rate, burst);
            let capacity = bucket.available();
            let (mut now, mut taken) = (0u64, Vec::new());
            for (nanos, want) in steps {
                now += nanos;
                bucket.pass(Duration::from_nanos(nanos));
                let bytes = want.min(bucket.available());
                bucket.take(bytes);
                taken.push((now, bytes));
            }
            for from in 0..taken.len() {
                let mut sum = 0u128;
                for &(at, bytes) in &taken[from..] {
                    sum += u128::from(bytes);
                    let share = u128::from(rate) * u128::from(at - taken[from].0) / SCALE;
                    prop_assert!(sum <= share + u128::from(capacity) + 1);
                }
            }
        }

        #[test]
        fn waiting_as_long_as_told_is_enough(rate in 1u64..1_000_000_000, burst in 0u64..8_000_000, bytes in 1u64..60_000) {
            let mut bucket = Bucket::new(rate, burst);
            bucket.take(bucket.available());
            let wait = bucket.wait_for(bytes).expect("the rate isn't zero");
            bucket.pass(wait);
            prop_assert!(bucket.available() >= bytes);
        }

        #[test]
        fn taking_all_there_is_gets_the_rate(rate in 1_000_000u64..1_000_000_000, burst in 1u64 << 20..8 << 20) {
            let mut bucket = Bucket::new(rate, burst);
            let mut taken = 0;
            for _ in 0..1000 {
                bucket.pass(Duration::from_millis(1));
                let bytes = bucket.available();
                bucket.take(bytes);
                taken += bytes;
            }
            prop_assert!(taken + 1 >= rate && taken <= rate + rate / 10 + 1);
        }
    }
}
