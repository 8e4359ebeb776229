use std::collections::BTreeMap;
use std::time::Duration;

use forebay_protocol::WindowReport;
use forebay_types::WorkerId;

/// A worker that was busy for a smaller part of its window says little about how fast it is.
const BUSY_SHARE: f64 = 0.3;
/// Workers that differ by less are equals.
const EQUAL_WITHIN: f64 = 0.25;
/// No worker counts for less than this part of the fastest.
const LEAST: f64 = 0.125;

/// How fast workers serve what they hold, measured where they had enough to do (bytes a second).
#[derive(Debug, Default)]
pub(super) struct Speeds(BTreeMap<WorkerId, f64>);

impl Speeds {
    /// Takes a measurement in: half of what is believed afterwards.
    pub(super) fn measure(&mut self, worker: WorkerId, report: &WindowReport) {
        let busy = report.busy.as_secs_f64();
        if report.lasted > Duration::ZERO && busy >= BUSY_SHARE * report.lasted.as_secs_f64() {
            let speed = report.busy_bytes as f64 / busy;
            let before = self.0.get(&worker).copied().unwrap_or(speed);
            self.0.insert(worker, (before + speed) / 2.0);
        }
    }

    /// A worker's speed as a part of the fastest's. One that had nothing to do so far counts as the fastest.
    pub(super) fn of(&self, worker: WorkerId) -> f64 {
        let fastest = self.0.values().fold(0.0f64, |fastest, speed| fastest.max(*speed));
        match self.0.get(&worker) {
            Some(speed) if fastest > 0.0 && speed / fastest < 1.0 - EQUAL_WITHIN => (speed / fastest).max(LEAST),
            _ => 1.0,
        }
    }

    pub(super) fn forget(&mut self, worker: WorkerId) {
        self.0.remove(&worker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_busy_are_measured_and_only_what_differs_much_counts() {
        let mut speeds = Speeds::default();
        let mut measure = |worker, busy_ms, busy_bytes| {
            let (lasted, busy) = (Duration::from_secs(1), Duration::from_millis(busy_ms));
            speeds.measure(WorkerId(worker), &WindowReport { lasted, busy, busy_bytes, ..WindowReport::default() });
        };
        measure(1, 1000, 100_000_000);
        measure(2, 500, 25_000_000);
        measure(3, 900, 80_000_000);
        measure(4, 100, 1);
        measure(5, 1000, 1_000);
        let speeds = [1, 2, 3, 4, 5].map(|worker| speeds.of(WorkerId(worker)));
        assert_eq!(speeds, [1.0, 0.5, 1.0, 1.0, 0.125]);
    }
}
