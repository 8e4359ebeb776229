//! The clock, and waiting for it.

use std::time::SystemTime;

pub use tokio::time::{Instant, MissedTickBehavior, Sleep, interval, sleep, sleep_until, timeout, timeout_at};

/// Now, on a clock that only goes forward. In a runtime whose time is paused it stands still, as its timers do.
#[inline]
pub fn now() -> std::time::Instant {
    Instant::now().into_std()
}

/// The same for deadlines of timers.
#[inline]
pub fn instant() -> Instant {
    Instant::now()
}

/// The time of the day, which may jump.
#[inline]
pub fn system_time() -> SystemTime {
    SystemTime::now()
}

/// The same in milliseconds since 1970.
#[inline]
pub fn unix_ms() -> u64 {
    system_time().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_held_goes_with_its_timers() {
        let (began, real) = (now(), std::time::Instant::now());
        sleep(Duration::from_secs(3600)).await;
        assert_eq!(now() - began, Duration::from_secs(3600));
        assert!(real.elapsed() < Duration::from_secs(60), "an hour that nobody waited for");
    }
}
