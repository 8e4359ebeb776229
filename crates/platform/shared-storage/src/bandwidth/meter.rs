//! How fast bytes come. No clock; the time since some start is an argument.

use std::time::Duration;

/// Bytes of about the last second: those of the current one and of the one before, weighted by how much of it still
/// counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    second: u64,
    current: u64,
    previous: u64,
}

impl Meter {
    /// `bytes` have come.
    pub(crate) fn add(&mut self, now: Duration, bytes: u64) {
        self.turn(now);
        self.current += bytes;
    }

    /// Bytes a second.
    pub(crate) fn rate(&mut self, now: Duration) -> u64 {
        self.turn(now);
        let passed = now.subsec_nanos() as f64 / 1e9;
        self.current + (self.previous as f64 * (1.0 - passed)) as u64
    }

    fn turn(&mut self, now: Duration) {
        let second = now.as_secs();
        match second.saturating_sub(self.second) {
            0 => return,
            1 => self.previous = self.current,
            _ => self.previous = 0,
        }
        self.current = 0;
        self.second = second;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_follows_and_fades() {
        let mut meter = Meter::default();
        for ms in 0..3000 {
            meter.add(Duration::from_millis(ms), 1000);
        }
        let rate = meter.rate(Duration::from_millis(2999));
        assert!((990_000..=1_010_000).contains(&rate), "{rate}");
        assert!(meter.rate(Duration::from_millis(3500)) < 510_000);
        assert_eq!(meter.rate(Duration::from_millis(5000)), 0);
    }
}
