//! How fast workers are, from what they did while they had enough to do.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay_types::WorkerId;

/// A worker that was busy for a smaller part of its window says little about how fast it is.
const BUSY_SHARE: f64 = 0.3;
/// Workers that differ by less are equals, and so are two windows of one.
const EQUAL_WITHIN: f64 = 0.25;
/// No worker counts for less than this part of the fastest.
const LEAST: f64 = 0.125;

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
pub struct Speeds(BTreeMap<WorkerId, f64>);

impl Speeds {
    /// A worker was busy for a part of a window that lasted so long, and did so much work in it. What is like the windows before is
    /// averaged with them; what is not is believed at once, so that a worker whose network is slow from now on is planned with
    /// as it is.
    pub fn measure(&mut self, worker: WorkerId, lasted: Duration, busy: Duration, work: f64) {
        let secs = busy.as_secs_f64();
        if lasted > Duration::ZERO && secs >= BUSY_SHARE * lasted.as_secs_f64() && work.is_finite() {
            let speed = work / secs;
            let before = self.0.get(&worker).copied().filter(|before| are_equal(*before, speed));
            self.0.insert(worker, before.map_or(speed, |before| (before + speed) / 2.0));
        }
    }

    /// A worker's speed as a part of the fastest's. One that had nothing to do so far counts as the fastest.
    pub fn of(&self, worker: WorkerId) -> f64 {
        let fastest = self.0.values().fold(0.0f64, |fastest, speed| fastest.max(*speed));
        let part = match self.0.get(&worker) {
            Some(speed) if !are_equal(*speed, fastest) => (speed / fastest).max(LEAST),
            _ => 1.0,
        };
        debug_assert!((LEAST..=1.0).contains(&part), "{part} is a part of the fastest");
        part
    }

    /// What was measured, as it is.
    pub fn measured(&self) -> impl Iterator<Item = (WorkerId, f64)> {
        self.0.iter().map(|(worker, speed)| (*worker, *speed))
    }

    /// A worker is gone.
    pub fn forget(&mut self, worker: WorkerId) {
        self.0.remove(&worker);
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
        assert_eq!(believed, [(WorkerId(1), 51.0), (WorkerId(2), 100.0)]);
        assert_eq!(speeds.of(WorkerId(1)), 0.51);
    }
}
