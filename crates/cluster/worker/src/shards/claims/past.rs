//! What is written past a claim by others than the cluster's workers gives up what its two have alone.

use forebay_shard_store::{LogObject, LogPlace};
use forebay_types::{ErrorKind, Key, MountId, Result};

use crate::origin::MountDoor;
use crate::shards::Shards;

impl Shards {
    /// Whether an object that is about to be written comes where a claim's next one would: behind one of its objects or, where it may replace what
    /// is there, in the place of one.
    pub(crate) async fn is_past_claim(&self, mount: MountId, key: &Key, replaces: bool) -> Result<bool> {
        let Some((place, number)) = LogPlace::parse(key) else { return Ok(false) };
        let door = self.origin.mount(mount).await?;
        let is_behind = match number.checked_sub(1) {
            Some(before) => self.is_claimed(&door, &place, before).await?,
            None => false,
        };
        Ok(is_behind || (replaces && self.is_claimed(&door, &place, number).await?))
    }

    /// Whether the object of a number makes a claim or is under one. What is of a newer version may be.
    async fn is_claimed(&self, door: &MountDoor, place: &LogPlace, number: u64) -> Result<bool> {
        let key = place.key(number)?;
        let found = self.origin.read_whole(door, &key).await;
        match found.and_then(|bytes| LogObject::claim_in(&bytes, number, key.as_str())) {
            Ok(claim) => Ok(claim.is_some()),
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::Corrupt => Ok(false),
                ErrorKind::Invalid => Ok(true),
                _ => Err(error),
            },
        }
    }
}
