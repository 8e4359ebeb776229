//! What is on this worker's disk under a claim.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use forebay_navigation::{CLAIM_LIMITS, Kept, Take};
use forebay_shard_store::{ClaimFile, ClaimedLog};
use forebay_types::{Error, Result};
use parking_lot::Mutex;

use super::ANSWER_BYTES_MAX;
use crate::background::aside;

/// Bytes of a claim on disk, at most: a writer makes a new one long before.
const BYTES_MAX: u64 = 4 * CLAIM_LIMITS.bytes;

/// What is on disk of a claim.
pub(super) struct Held {
    pub(super) of: ClaimedLog,
    /// Locked while the disk is written to, by threads that may block only.
    disk: Mutex<Disk>,
    heard: Mutex<Instant>,
}

struct Disk {
    file: ClaimFile,
    kept: Kept,
}

/// Some of what is there.
pub(super) struct Found {
    /// The number behind the last object that there is.
    pub(super) end: u64,
    pub(super) is_closed: bool,
    /// The objects from the number on that was asked for, perhaps not all.
    pub(super) objects: Vec<Bytes>,
}

impl Held {
    /// Of this process.
    pub(super) fn new(file: ClaimFile) -> Self {
        let kept = Kept::new(file.first());
        Self::of(file, kept)
    }

    /// Of one before it.
    pub(super) fn left(file: ClaimFile) -> Self {
        let kept = Kept::left(file.first(), file.end());
        Self::of(file, kept)
    }

    fn of(file: ClaimFile, kept: Kept) -> Self {
        let of = file.of().clone();
        Self { of, disk: Mutex::new(Disk { file, kept }), heard: Mutex::new(forebay_runtime::now()) }
    }

    /// Bytes on disk; none while that is written to.
    pub(super) fn bytes(&self) -> u64 {
        self.disk.try_lock().map_or(0, |disk| disk.file.bytes())
    }

    /// When the writer was heard last.
    pub(super) fn heard(&self) -> Instant {
        *self.heard.lock()
    }

    /// Has the next object on disk. `Conflict` where nothing more is taken.
    pub(super) async fn keep(self: &Arc<Self>, number: u64, object: Bytes) -> Result<()> {
        *self.heard.lock() = forebay_runtime::now();
        let held = Arc::clone(self);
        aside("writing to a claim", move || held.keep_now(number, &object)).await
    }

    fn keep_now(&self, number: u64, object: &[u8]) -> Result<()> {
        let mut disk = self.disk.lock();
        let room = BYTES_MAX.saturating_sub(disk.file.bytes());
        match disk.kept.take(number) {
            Take::Has => Ok(()),
            Take::Write if object.len() as u64 <= room => {
                // Half of it may be there.
                disk.file.append(object).inspect_err(|_| disk.kept.close())?;
                disk.kept.wrote();
                debug_assert_eq!(disk.kept.end(), disk.file.end(), "what is promised is what is there");
                Ok(())
            }
            Take::Write | Take::Refuse => Err(Error::conflict("nothing more is taken under this claim")),
        }
    }

    /// The objects from a number on; nothing more is taken from then on where it is to `close`.
    pub(super) async fn found(self: &Arc<Self>, from: u64, close: bool) -> Result<Found> {
        let held = Arc::clone(self);
        aside("reading a claim", move || {
            let mut disk = held.disk.lock();
            if close {
                disk.kept.close();
            }
            let objects = disk.file.read(from, ANSWER_BYTES_MAX)?;
            let objects = objects.into_iter().take(forebay_protocol::KEPT_MAX).map(Bytes::from).collect();
            Ok(Found { end: disk.kept.end(), is_closed: disk.kept.is_closed(), objects })
        })
        .await
    }

    /// Removes it from disk.
    pub(super) async fn remove(self: &Arc<Self>) -> Result<()> {
        let held = Arc::clone(self);
        aside("removing a claim's file", move || {
            let mut disk = held.disk.lock();
            disk.kept.close();
            disk.file.remove()
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use forebay_shard_store::{LogClaim, LogPlace};
    use forebay_types::{ErrorKind, WorkerId};

    use super::*;

    fn file(folder: &std::path::Path) -> ClaimFile {
        let place = LogPlace { folder: "x".into(), log: "0123456789abcdef".into(), shard: 0 };
        let claim = LogClaim { id: 7, writer: WorkerId(1), second: WorkerId(2), number: 4 };
        ClaimFile::create(folder, "w", ClaimedLog { mount: 1, place, claim }).unwrap()
    }

    #[tokio::test]
    async fn what_was_promised_to_be_all_stays_all_also_for_the_next_process() {
        let folder = tempfile::tempdir().unwrap();
        let held = Arc::new(Held::new(file(folder.path())));
        held.keep(5, Bytes::from_static(b"five")).await.unwrap();
        held.keep(5, Bytes::from_static(b"five")).await.unwrap();
        assert_eq!(held.keep(7, Bytes::from_static(b"seven")).await.unwrap_err().kind(), ErrorKind::Conflict);
        let found = held.found(5, false).await.unwrap();
        assert_eq!((found.end, found.is_closed, found.objects), (6, false, vec![Bytes::from_static(b"five")]));
        drop(held);
        let left = Arc::new(Held::left(ClaimFile::left(folder.path()).unwrap().remove(0)));
        assert_eq!(left.keep(6, Bytes::from_static(b"six")).await.unwrap_err().kind(), ErrorKind::Conflict);
        let found = left.found(6, true).await.unwrap();
        assert_eq!((found.end, found.is_closed, found.objects.len()), (6, true, 0));
        left.remove().await.unwrap();
        assert!(ClaimFile::left(folder.path()).unwrap().is_empty());
    }
}
