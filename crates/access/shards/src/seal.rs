//! The end of a dataset's log.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use forebay_client::PutCondition;
use forebay_shard_store::{LogObject, LogPlace};
use forebay_types::{Error, ErrorKind, Result};
use futures::stream::{self, TryStreamExt};

use crate::Shards;

/// Shards whose logs are ended at a time.
const AT_ONCE: usize = 16;
/// How often the next number is tried while others are still changing records.
const ATTEMPTS: usize = 1000;

impl Shards {
    /// Ends the logs of all shards: what was acknowledged until then is in them, and nothing is any more. Gives the highest of the numbers that
    /// their ends have, which are above the versions of all records; 0 without a log.
    pub(crate) async fn seal(&self) -> Result<u64> {
        let highest = AtomicU64::new(0);
        let (places, ends) = (self.logs().into_iter().map(Ok), &highest);
        let ended = stream::iter(places).try_for_each_concurrent(AT_ONCE, |place| async move {
            let end = self.seal_log(&place).await?;
            ends.fetch_max(end, Relaxed);
            Ok::<(), Error>(())
        });
        ended.await?;
        Ok(highest.into_inner())
    }

    /// Ends a log, and gives the number that its end has.
    async fn seal_log(&self, place: &LogPlace) -> Result<u64> {
        let mut next = self.next_of_log(place).await?;
        for _ in 0..ATTEMPTS {
            // What stands under a claim may be acknowledged and not be there yet: a merge ends that.
            let claim = match self.claim_before(place, next).await {
                // What is damaged is replaced too.
                Err(error) if error.kind() == ErrorKind::Corrupt => None,
                claim => claim?,
            };
            if claim.is_some() {
                self.merge_one(place.shard as usize).await?;
                next = self.next_of_log(place).await?;
                continue;
            }
            let sealed = Bytes::from(LogObject::Sealed.encode(next));
            match self.client.put(&self.log_object(place, next)?, sealed, PutCondition::Absent).await {
                Ok(_) => return Ok(next),
                Err(error) if error.kind() == ErrorKind::Conflict => next += 1,
                Err(error) => return Err(error),
            }
        }
        Err(Error::retry(format!("{}: too much is being changed to replace the dataset: try again", self.path)))
    }
}
