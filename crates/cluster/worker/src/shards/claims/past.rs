//! What is written past a claim by others than the cluster's workers gives up what its two have alone.

use forebay_shard_store::{LogObject, LogPlace};
use forebay_types::{ErrorKind, Key, MountId, Result};

use crate::origin::MountDoor;
use crate::shards::Shards;

/// Objects that two disks may have and shared storage has not, at most: long before that their writer waits.
const BEHIND_MAX: u64 = 16 << 10;
/// Keys of a page of a listing.
const PAGE: usize = 1000;

impl Shards {
    /// Whether an object that is about to be written comes where a claim's next ones would: behind one of its objects or, where it may replace
    /// what is there, in the place of one.
    pub(crate) async fn is_past_claim(&self, mount: MountId, key: &Key, replaces: bool) -> Result<bool> {
        let Some((place, number)) = LogPlace::parse(key) else { return Ok(false) };
        let door = self.origin.mount(mount).await?;
        if replaces && self.is_claimed(&door, &place, number).await? == Some(true) {
            return Ok(true);
        }
        let Some(before) = number.checked_sub(1) else { return Ok(false) };
        if let Some(is_claimed) = self.is_claimed(&door, &place, before).await? {
            return Ok(is_claimed);
        }
        // The one before it may be on two disks alone.
        match self.last_before(&door, &place, before).await? {
            Some(last) => Ok(self.is_claimed(&door, &place, last).await? == Some(true)),
            None => Ok(false),
        }
    }

    /// Whether the object of a number makes a claim or is under one; none where there is none. What is of a newer version may be.
    async fn is_claimed(&self, door: &MountDoor, place: &LogPlace, number: u64) -> Result<Option<bool>> {
        let key = place.key(number)?;
        let found = self.origin.read_whole(door, &key).await;
        match found.and_then(|bytes| LogObject::claim_in(&bytes, number, key.as_str())) {
            Ok(claim) => Ok(Some(claim.is_some())),
            Err(error) => match error.kind() {
                ErrorKind::NotFound => Ok(None),
                ErrorKind::Corrupt => Ok(Some(false)),
                ErrorKind::Invalid => Ok(Some(true)),
                _ => Err(error),
            },
        }
    }

    /// The number of the last object of a log that is there before one.
    async fn last_before(&self, door: &MountDoor, place: &LogPlace, number: u64) -> Result<Option<u64>> {
        let (storage, end) = (door.storage()?, place.key(number)?);
        let begin = place.key(number.saturating_sub(BEHIND_MAX))?;
        let prefix = Key::new(begin.as_str().trim_end_matches(|digit: char| digit.is_ascii_digit()))?;
        let (mut last, mut after) = (None::<u64>, Some(begin));
        while let Some(behind) = after.filter(|behind| *behind < end) {
            let page = storage.list(&prefix, false, Some(&behind), PAGE).await?;
            let of_log = page.objects.iter().filter_map(|info| LogPlace::parse(&info.version.key));
            last = last.max(of_log.map(|(_, other)| other).filter(|other| *other < number).max());
            after = page.next;
        }
        debug_assert!(last.is_none_or(|last| last < number), "it is before that one");
        Ok(last)
    }
}
