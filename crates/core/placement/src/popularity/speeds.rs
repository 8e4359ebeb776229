//! How fast workers are, from what they did while they had enough to do.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay_types::WorkerId;

/// A worker that was busy for a smaller part of its window says little about how fast it is.
const BUSY_SHARE: f64 = 0.3;
/// How much of a speed is what was measured last, where that is like what was before: so much that the window in which a worker became slow
/// is less than a tenth off after the next one.
const LATEST: f64 = 0.75;
/// Workers that differ by less are equals, and so are two windows of one.
const EQUAL_WITHIN: f64 = 0.25;
/// No worker counts for less than this part of the fastest.
const LEAST: f64 = 0.125;
/// Workers that have less to do than this part of what they can are planned as if they had as much.
const LEAST_LOAD: f64 = 0.25;
/// A slow worker is given this part at least of what it would be given by its speed alone.
const LEAST_PART: f64 = 0.5;
/// A slow worker that had too little to do for its speed to be known is taken for so much faster than before: one that is fast again, and
/// is given little since it was slow, is given more until it is measured. From [`LEAST`] on: a part of nothing, where nothing left it in a
/// window, would stay nothing.
const FORGIVEN: f64 = 1.02;

/// How fast workers do what they have to, measured where they had enough of it: in any unit of work a second that is the same for
/// all, as bytes that they send.
///
/// ```
/// use std::time::Duration;
/// use forebay_placement::Speeds;
/// use forebay_types::WorkerId;
///
/// let mut speeds = Speeds::default();
/// let window = Duration::from_secs(60);
/// speeds.measure(WorkerId(1), window, window, 6e9);
/// speeds.measure(WorkerId(2), window, window / 2, 1.5e9);
/// speeds.measure(WorkerId(3), window, window / 100, 1.0);
/// assert_eq!([1, 2, 3].map(|worker| speeds.of(WorkerId(worker))), [1.0, 0.5, 1.0]);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Speeds {
    /// Work a second while there was enough of it.
    speeds: BTreeMap<WorkerId, f64>,
    /// Work a second in all of the last window.
    rates: BTreeMap<WorkerId, f64>,
}

impl Speeds {
    /// A worker was busy for a part of a window that lasted so long, and did so much work in it. What is like the windows before is
    /// averaged with them; what is not is believed at once, so that a worker whose network is slow from now on is planned with
    /// as it is.
    pub fn measure(&mut self, worker: WorkerId, lasted: Duration, busy: Duration, work: f64) {
        if lasted == Duration::ZERO || !work.is_finite() {
            return;
        }
        self.rates.insert(worker, work / lasted.as_secs_f64());
        let secs = busy.as_secs_f64();
        if secs >= BUSY_SHARE * lasted.as_secs_f64() {
            let speed = work / secs;
            let before = self.speeds.get(&worker).copied().filter(|before| are_equal(*before, speed));
            self.speeds.insert(worker, before.map_or(speed, |before| before + LATEST * (speed - before)));
        } else {
            let fastest = self.fastest();
            self.speeds.entry(worker).and_modify(|speed| *speed = (speed.max(LEAST * fastest) * FORGIVEN).min(fastest));
        }
    }

    /// A worker's speed as a part of the fastest's. One that had nothing to do so far counts as the fastest.
    pub fn of(&self, worker: WorkerId) -> f64 {
        let fastest = self.fastest();
        let part = match self.speeds.get(&worker) {
            Some(speed) if !are_equal(*speed, fastest) => (speed / fastest).max(LEAST),
            _ => 1.0,
        };
        debug_assert!((LEAST..=1.0).contains(&part), "{part} is a part of the fastest");
        part
    }

    /// The parts of all work that workers should be given, in any unit: the speeds of [`Self::of`] where all are equal, or have as much to
    /// do as they can. As many reads in line take longer at a slow worker, so that with less to do the slow ones are given less than by their
    /// speed: what makes the mean time of a read the shortest where they come at random (spare capacity is left by the root of the
    /// speed; J. Buzen and P. Chen, "Optimal load balancing in memory hierarchies", 1974).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use forebay_placement::Speeds;
    /// # use forebay_types::WorkerId;
    /// let (mut speeds, window) = (Speeds::default(), Duration::from_secs(60));
    /// speeds.measure(WorkerId(1), window, window / 2, 3e9);
    /// speeds.measure(WorkerId(2), window, window / 2, 1e9);
    /// let shares = speeds.shares(&[WorkerId(1), WorkerId(2)]);
    /// assert!(shares[1] < shares[0] / 3.0);
    /// ```
    pub fn shares(&self, workers: &[WorkerId]) -> Vec<f64> {
        let parts: Vec<f64> = workers.iter().map(|worker| self.of(*worker)).collect();
        let fastest = self.fastest();
        if fastest <= 0.0 || parts.iter().all(|part| *part == parts[0]) {
            return parts;
        }
        // In parts of the fastest's speed.
        let capacity: f64 = parts.iter().sum();
        let asked = workers.iter().filter_map(|worker| self.rates.get(worker)).sum::<f64>() / fastest;
        let load = (asked / capacity).clamp(LEAST_LOAD, 1.0);
        let spare = (1.0 - load) * capacity / parts.iter().map(|part| part.sqrt()).sum::<f64>();
        let shares = parts.iter().map(|part| (part - part.sqrt() * spare).max(LEAST_PART * load * part));
        let shares: Vec<f64> = shares.collect();
        debug_assert!(shares.iter().zip(&parts).all(|(share, part)| *share > 0.0 && share <= part), "{shares:?} of {parts:?}");
        shares
    }

    fn fastest(&self) -> f64 {
        self.speeds.values().fold(0.0, |fastest, speed| fastest.max(*speed))
    }

    /// What was measured, as it is.
    pub fn measured(&self) -> impl Iterator<Item = (WorkerId, f64)> {
        self.speeds.iter().map(|(worker, speed)| (*worker, *speed))
    }

    /// A worker is gone.
    pub fn forget(&mut self, worker: WorkerId) {
        self.speeds.remove(&worker);
        self.rates.remove(&worker);
    }
}

fn are_equal(one: f64, other: f64) -> bool {
    let most = one.max(other);
    most <= 0.0 || one.min(other) / most > 1.0 - EQUAL_WITHIN
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(1);

    #[test]
    fn only_the_busy_are_measured_and_only_what_differs_much_counts() {
        let mut speeds = Speeds::default();
        let mut measure = |worker, busy_ms, work| speeds.measure(WorkerId(worker), WINDOW, Duration::from_millis(busy_ms), work);
        measure(1, 1000, 100e6);
        measure(2, 500, 25e6);
        measure(3, 900, 80e6);
        measure(4, 100, 1.0);
        measure(5, 1000, 1e3);
        measure(6, 1000, f64::NAN);
        measure(7, 0, 9e9);
        let speeds = [1, 2, 3, 4, 5, 6, 7].map(|worker| speeds.of(WorkerId(worker)));
        assert_eq!(speeds, [1.0, 0.5, 1.0, 1.0, 0.125, 1.0, 1.0]);
    }

    #[test]
    fn a_slow_worker_with_little_to_do_is_taken_for_faster_until_it_is_measured() {
        let mut speeds = Speeds::default();
        let mut windows = |busy_ms, work, times| {
            for _ in 0..times {
                speeds.measure(WorkerId(1), WINDOW, WINDOW, 100e6);
                speeds.measure(WorkerId(2), WINDOW, Duration::from_millis(busy_ms), work);
            }
            [speeds.of(WorkerId(1)), speeds.of(WorkerId(2))]
        };
        assert_eq!(windows(1000, 50e6, 1), [1.0, 0.5]);
        let [fast, slow] = windows(200, 20e6, 10);
        assert!(fast == 1.0 && (0.55..0.65).contains(&slow), "{slow}");
        assert_eq!(windows(200, 20e6, 100), [1.0, 1.0], "and never for faster than the fastest");
        assert_eq!(windows(500, 25e6, 1), [1.0, 0.5], "it is slow still");
        assert_eq!(windows(1000, 100e6, 1), [1.0, 1.0]);
        assert_eq!(windows(1000, 0.0, 1), [1.0, LEAST], "nothing left it");
        let [_, slow] = windows(200, 0.0, 10);
        assert!((0.15..0.16).contains(&slow), "{slow}");
    }

    /// Shares of three workers and one of half their speed that are busy for a part of the time.
    fn shares(busy: f64) -> Vec<f64> {
        let mut speeds = Speeds::default();
        let workers = [1, 2, 3, 4].map(WorkerId);
        for (worker, speed) in workers.into_iter().zip([25e6, 25e6, 25e6, 12.5e6]) {
            speeds.measure(worker, WINDOW, WINDOW.mul_f64(busy), speed * busy);
        }
        let shares = speeds.shares(&workers);
        assert_eq!((shares[0], shares[1]), (shares[1], shares[2]));
        shares
    }

    #[test]
    fn reads_of_a_slow_worker_waited_twice_as_long_however_little_there_was_to_do() {
        assert_eq!(shares(1.0), [1.0, 1.0, 1.0, 0.5], "each as much as it can");
        let of_all = |busy: f64| shares(busy)[3] / shares(busy).iter().sum::<f64>();
        let by_speed = 0.5 / 3.5;
        assert!(of_all(0.7) < 0.9 * by_speed && of_all(0.4) < 0.6 * by_speed && of_all(0.4) < of_all(0.7), "{:?}", shares(0.4));
        // Mean time of a read where each worker is a queue: of so much work a second, by shares.
        let mean = |work: f64, shares: &[f64]| {
            let (all, speeds) = (shares.iter().sum::<f64>(), [1.0, 1.0, 1.0, 0.5]);
            shares.iter().zip(speeds).map(|(share, speed)| share / all / (speed - share / all * work)).sum::<f64>()
        };
        for busy in [0.4, 0.7] {
            assert!(mean(3.5 * busy, &shares(busy)) < mean(3.5 * busy, &[1.0, 1.0, 1.0, 0.5]), "{busy}");
        }
    }

    #[test]
    fn equals_and_strangers_have_equal_shares_and_the_slowest_something_to_do() {
        let workers = [1, 2].map(WorkerId);
        let mut speeds = Speeds::default();
        assert_eq!(speeds.shares(&workers), [1.0, 1.0]);
        assert!(speeds.shares(&[]).is_empty());
        speeds.measure(workers[0], WINDOW, WINDOW / 2, 50.0);
        assert_eq!(speeds.shares(&workers), [1.0, 1.0], "nothing is known of the second");
        speeds.measure(workers[1], WINDOW, WINDOW / 2, 1.0);
        let shares = speeds.shares(&workers);
        assert!(shares[1] >= LEAST_PART * LEAST_LOAD * LEAST, "{shares:?}");
        // The next window is quiet, and the speeds of before are what is known.
        for worker in workers {
            speeds.measure(worker, WINDOW, Duration::ZERO, 0.0);
        }
        assert!(speeds.shares(&workers).iter().all(|share| *share > 0.0));
    }

    #[test]
    fn a_worker_that_became_slow_was_half_believed_for_windows() {
        let mut speeds = Speeds::default();
        let mut measure = |worker, work| speeds.measure(WorkerId(worker), WINDOW, WINDOW, work);
        for work in [100.0, 110.0, 90.0] {
            measure(1, work);
            measure(2, 100.0);
        }
        measure(1, 50.0);
        measure(1, 52.0);
        let believed: Vec<(WorkerId, f64)> = speeds.measured().collect();
        assert_eq!(believed, [(WorkerId(1), 51.5), (WorkerId(2), 100.0)]);
        assert_eq!(speeds.of(WorkerId(1)), 0.515);
        // Most of the window in which it became slow it was so already.
        let measured = |before: f64| {
            let mut speeds = Speeds::default();
            for work in [100.0, before, 50.0] {
                speeds.measure(WorkerId(1), WINDOW, WINDOW, work);
            }
            speeds.measured().map(|(_, speed)| speed).sum::<f64>()
        };
        for before in 50..=100 {
            let measured = measured(f64::from(before));
            assert!((50.0..=55.0).contains(&measured), "{measured} after {before}");
        }
    }
}
