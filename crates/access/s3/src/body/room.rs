//! Memory for what is taken in as a whole.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::dialect::{S3Error, S3Result};

/// What bytes are counted by.
const UNIT_BYTES: u64 = 64 << 10;
/// How long an upload waits for others to end.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// A budget of bytes for what is held of uploads in this process: values of temporary data and documents, which are taken in
/// as a whole. What goes on to a store piece by piece holds next to nothing.
pub(crate) struct Room {
    units: Arc<Semaphore>,
    units_max: u64,
    wait_max: Duration,
}

/// A part of the room, until it is dropped.
pub(crate) struct Held(#[expect(dead_code, reason = "counts as long as it is there")] OwnedSemaphorePermit);

impl Room {
    pub(crate) fn new(bytes: u64) -> Self {
        let units_max = bytes.div_ceil(UNIT_BYTES).clamp(1, u64::from(u32::MAX)).min(Semaphore::MAX_PERMITS as u64);
        Self { units: Arc::new(Semaphore::new(units_max as usize)), units_max, wait_max: WAIT_MAX }
    }

    /// Waits until so many bytes may be held. `SlowDown` when that takes too long. What is larger than all of the room has it
    /// alone.
    pub(crate) async fn take(&self, bytes: u64) -> S3Result<Held> {
        let units = bytes.div_ceil(UNIT_BYTES).min(self.units_max) as u32;
        let taken = forebay_runtime::time::timeout(self.wait_max, Arc::clone(&self.units).acquire_many_owned(units)).await;
        match taken {
            Ok(Ok(permit)) => Ok(Held(permit)),
            _ => Err(S3Error::slow_down()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_finds_no_room_waits_and_is_told_to_slow_down() {
        let wait_max = Duration::from_millis(50);
        let room = Room { wait_max, ..Room::new(1 << 20) };
        let all = room.take(5 << 20).await.unwrap();
        let begun = forebay_runtime::now();
        assert_eq!(room.take(1).await.err().unwrap().code, "SlowDown");
        assert!(begun.elapsed() >= wait_max);
        drop(all);
        let (_a, _b) = (room.take(512 << 10).await.unwrap(), room.take(512 << 10).await.unwrap());
        assert_eq!(room.take(1).await.err().unwrap().code, "SlowDown");
        assert!(room.take(0).await.is_ok(), "nothing is held of it");
    }
}
