//! Giving up what was acknowledged by two workers' disks and is gone with both.

use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_client::PutCondition;
use forebay_shard_store::{LogClaim, LogObject, LogPlace};
use forebay_types::{Error, ErrorKind, ForebayPath, Result, WorkerId};
use futures::future::join_all;

use crate::Shards;
use crate::open::whole;

/// Shards that are looked at a time: nearly all of that is waiting.
const AT_ONCE: usize = 64;
/// Between two looks for workers that may be on their way back.
const PAUSE: Duration = Duration::from_millis(500);

impl Shards {
    /// Gives up changes that were acknowledged when two workers' disks had them, of shards of which neither has any more: others go on from what
    /// shared storage has. What one of the two has goes there first: they are waited for as long as for an answer, since workers that are
    /// started again are away for a moment too. Gives the numbers of the shards that may have lost some. Needs the right to administer the mount
    /// where there is something to give up.
    pub async fn forgo(&self) -> Result<Vec<usize>> {
        // Who has it open for long may not know which shards it has by now.
        let now = Self::open(&self.client, &self.path).await?.with_patience(self.within);
        let (places, until) = (now.logs(), forebay_runtime::now() + self.within);
        let mut given_up = Vec::new();
        for some in places.chunks(AT_ONCE) {
            let ended = join_all(some.iter().map(|place| now.forgo_of(place, until))).await;
            let mut failed = None;
            for (place, is_given_up) in some.iter().zip(ended) {
                match is_given_up {
                    Ok(true) => given_up.push(place.shard as usize),
                    Ok(false) => {}
                    Err(error) => failed = failed.or(Some(error)),
                }
            }
            if let Some(error) = failed {
                return Err(self.besides(error, &given_up));
            }
        }
        debug_assert!(given_up.is_sorted(), "shards are gone through in their order");
        Ok(given_up)
    }

    /// What became of one shard, where others have lost something by then, which nobody else tells.
    fn besides(&self, error: Error, given_up: &[usize]) -> Error {
        if given_up.is_empty() {
            return error;
        }
        let shards: Vec<String> = given_up.iter().map(usize::to_string).collect();
        error.context(format!("{}: what shards {} have lost is given up, and not all of it", self.path, shards.join(", ")))
    }

    /// The same of one log: whether something was given up.
    async fn forgo_of(&self, place: &LogPlace, until: Instant) -> Result<bool> {
        let next = self.next_of_log(place).await?;
        let Some(claim) = self.claim_before(place, next).await? else { return Ok(false) };
        loop {
            let is_last = forebay_runtime::now() >= until;
            if !self.is_lost(place.shard as usize).await? {
                return Ok(false);
            }
            if is_last {
                break;
            }
            forebay_runtime::time::sleep(PAUSE.min(self.within / 4)).await;
        }
        let next = self.next_of_log(place).await?;
        // One of the two was back meanwhile, and the next claim is none that is lost.
        if self.claim_before(place, next).await? != Some(claim) {
            return Ok(false);
        }
        let over = Bytes::from(LogObject::Over.encode(next));
        match self.client.put(&self.log_object(place, next)?, over, PutCondition::Absent).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Conflict => {
                let back = "one of the two workers is back: no more of it is given up";
                Err(Error::retry(format!("{} shard {}: {back}", self.path, place.shard)))
            }
            Err(error) => Err(error),
        }
    }

    /// Has a shard merged, which ends its claim by what the two workers have; whether they have it no more. One worker's word is enough: it
    /// is asked for again, while the two end their claims by themselves when they are back.
    async fn is_lost(&self, shard: usize) -> Result<bool> {
        let ask = |worker: WorkerId, within: Duration| async move {
            match self.client.shards().merge(worker, &self.id, shard as u32, within).await {
                Ok(()) => Ok(false),
                Err(error) if error.kind() == ErrorKind::DataLost => Ok(true),
                Err(error) => Err(error),
            }
        };
        self.until_answered(|| self.in_rank(shard), ask).await
    }

    /// The logs of all shards.
    pub(super) fn logs(&self) -> Vec<LogPlace> {
        let Some(log) = &self.dataset.log else { return Vec::new() };
        let folder = self.path.key().as_str().trim_end_matches('/');
        let place = |shard: usize| LogPlace { folder: folder.to_string(), log: log.clone(), shard: shard as u32 };
        (0..self.dataset.shards.len()).map(place).collect()
    }

    pub(super) fn log_object(&self, place: &LogPlace, number: u64) -> Result<ForebayPath> {
        Ok(ForebayPath::new(self.path.mount().clone(), place.key(number)?))
    }

    /// The number that the next object of a log has.
    pub(super) async fn next_of_log(&self, place: &LogPlace) -> Result<u64> {
        let prefix = self.log_object(place, 0)?.to_string();
        let prefix: ForebayPath = prefix.trim_end_matches(|c: char| c.is_ascii_digit()).parse()?;
        let objects = self.client.list_all(&prefix).await?;
        let numbers = objects.iter().filter_map(|info| LogPlace::parse(&info.version.key).map(|(_, number)| number));
        let first = self.dataset.shards[place.shard as usize].log_from;
        Ok(numbers.max().map_or(first, |last| last + 1))
    }

    /// The claim that an object of this number would stand under.
    pub(super) async fn claim_before(&self, place: &LogPlace, number: u64) -> Result<Option<LogClaim>> {
        assert!(number > 0, "objects of a log are numbered from 1");
        let before = self.log_object(place, number - 1)?;
        let info = match self.client.open(&before).await {
            Ok(info) => info,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let bytes = whole(&self.client, &before, &info).await?;
        LogObject::claim_in(&bytes, number - 1, &before.to_string())
    }
}
