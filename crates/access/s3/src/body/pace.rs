//! How slow a client may be.

use std::time::Duration;

/// How long a client may keep its next bytes to itself.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Slowest client that is waited for, in bytes a second.
const BYTES_PER_SEC_MIN: u64 = 8 << 10;

/// How fast a client sends, in the time that it was waited for: what a store takes its time for is none of its.
#[derive(Debug, Default)]
pub(super) struct Pace {
    waited: Duration,
    bytes: u64,
}

impl Pace {
    /// Bytes came after so long. False when it is too slow to hold its place any longer.
    pub(super) fn is_kept(&mut self, waited: Duration, bytes: usize) -> bool {
        self.waited += waited;
        self.bytes += bytes as u64;
        let allowed = SILENCE_MAX + Duration::from_secs(self.bytes / BYTES_PER_SEC_MIN);
        self.waited <= allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_sends_a_byte_now_and_then_loses_its_place() {
        let mut pace = Pace::default();
        let kept = (0..1000).take_while(|_| pace.is_kept(Duration::from_secs(1), 1)).count();
        assert_eq!(kept, 30);
    }

    #[test]
    fn a_slow_line_is_waited_for_as_long_as_it_takes() {
        let mut pace = Pace::default();
        assert!((0..100_000).all(|_| pace.is_kept(Duration::from_secs(1), 9 << 10)));
    }
}
