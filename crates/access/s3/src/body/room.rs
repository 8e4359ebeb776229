//! Memory for what is taken in as a whole.

use std::time::Duration;

use forebay_transport::{Budget, BudgetShare, SpentShare};

use crate::dialect::{S3Error, S3Result};

/// How long an upload waits for others to end.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Uploads hold at most one in so many bytes of what requests to the process may take: they are passed on by requests, which must
/// find room too.
const SHARE: u64 = 2;

/// What is held of uploads: values of temporary data and documents, which are taken in as a whole. What goes on to a store piece by
/// piece holds next to nothing. It is a share of the budget of the process, and what is taken of it nothing else of the process has.
pub(crate) struct Room {
    share: BudgetShare,
    wait_max: Duration,
}

/// A part of the room, until it is dropped.
pub(crate) struct Held(#[expect(dead_code, reason = "counts as long as it is there")] Option<SpentShare>);

impl Room {
    /// Of so many bytes; of half of the budget where it is not said.
    pub(crate) fn of(process: Budget, bytes: Option<u64>) -> Self {
        let (half, all) = (process.bytes() / SHARE, process.bytes());
        let share = BudgetShare::of(process, bytes.unwrap_or(half).min(half));
        assert!(share.bytes() <= all, "{} bytes are a share of {all}", share.bytes());
        Self { share, wait_max: WAIT_MAX }
    }

    /// Waits until so many bytes may be held. `SlowDown` when that takes too long. What is larger than all of the room has it
    /// alone.
    pub(crate) async fn take(&self, bytes: u64) -> S3Result<Held> {
        if bytes == 0 {
            return Ok(Held(None));
        }
        let spent = self.share.take(bytes, self.wait_max).await.ok_or_else(S3Error::slow_down)?;
        Ok(Held(Some(spent)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_finds_no_room_waits_and_is_told_to_slow_down() {
        let wait_max = Duration::from_millis(50);
        let room = Room { wait_max, ..Room::of(Budget::new(8 << 20), Some(1 << 20)) };
        let is_full = async |bytes| room.take(bytes).await.err().is_some_and(|error| error.code == "SlowDown");
        let all = room.take(5 << 20).await.unwrap();
        let begun = forebay_runtime::now();
        assert!(is_full(100 << 10).await);
        assert!(begun.elapsed() >= wait_max);
        drop(all);
        let (_a, _b) = (room.take(448 << 10).await.unwrap(), room.take(448 << 10).await.unwrap());
        assert!(is_full(100 << 10).await);
        // Small ones have a part to themselves, which has an end too.
        let (_c, _d) = (room.take(64 << 10).await.unwrap(), room.take(64 << 10).await.unwrap());
        assert!(is_full(1).await);
        assert!(room.take(0).await.is_ok(), "nothing is held of it");
    }

    #[tokio::test]
    async fn uploads_and_other_requests_of_a_process_have_one_budget() {
        let (process, wait_max) = (Budget::new(8 << 20), Duration::from_millis(50));
        let gateways = [None, Some(1 << 40)].map(|bytes| Room { wait_max, ..Room::of(process.clone(), bytes) });
        // All that uploads may hold leaves room for others, for theirs are on the way of the uploads.
        let uploads = gateways[0].take(1 << 40).await.unwrap();
        let others = process.try_take(3 << 20).expect("room for requests");
        assert!(process.try_take(1 << 20).is_none(), "and no more than there is");
        // Where requests have it all, uploads wait for them.
        assert_eq!(gateways[1].take(1 << 20).await.err().unwrap().code, "SlowDown");
        drop(others);
        assert!(gateways[1].take(1 << 20).await.is_ok());
        drop(uploads);
        drop(process.try_take(7 << 20).expect("all of it came back"));
    }
}
