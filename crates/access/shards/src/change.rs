//! Changes of records.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use forebay_shard::Key;
use forebay_shard_store::{ChangeIf, Literal, SentRecord, Wanted, WantedChange, moved_call};
use forebay_types::{Error, ErrorKind, Result, WorkerId};
use futures::future::{join_all, try_join_all};
use serde_json::{Map, Value as Json, json};

use crate::Shards;
use crate::ask::{Call as UnderWay, ended, is_final};
use crate::follow::at_present;

/// A record with what it takes to change it only if nobody else has.
#[derive(Clone, Debug, PartialEq, schemars::JsonSchema, serde::Serialize, serde::Deserialize)]
pub struct Versioned {
    /// The record as a JSON object; none where the key has none.
    #[schemars(with = "Option<Map<String, Json>>")]
    pub record: Option<Json>,
    /// Its version, to change it only as long as it has it; a key without a record has one too.
    pub version: u64,
}

/// Changes that are made together in one shard.
struct Call {
    id: u128,
    shard: usize,
    /// Which of all changes these are.
    places: Vec<usize>,
    /// An object that the shard's log had before this was asked for: one that has it comes behind that. None where it may be in files that were
    /// made of other shards.
    after: Option<u64>,
}

impl Shards {
    /// A record, with its version.
    pub async fn get_versioned(&self, key: &Literal) -> Result<Versioned> {
        let key = self.columns().key_of(key)?;
        let wanted = Wanted::new(self.columns(), None, true)?;
        let SentRecord { version: Some(version), record } = self.record_of(&key, &wanted).await? else {
            return Err(self.misfit());
        };
        let record = record.map(|record| self.record_json(&key, &record, None)).transpose()?;
        Ok(Versioned { record, version })
    }

    /// Writes a record, a new one or in place of the one that its key has; columns that it doesn't name are null. Gives its version
    /// once shared storage has it: whoever reads from then on sees it. `Conflict` when the condition does not hold.
    ///
    /// What ends in `Retry` may have been done.
    pub async fn put(&self, record: &Map<String, Json>, condition: ChangeIf) -> Result<u64> {
        self.change_one(with_condition(json!({"put": record}), condition)).await
    }

    /// Deletes the record of a key; one that is not there is no error. As [`Self::put`] otherwise.
    pub async fn delete(&self, key: &Literal, condition: ChangeIf) -> Result<u64> {
        self.change_one(with_condition(json!({"delete": key.to_json()}), condition)).await
    }

    /// Makes many changes, each a JSON object with `put` or `delete` and perhaps `if_absent` or `if_version`; gives their versions.
    /// Those of one shard are made together or not at all, in this order; of several shards, also where a shard becomes several meanwhile,
    /// some may be made and others not.
    pub async fn change(&self, changes: &[Json]) -> Result<Vec<u64>> {
        let by_shard = self.by_shard(changes)?;
        let calls = by_shard.iter().enumerate().filter(|(_, places)| !places.is_empty()).map(|(shard, places)| async move {
            let of_shard: Vec<&Json> = places.iter().map(|place| &changes[*place]).collect();
            Ok::<_, Error>((places, self.change_shard(shard, &of_shard).await?))
        });
        let mut versions = vec![0; changes.len()];
        for (places, made) in try_join_all(calls).await? {
            places.iter().zip(made).for_each(|(place, version)| versions[*place] = version);
        }
        debug_assert!(versions.iter().all(|version| *version > 0), "each change has a version");
        Ok(versions)
    }

    /// The same for who wants to know what became of each: those of one shard have the same outcome, and of several shards none waits
    /// for another. An error where one of them is no change of this dataset: then none is made.
    pub async fn change_each(&self, changes: &[Json]) -> Result<Vec<Result<u64>>> {
        let by_shard = self.by_shard(changes)?;
        let calls = by_shard.iter().enumerate().filter(|(_, places)| !places.is_empty()).map(|(shard, places)| async move {
            let of_shard: Vec<&Json> = places.iter().map(|place| &changes[*place]).collect();
            (places, self.change_shard(shard, &of_shard).await)
        });
        let mut outcomes = vec![Ok(0); changes.len()];
        for (places, outcome) in join_all(calls).await {
            for (at, place) in places.iter().enumerate() {
                outcomes[*place] = outcome.as_ref().map(|versions| versions[at]).map_err(Error::clone);
            }
        }
        debug_assert!(outcomes.iter().all(|outcome| !matches!(outcome, Ok(0))), "each change has its outcome");
        Ok(outcomes)
    }

    /// The places of changes, by the shard that each is about.
    fn by_shard(&self, changes: &[Json]) -> Result<Vec<Vec<usize>>> {
        let mut by_shard = vec![Vec::new(); self.dataset.shards.len()];
        for (place, change) in changes.iter().enumerate() {
            by_shard[self.dataset.shard_of(&self.key_of_change(change)?)].push(place);
        }
        Ok(by_shard)
    }

    /// Compresses what was changed in a shard into its files, which workers do by themselves too, once it is much. It answers as before,
    /// only faster, and takes less memory of the workers.
    pub async fn merge_shard(&self, shard: usize) -> Result<()> {
        at_present!(self, at => at.merge_one(shard))
    }

    pub(crate) async fn merge_one(&self, shard: usize) -> Result<()> {
        // Of fewer shards than there were.
        if shard >= self.dataset.shards.len() {
            return Ok(());
        }
        let ask = |worker, within| self.client.shards().merge(worker, &self.id, shard as u32, within);
        self.until_answered(|| self.in_rank(shard), ask).await
    }

    async fn change_one(&self, change: Json) -> Result<u64> {
        let shard = self.dataset.shard_of(&self.key_of_change(&change)?);
        let versions = self.change_shard(shard, &[&change]).await?;
        versions.first().copied().ok_or_else(|| self.misfit())
    }

    /// The key that a change is about; what is wrong with it is known without asking anyone.
    fn key_of_change(&self, change: &Json) -> Result<Key> {
        Ok(WantedChange::parse(self.columns(), change.to_string().as_bytes())?.change.key().clone())
    }

    /// Makes changes of keys that are in one shard; gives the version of each.
    async fn change_shard(&self, shard: usize, changes: &[&Json]) -> Result<Vec<u64>> {
        // The same for all tries: one that was made is not made again.
        let (places, after) = ((0..changes.len()).collect(), Some(self.last_logged(shard)));
        let call = Call { id: forebay_runtime::random(), shard, places, after };
        let later = self.later();
        let mut left: Vec<(Option<Arc<Self>>, Call)> = match &later {
            Some(at) => at.parts_of(&call, changes, false)?.into_iter().map(|part| (later.clone(), part)).collect(),
            None => vec![(None, call)],
        };
        let mut versions = vec![0; changes.len()];
        while let Some((at, call)) = left.pop() {
            let at = at.as_deref().unwrap_or(self);
            let is_unsure = AtomicBool::new(false);
            match at.make(&call, changes, &is_unsure).await {
                Ok(version) => call.places.iter().for_each(|place| versions[*place] = version),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    let is_unsure = is_unsure.load(Relaxed);
                    let later = self.follow(at, error).await.map_err(|error| lost(error, is_unsure))?;
                    // Calls are found in the log behind theirs, and in none behind that.
                    if is_unsure && later.dataset.before.last() != at.dataset.log.as_ref() {
                        return Err(Error::retry(format!("{}: the change may be made all the same: read the record", self.path)));
                    }
                    let parts = later.parts_of(&call, changes, is_unsure)?;
                    left.extend(parts.into_iter().map(|part| (Some(Arc::clone(&later)), part)));
                }
                Err(error) => return Err(error),
            }
        }
        debug_assert!(versions.iter().all(|version| *version > 0), "each change is made in one of them");
        Ok(versions)
    }

    /// What becomes of a call that was to be made in other shards, and perhaps was, in those of this one.
    fn parts_of(&self, call: &Call, changes: &[&Json], is_unsure: bool) -> Result<Vec<Call>> {
        let log = self.dataset.log.as_deref().unwrap_or_default();
        let mut parts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for place in &call.places {
            parts.entry(self.dataset.shard_of(&self.key_of_change(changes[*place])?)).or_default().push(*place);
        }
        debug_assert_eq!(parts.values().map(Vec::len).sum::<usize>(), call.places.len(), "each change is in one shard");
        let part = |(shard, places)| {
            let after = (!is_unsure).then(|| self.last_logged(shard));
            Call { id: moved_call(call.id, log, shard), shard, places, after }
        };
        Ok(parts.into_iter().map(part).collect())
    }

    /// An object that a shard's log is known to have, or the one before its first.
    fn last_logged(&self, shard: usize) -> u64 {
        self.workers.lock().logged(shard).max(self.dataset.shards[shard].log_from.saturating_sub(1))
    }

    async fn make(&self, call: &Call, changes: &[&Json], is_unsure: &AtomicBool) -> Result<u64> {
        let lines: Vec<String> = call.places.iter().map(|place| format!("{}\n", changes[*place])).collect();
        let lines = Bytes::from(lines.concat());
        let ask = |worker, within| self.ask_to_change(worker, call, lines.clone(), within, is_unsure);
        let version = self.until_answered(|| self.in_rank(call.shard), ask).await?;
        self.workers.lock().saw_logged(call.shard, version);
        Ok(version)
    }

    /// Has one worker make a call; `is_unsure` from then on where that may have been done though it was not answered.
    async fn ask_to_change(
        &self,
        worker: WorkerId,
        call: &Call,
        lines: Bytes,
        within: Duration,
        is_unsure: &AtomicBool,
    ) -> Result<u64> {
        let mut under_way = UnderWay::begin(self, call.shard, worker);
        let shards = self.client.shards();
        let answer = match shards.reach(worker).await {
            Ok(()) => {
                let again = call.after.filter(|_| is_unsure.load(Relaxed));
                let answer = shards.change(worker, &self.id, call.shard as u32, (call.id, again), lines, within).await;
                if answer.as_ref().is_err_and(may_be_done) {
                    is_unsure.store(true, Relaxed);
                }
                answer
            }
            Err(error) => Err(error),
        };
        if let Err(error) = &answer {
            under_way.ended = ended(error);
        }
        answer
    }
}

/// Whether what a worker was asked may be done though it answered so.
fn may_be_done(error: &Error) -> bool {
    // What is refused until later was not begun.
    !is_final(error) && !error.is_here_alone() && error.retry_after().is_none()
}

/// Why a call is not made in later shards: no reason to take it for one that was not made, where that is not known.
fn lost(error: Error, is_unsure: bool) -> Error {
    match is_unsure {
        true => Error::retry(format!("the change may be made all the same: read the record: {}", error.message())),
        false => error,
    }
}

fn with_condition(mut change: Json, condition: ChangeIf) -> Json {
    match condition {
        ChangeIf::Always => {}
        ChangeIf::Absent => change["if_absent"] = true.into(),
        ChangeIf::Version(version) => change["if_version"] = version.into(),
    }
    change
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_was_not_done_and_what_was_lost_may_be() {
        let later = Error::retry("too many wait").after(Duration::from_millis(10));
        let refused = [Error::conflict("it has version 3"), Error::invalid("no room").here_alone(), later];
        assert_eq!(refused.map(|error| may_be_done(&error)), [false; 3]);
        assert_eq!([Error::retry("no answer"), Error::closed("it is stopping")].map(|error| may_be_done(&error)), [true; 2]);
    }

    #[test]
    fn a_change_that_may_be_made_is_not_said_to_be_none() {
        let gone = || Error::not_found("/lake/x: the dataset was replaced");
        assert_eq!(lost(gone(), false).kind(), ErrorKind::NotFound);
        let unsure = lost(gone(), true);
        assert_eq!(unsure.kind(), ErrorKind::Retry);
        assert!(unsure.message().contains("may be made") && unsure.message().contains("/lake/x"), "{unsure}");
    }
}
