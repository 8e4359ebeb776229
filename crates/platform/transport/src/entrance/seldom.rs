//! What is said again and again, once a minute.

use std::time::{Duration, Instant};

/// How often it is said.
const EVERY: Duration = Duration::from_secs(60);

/// Keeps a log short where the same may go wrong many times a second, as accepting connections does without descriptors.
#[derive(Debug, Default)]
pub struct Seldom {
    said: Option<Instant>,
    times: u64,
}

impl Seldom {
    /// It has happened: how often since it was said last, where it is to be said now.
    pub fn happens(&mut self, now: Instant) -> Option<u64> {
        self.times += 1;
        self.untold(now)
    }

    /// It does not happen now, and may have before: the same.
    pub fn untold(&mut self, now: Instant) -> Option<u64> {
        if self.times == 0 || self.said.is_some_and(|said| now.saturating_duration_since(said) < EVERY) {
            return None;
        }
        self.said = Some(now);
        Some(std::mem::take(&mut self.times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_all_the_time_is_said_at_once_and_then_once_a_minute_with_its_number() {
        let (mut seldom, began) = (Seldom::default(), forebay_runtime::now());
        let said: Vec<_> = (0..150u64).filter_map(|secs| seldom.happens(began + Duration::from_secs(secs))).collect();
        assert_eq!(said, [1, 60, 60]);
        let untold = |seldom: &mut Seldom, secs| seldom.untold(began + Duration::from_secs(secs));
        assert_eq!((untold(&mut seldom, 179), untold(&mut seldom, 180), untold(&mut seldom, 600)), (None, Some(29), None));
    }
}
