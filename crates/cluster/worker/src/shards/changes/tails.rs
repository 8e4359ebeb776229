//! Logs that end, and what they have that new shards do not have yet.

use std::sync::Arc;

use bytes::Bytes;
use forebay_navigation::{LogState, SWITCH_LIMITS, Share, SwitchStep, switch, tails_fit};
use forebay_protocol::{DataRequest, PutCondition, encode};
use forebay_shard::Schema;
use forebay_shard_store::{ClaimedLog, LogClaim, LogObject, LogPlace, NextShards, Tail};
use forebay_types::{Error, ErrorKind, Key, Result};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::moving::replaced;
use crate::origin::MountDoor;
use crate::shards::{Manifest, Shards};

/// Logs that are looked at, or written, at a time.
const AT_ONCE: usize = 8;
/// Logs that are ended at a time: the others grow meanwhile.
const ENDED_AT_ONCE: usize = 64;
/// Objects of a log that are read at a time.
const READ_AT_ONCE: usize = 16;
/// Objects of a page of a listing.
const PAGE: usize = 1000;
/// How often the next number is tried while others still change records.
const ATTEMPTS: usize = 1000;

/// The end of a log as it is found.
struct Found {
    state: LogState,
    /// Bytes of the objects from `next` on.
    bytes: u64,
}

/// What is the same for all logs of a dataset.
struct Logs<'a> {
    door: &'a MountDoor,
    manifest: &'a Manifest,
    log: &'a str,
    schema: Schema,
}

impl Logs<'_> {
    fn place(&self, log: &str, shard: usize) -> LogPlace {
        let folder = self.manifest.id.folder.as_str().trim_end_matches('/').to_string();
        LogPlace { folder, log: log.to_string(), shard: shard as u32 }
    }

    fn old(&self, shard: usize) -> LogPlace {
        self.place(self.log, shard)
    }

    fn claimed(&self, place: &LogPlace, claim: LogClaim) -> ClaimedLog {
        ClaimedLog { mount: self.manifest.id.mount.0, place: place.clone(), claim }
    }

    fn replaced(&self) -> Error {
        replaced(&self.manifest.id.folder)
    }
}

impl Shards {
    /// Ends the logs of a dataset's shards, and has those of the next ones begin with what these have not; gives the number that they begin
    /// with. None where they have too much for that, and none of them was ended.
    pub(super) async fn end_logs(
        self: &Arc<Self>,
        door: &MountDoor,
        manifest: &Manifest,
        next: &NextShards,
    ) -> Result<Option<u64>> {
        let Some(log) = manifest.dataset.log.as_deref() else { return Ok(None) };
        let logs = Logs { door, manifest, log, schema: manifest.dataset.columns.schema() };
        let logs = &logs;
        let found = (0..next.cuts.len()).map(|shard| self.find_end(logs, shard, next.cuts[shard]));
        let found: Vec<Found> = stream::iter(found).buffered(AT_ONCE).try_collect().await?;
        let bytes: Vec<u64> = found.iter().map(|found| found.bytes).collect();
        let mut states: Vec<LogState> = found.into_iter().map(|found| found.state).collect();
        // Who has ended one goes on.
        if !states.iter().any(|state| state.is_sealed) && !tails_fit(&bytes, &manifest.dataset.map().recut(&next.map())?) {
            return Ok(None);
        }
        loop {
            match switch(&states, 0, &SWITCH_LIMITS) {
                SwitchStep::GiveUp => return Ok(None),
                SwitchStep::Seal(open) => {
                    let from: Vec<u64> = open.iter().map(|shard| states[*shard as usize].end).collect();
                    let ending = (0..open.len()).map(|place| self.end_log(logs, open[place] as usize, from[place]));
                    let ended: Vec<u64> = stream::iter(ending).buffered(ENDED_AT_ONCE).try_collect().await?;
                    for (shard, end) in open.into_iter().zip(ended) {
                        let state = &mut states[shard as usize];
                        (state.end, state.is_sealed) = (end, true);
                    }
                }
                SwitchStep::Replay(_) => {
                    self.write_tails(logs, next, &states).await?;
                    states.iter_mut().for_each(|state| state.next = state.end);
                }
                SwitchStep::Switch => return Ok(Some(first_of(&states))),
            }
        }
    }

    /// Looks for the end of a log, behind which no claim reaches.
    async fn find_end(self: &Arc<Self>, logs: &Logs<'_>, shard: usize, cut: u64) -> Result<Found> {
        let place = logs.old(shard);
        for _ in 0..ATTEMPTS {
            let (end, bytes) = self.list_end(logs, &place, cut).await?;
            let last = if end > cut { self.log_object(logs, &place, end - 1).await? } else { None };
            match last.and_then(|last| last.claim()) {
                Some(claim) => self.end_claim(&logs.claimed(&place, claim), end).await?,
                None => return self.read_end(logs, &place, cut, end, bytes).await,
            }
        }
        Err(Error::retry(format!("{}: too much is being changed to end the log of shard {shard}: try again", place.folder)))
    }

    /// The number behind the last object of a log that is listed, and the bytes of those from `cut` on.
    async fn list_end(&self, logs: &Logs<'_>, place: &LogPlace, cut: u64) -> Result<(u64, u64)> {
        let storage = logs.door.storage()?;
        let before = place.key(cut - 1)?;
        let prefix = Key::new(before.as_str().trim_end_matches(|digit: char| digit.is_ascii_digit()))?;
        let (mut end, mut bytes, mut after) = (cut, 0, Some(before));
        while let Some(behind) = after {
            let page = storage.list(&prefix, false, Some(&behind), PAGE).await?;
            for info in &page.objects {
                if let Some((_, number)) = LogPlace::parse(&info.version.key).filter(|(of, _)| of == place) {
                    (end, bytes) = (end.max(number + 1), bytes + info.version.size);
                }
            }
            after = page.next;
        }
        Ok((end, bytes))
    }

    async fn read_end(&self, logs: &Logs<'_>, place: &LogPlace, cut: u64, end: u64, bytes: u64) -> Result<Found> {
        // Who wants to replace the dataset ends logs that have ended already once more; one that only he has ended is no open one.
        let mut is_open = end == cut;
        for number in (cut..end).rev() {
            match self.log_object(logs, place, number).await? {
                Some(LogObject::Sealed) => continue,
                Some(LogObject::Moved) => {
                    self.tell_of(logs, place, number).await?;
                    return Ok(Found { state: LogState { next: cut, end: number, is_sealed: true }, bytes });
                }
                Some(LogObject::Calls(_) | LogObject::Over) if number + 1 == end => {
                    is_open = true;
                    break;
                }
                _ => return Err(logs.replaced()),
            }
        }
        if !is_open {
            return Err(logs.replaced());
        }
        Ok(Found { state: LogState { next: cut, end, is_sealed: false }, bytes })
    }

    /// Ends a log; gives the number of the object that says so. All workers have heard of it then.
    async fn end_log(self: &Arc<Self>, logs: &Logs<'_>, shard: usize, from: u64) -> Result<u64> {
        let (mount, place) = (logs.manifest.id.mount, logs.old(shard));
        let mut number = from;
        for _ in 0..ATTEMPTS {
            let key = place.key(number)?;
            let put = self.writes.put(mount, &key, PutCondition::Absent, Bytes::from(LogObject::Moved.encode(number))).await;
            // It is there, or may be.
            self.told.came(mount, &key);
            match put {
                Ok(_) => return Ok(number),
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
            }
            match self.log_object(logs, &place, number).await? {
                Some(LogObject::Claim(claim) | LogObject::Kept(claim, _)) => {
                    number += 1;
                    self.end_claim(&logs.claimed(&place, claim), number).await?;
                }
                Some(LogObject::Calls(_) | LogObject::Over) => number += 1,
                Some(LogObject::Moved) => return self.tell_of(logs, &place, number).await.map(|()| number),
                Some(LogObject::Sealed) => return Err(logs.replaced()),
                None => {}
            }
        }
        let folder = &logs.manifest.id.folder;
        Err(Error::retry(format!("{folder}: too much is being changed to end the log of shard {shard}: try again")))
    }

    /// Whoever has ended a log may have gone before everybody heard.
    async fn tell_of(&self, logs: &Logs<'_>, place: &LogPlace, number: u64) -> Result<()> {
        let (mount, key) = (logs.manifest.id.mount, place.key(number)?);
        self.told.came(mount, &key);
        self.cluster.tell_everyone(mount, encode(&DataRequest::Changed { mount, key, info: None })).await
    }

    async fn write_tails(&self, logs: &Logs<'_>, next: &NextShards, states: &[LogState]) -> Result<()> {
        let sources = logs.manifest.dataset.map().recut(&next.map())?;
        let sources = &sources;
        let writing = (0..sources.len()).map(|shard| self.write_tail(logs, next, states, (shard, &sources[shard][..])));
        stream::iter(writing).buffer_unordered(AT_ONCE).try_collect::<()>().await
    }

    /// Has the log of a new shard begin with what the ended logs say of its keys. What is there already is the same.
    async fn write_tail(
        &self,
        logs: &Logs<'_>,
        next: &NextShards,
        states: &[LogState],
        (shard, from): (usize, &[Share]),
    ) -> Result<()> {
        let mut tail = Tail::new(&next.log, shard, next.map());
        let (place, mut number) = (logs.place(&next.log, shard), first_of(states));
        for share in from {
            let source = share.shard as usize;
            let old = logs.old(source);
            let reading = (states[source].next..states[source].end).map(|number| self.log_object(logs, &old, number));
            let mut objects = stream::iter(reading).buffered(READ_AT_ONCE);
            while let Some(object) = objects.next().await {
                let Some(calls) = object?.and_then(LogObject::into_calls) else {
                    return Err(Error::corrupt(format!("{}: a part of the log of shard {source} is gone", old.folder)));
                };
                if let Some(object) = tail.push(calls) {
                    self.put_tail(logs, &place, number, &object).await?;
                    number += 1;
                }
            }
        }
        if let Some(object) = tail.end() { self.put_tail(logs, &place, number, &object).await } else { Ok(()) }
    }

    async fn put_tail(&self, logs: &Logs<'_>, place: &LogPlace, number: u64, object: &LogObject) -> Result<()> {
        let payload = Bytes::from(object.encode(number));
        match self.writes.put(logs.manifest.id.mount, &place.key(number)?, PutCondition::Absent, payload).await {
            Err(error) if error.kind() != ErrorKind::Conflict => Err(error),
            _ => Ok(()),
        }
    }

    async fn log_object(&self, logs: &Logs<'_>, place: &LogPlace, number: u64) -> Result<Option<LogObject>> {
        let key = place.key(number)?;
        let what = format!("/{}/{key}", logs.door.mount.name);
        let bytes = match self.origin.read_whole(logs.door, &key).await {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.context(what)),
        };
        LogObject::decode(&bytes, number, &logs.schema, &what).map(Some)
    }
}

/// The number that the logs of new shards begin with: versions of records are no lower than any that they had.
fn first_of(ended: &[LogState]) -> u64 {
    debug_assert!(ended.iter().all(|log| log.is_sealed), "nothing is written to an ended log");
    ended.iter().map(|log| log.end).max().unwrap_or(0) + 1
}
