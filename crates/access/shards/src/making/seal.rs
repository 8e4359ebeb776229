//! The end of a dataset's log.

use bytes::Bytes;
use forebay_client::PutCondition;
use forebay_shard_store::{LogObject, LogPlace};
use forebay_types::{Error, ErrorKind, ForebayPath, Result};
use futures::stream::{self, TryStreamExt};

use crate::Shards;

/// Shards whose logs are ended at a time.
const AT_ONCE: usize = 16;
/// How often the next number is tried while others are still changing records.
const ATTEMPTS: usize = 1000;

impl Shards {
    /// Ends the logs of all shards: what was acknowledged until then is in them, and nothing is any more.
    pub(crate) async fn seal(&self) -> Result<()> {
        let Some(log) = &self.dataset.log else { return Ok(()) };
        let folder = self.path.key().as_str().trim_end_matches('/').to_string();
        let places = (0..self.dataset.shards.len()).map(|shard| LogPlace {
            folder: folder.clone(),
            log: log.clone(),
            shard: shard as u32,
        });
        stream::iter(places.map(Ok)).try_for_each_concurrent(AT_ONCE, |place| async move { self.seal_log(&place).await }).await
    }

    async fn seal_log(&self, place: &LogPlace) -> Result<()> {
        let at = |number| Ok::<_, Error>(ForebayPath::new(self.path.mount().clone(), place.key(number)?));
        let prefix = at(0)?.to_string();
        let prefix: ForebayPath = prefix.trim_end_matches(|c: char| c.is_ascii_digit()).parse()?;
        let objects = self.client.list_all(&prefix).await?;
        let numbers = objects.iter().filter_map(|info| LogPlace::parse(&info.version.key).map(|(_, number)| number));
        let first = self.dataset.shards[place.shard as usize].log_from;
        let mut next = numbers.max().map_or(first, |last| last + 1);
        for _ in 0..ATTEMPTS {
            let sealed = Bytes::from(LogObject::Sealed.encode(next));
            match self.client.put(&at(next)?, sealed, PutCondition::Absent).await {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Conflict => next += 1,
                Err(error) => return Err(error),
            }
        }
        Err(Error::retry(format!("{}: too much is being changed to replace the dataset: try again", self.path)))
    }
}
