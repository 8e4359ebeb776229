//! How fast answers come over a connection, by its large payloads.

use std::time::Duration;

use parking_lot::Mutex;

/// A smaller payload says nothing: it may have come with its header.
pub(crate) const LARGE_BYTES: u32 = 256 << 10;
/// Payloads that are remembered, and how many it takes to know anything.
const REMEMBERED: usize = 9;
const KNOWN_FROM: usize = 5;

/// Bytes a second of the last large payloads, the oldest first.
#[derive(Default)]
pub(crate) struct Speed(Mutex<Vec<u64>>);

impl Speed {
    /// So many bytes came in so long after their header.
    pub(crate) fn came(&self, bytes: u32, took: Duration) {
        let rate = (f64::from(bytes) / took.as_secs_f64().max(1e-9)) as u64;
        let mut lately = self.0.lock();
        if lately.len() == REMEMBERED {
            lately.remove(0);
        }
        lately.push(rate.max(1));
    }

    /// Bytes a second that a third of the last payloads reached: what was held up by a busy process says less of the link than what was not,
    /// and the one that had come before it was looked at says nothing. None before there are a few.
    pub(crate) fn known(&self) -> Option<u64> {
        let mut lately = self.0.lock().clone();
        lately.sort_unstable();
        (lately.len() >= KNOWN_FROM).then(|| lately[lately.len() * 2 / 3])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(speed: &Speed, mib: u32, millis: u64) {
        speed.came(mib << 20, Duration::from_millis(millis));
    }

    #[test]
    fn a_link_is_known_after_a_few_payloads_and_by_those_that_nothing_held_up() {
        let speed = Speed::default();
        for _ in 0..4 {
            came(&speed, 1, 8);
            assert_eq!(speed.known(), None);
        }
        came(&speed, 1, 8);
        assert_eq!(speed.known(), Some(131_072_000));
        // Two had come before they were looked at, and one waited for a turn.
        speed.came(1 << 20, Duration::ZERO);
        speed.came(1 << 20, Duration::from_nanos(1));
        came(&speed, 1, 900);
        assert_eq!(speed.known(), Some(131_072_000));
        for _ in 0..9 {
            came(&speed, 1, 80);
        }
        assert_eq!(speed.known(), Some(13_107_200), "it became slower");
    }
}
