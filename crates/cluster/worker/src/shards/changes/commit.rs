//! Adding to a log: calls that wait go into one object.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_metrics::table;
use forebay_navigation::MERGE_LIMITS;
use forebay_protocol::{CHANGES_MAX, DataRequest, DatasetId, PeerRequest, encode};
use forebay_runtime::time::Instant;
use forebay_shard::key_hash;
use forebay_shard_store::{Acknowledged, ChangeIf, LogObject, LoggedCall, WantedChange};
use forebay_trace::{current, within};
use forebay_types::{Error, ErrorKind, Key, MountId, Result};
use tokio::sync::oneshot;

use super::moving::replaced;
use super::repeated::{refuse_unknown, unknown};
use crate::background::aside;
use crate::shards::claims::Way;
use crate::shards::log::{Call, Follower, Read, Standing, Verdict, decide};
use crate::shards::served::Served;
use crate::shards::{Asked, Shards};

/// Bytes of a call's changes as they are sent, at most.
const CALL_BYTES_MAX: usize = 4 << 20;
/// Bytes of changes that are read where they came in, at most: those of more take long enough for others to wait on that thread.
pub(super) const READ_HERE_MAX: usize = 16 << 10;
/// Calls of more bytes that are read at a time: what is read of them takes several times these bytes, and no queue counts it yet.
pub(in crate::shards) const PARSED_AT_ONCE: usize = 4;
/// How often the next number is tried while other writers are faster.
const ATTEMPTS: usize = 64;
/// When it makes sense to ask again for what was not begun: who asks knows by that, too, that nothing was changed.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

impl Shards {
    /// Makes changes of records of a shard, one JSON object a line, all of them or none; gives the version that they have now. Where the call was
    /// asked for before, it comes with the number of an object that the log had before that.
    pub(crate) async fn change(
        self: &Arc<Self>,
        id: DatasetId,
        number: u32,
        call: (u128, Option<u64>),
        within: Duration,
        changes: &[u8],
    ) -> Result<u64> {
        let (came, deadline) = (forebay_runtime::now(), forebay_runtime::time::instant() + within);
        let asked = Arc::new(self.asked(&id, number).await?);
        self.check_known(&asked, call.1)?;
        let served = self.here_within(&asked, deadline).await?;
        let version = self.add(served, &asked, call, changes, deadline).await?;
        self.count("change", came);
        Ok(version)
    }

    /// Makes the changes of a call, one JSON object a line, all or none; gives the records' version. Done when shared storage has
    /// them, and no worker can answer without them.
    async fn add(
        self: &Arc<Self>,
        served: Arc<Served>,
        asked: &Asked,
        (call, after): (u128, Option<u64>),
        payload: &[u8],
        deadline: Instant,
    ) -> Result<u64> {
        if served.log.is_none() {
            return Err(Error::invalid(format!(
                "{}: the dataset was made by a version of Forebay that knew no changes of datasets: create it again with --replace",
                asked.folder()
            )));
        }
        let changes = match (READ_HERE_MAX..=CALL_BYTES_MAX).contains(&payload.len()) {
            true => {
                let turn = Arc::clone(&self.turns.parsing).acquire_owned();
                let turn = forebay_runtime::time::timeout_at(deadline, turn).await;
                let many = |_| Error::retry("too many changes come at once: nothing was changed, ask again").after(AGAIN_AFTER);
                let turn = turn.map_err(many)?;
                let turn = turn.map_err(|_| Error::closed("the worker is stopping"))?;
                let (served, payload) = (Arc::clone(&served), payload.to_vec());
                aside("reading changes", move || {
                    // Held by the work itself: a caller that goes away leaves no room for another one beside it.
                    let _turn = turn;
                    parse(&served, &payload)
                })
                .await?
            }
            false => parse(&served, payload)?,
        };
        let (done, made) = oneshot::channel();
        let (bytes, came) = (payload.len(), forebay_runtime::now());
        if served.queue.push(Call { id: call, after, changes, bytes, came, done })? {
            // It goes on when those who asked go away: nobody else would tell what became of the others' calls.
            let shards = Arc::clone(self);
            self.background.spawn(within(current(), async move {
                let written = shards.make_all(&served).await.then_some(served.id);
                shards.leave_damaged(&served);
                shards.merge_much(written);
            }));
        }
        let late = || Error::retry("the change may be made all the same: ask again, or read the record");
        let made = forebay_runtime::time::timeout_at(deadline, made).await.map_err(|_| late())?;
        made.map_err(|_| Error::retry("the worker is stopping: the change may be made all the same"))?
    }

    /// Makes all calls that wait; whether anything was written for them.
    async fn make_all(self: &Arc<Self>, served: &Served) -> bool {
        let Some(log) = &served.log else { return false };
        let mut has_written = false;
        while let Some(calls) = served.queue.take() {
            has_written |= self.make(served, log, calls).await;
        }
        has_written
    }

    /// Makes calls, and tells those who wait; whether anything was written for them.
    async fn make(self: &Arc<Self>, served: &Served, log: &Follower, mut calls: Vec<Call>) -> bool {
        let mut came = calls.iter().map(|call| call.came).max().unwrap_or_else(forebay_runtime::now);
        for attempt in 0..ATTEMPTS {
            if calls.is_empty() {
                return false;
            }
            match self.try_make(served, log, &mut calls, came).await {
                Ok(has_written) => return has_written,
                Err(error) if error.kind() == ErrorKind::Conflict => came = forebay_runtime::now(),
                Err(error) => {
                    tell_all(calls, &if attempt > 0 { doubtful(error) } else { error });
                    return false;
                }
            }
        }
        tell_all(calls, &Error::retry("other workers write this shard too: nothing was changed, ask again"));
        false
    }

    /// The same once: `Conflict` when the log went on meanwhile. What has its answer is taken out of `calls`.
    async fn try_make(
        self: &Arc<Self>,
        served: &Served,
        log: &Follower,
        calls: &mut Vec<Call>,
        came: std::time::Instant,
    ) -> Result<bool> {
        let conditional = || of_records(calls, |wanted| wanted.condition != ChangeIf::Always);
        self.catch_up(served, came, conditional).await?;
        self.look_back(served, log, calls).await;
        if calls.iter().flat_map(|call| &call.changes).any(|wanted| wanted.condition != ChangeIf::Always) {
            served.have_keys().await?;
        }
        let next = self.judge(served, log, calls).await?;
        if calls.is_empty() {
            return Ok(false);
        }
        let way = self.way(served, log).await?;
        let key = log.place().key(next)?;
        let records = of_records(calls, |_| true);
        self.tell_coming(log.mount(), &key, records)
            .await
            .map_err(|error| Error::retry(format!("nothing was changed: {}", error.message())).after(AGAIN_AFTER))?;
        let logged =
            |call: &Call| LoggedCall { id: call.id, changes: call.changes.iter().map(|wanted| wanted.change.clone()).collect() };
        let logged = calls.iter().map(logged).collect();
        let object = match &way {
            Way::Store => LogObject::Calls(logged),
            Way::Keep(own) => LogObject::Kept(own.claim, logged),
        };
        let payload = Bytes::from(object.encode(next));
        let put = match &way {
            Way::Store => {
                let put = self.writes.put_in_log(log.mount(), &key, payload.clone(), self.others_with(&log.name));
                put.await.map(|_| Acknowledged::Storage)
            }
            Way::Keep(own) => self.keep(own, next, &key, payload.clone()).await,
        };
        let by = match put {
            Ok(by) => by,
            Err(error) => {
                // There is something, or may be: of somebody who does not tell this worker, too.
                self.told.came(log.mount(), &key);
                return self.unsure(served, log, calls, doubtful(error)).await.map(|()| false);
            }
        };
        table::WORKER_SHARD_LOG_WRITTEN.only().add(1);
        table::WORKER_SHARD_CHANGES.only().add(calls.iter().map(|call| call.changes.len() as u64).sum());
        match &way {
            Way::Store => served.take_over(next, object)?,
            Way::Keep(own) => {
                served.take_over_kept(next, object, &payload)?;
                log.seen_before(own.stored_before());
            }
        }
        // The shard may be served in other files too.
        if let Some(words) = self.told.is_there(log.mount(), &key) {
            log.heard(words);
        }
        for call in calls.drain(..) {
            self.claims.meters.acknowledged(by, call.came.elapsed());
            call.end(Ok(next));
        }
        Ok(true)
    }

    /// Has all workers know which records an object changes that is about to come.
    pub(in crate::shards) async fn tell_coming(&self, mount: MountId, key: &Key, records: Vec<u64>) -> Result<()> {
        self.told.coming(mount, key, records.clone());
        let coming = PeerRequest::Coming { mount, key: key.clone(), records };
        self.cluster.tell_everyone(mount, coming.encode()).await
    }

    /// Answers the calls that were made before or can't be made; gives the number of the object that the others go into.
    async fn judge(&self, served: &Served, log: &Follower, calls: &mut Vec<Call>) -> Result<u64> {
        let (verdicts, next) = {
            let read = log.read();
            check_open(&read, &served.part.folder)?;
            refuse_unknown(calls, &read, || unknown(&served.part.folder));
            let store = served.store.load();
            let standing = |key: &_| Ok(Standing { is_there: store.contains(key)?, version: store.version(key, log.from) });
            let all: Vec<_> = calls.iter().map(|call| (call.id, call.changes.as_slice())).collect();
            (decide(&all, read.next, |call| read.number_of(call), standing), read.next)
        };
        let mut rest = Vec::with_capacity(calls.len());
        let mut ended = Vec::new();
        for (call, verdict) in calls.drain(..).zip(verdicts) {
            match verdict {
                Verdict::Write => rest.push(call),
                Verdict::Done(number) => ended.push((call, number)),
                Verdict::Refused(error) => call.end(Err(served.instead_of(error))),
            }
        }
        *calls = rest;
        let of_shard = served.store.load().update_bytes() as u64;
        if !calls.is_empty() && !MERGE_LIMITS.takes_more(of_shard, self.update_bytes()) {
            let error = served.no_room().after(AGAIN_AFTER);
            calls.drain(..).for_each(|call| call.end(Err(error.clone())));
        }
        for (call, number) in ended {
            // Whoever made it may have gone before everybody heard.
            let came = DataRequest::Changed { mount: log.mount(), key: log.place().key(number)?, info: None };
            let told = self.cluster.tell_everyone(log.mount(), encode(&came)).await;
            call.end(told.map(|()| number).map_err(doubtful));
        }
        Ok(next)
    }

    /// Shared storage did not say that it has the object: what it has is looked for. `Conflict` when that may answer some calls.
    async fn unsure(self: &Arc<Self>, served: &Served, log: &Follower, calls: &[Call], error: Error) -> Result<()> {
        if error.kind() == ErrorKind::Conflict {
            return Err(error);
        }
        // Of a log that has ended meanwhile it is not said that nothing was changed.
        self.catch_up(served, forebay_runtime::now(), || of_records(calls, |_| true)).await.map_err(|_| error.clone())?;
        let read = log.read();
        match calls.iter().any(|call| read.number_of(call.id).is_some()) {
            true => Err(Error::conflict(error.message().to_string())),
            false => Err(error),
        }
    }
}

/// Whether anything comes behind what was read of a log. `Conflict` where another look has seen it move: the next one leads on.
fn check_open(read: &Read, folder: &Key) -> Result<()> {
    match (read.is_moved, read.is_sealed) {
        (true, _) => Err(Error::conflict(format!("{folder}: its records are in other shards"))),
        (false, true) => Err(replaced(folder)),
        (false, false) => Ok(()),
    }
}

/// The same error of what may be done: nobody takes it for refused until later.
fn doubtful(error: Error) -> Error {
    Error::new(error.kind(), error.message()).with_source(error)
}

fn tell_all(calls: Vec<Call>, error: &Error) {
    calls.into_iter().for_each(|call| call.end(Err(error.clone())));
}

fn of_records(calls: &[Call], wanted: impl Fn(&WantedChange) -> bool) -> Vec<u64> {
    let changes = calls.iter().flat_map(|call| &call.changes);
    changes.filter(|change| wanted(change)).map(|wanted| key_hash(wanted.change.key())).collect()
}

/// The changes in a payload. `Invalid` when they are too many or too large, or one of them is none of this shard.
fn parse(served: &Served, payload: &[u8]) -> Result<Vec<WantedChange>> {
    if payload.len() > CALL_BYTES_MAX {
        return Err(Error::invalid(format!("a call has {} MiB of changes at most: send several", CALL_BYTES_MAX >> 20)));
    }
    let store = served.store.load();
    let columns = store.records()?;
    let lines = payload.split(|byte| *byte == b'\n').filter(|line| !line.iter().all(u8::is_ascii_whitespace));
    let changes: Vec<_> = lines.take(CHANGES_MAX + 1).map(|line| WantedChange::parse(columns, line)).collect::<Result<_>>()?;
    match changes.len() {
        0 => Err(Error::invalid("a call without changes")),
        count if count > CHANGES_MAX => Err(Error::invalid(format!("a call has {CHANGES_MAX} changes at most: send several"))),
        _ => match changes.iter().find(|wanted| !served.holds(wanted.change.key())) {
            Some(wanted) => Err(Error::invalid(format!("{} is no key of shard {}", wanted.change.key(), served.part.number))),
            None => Ok(changes),
        },
    }
}

#[cfg(test)]
mod tests {
    use forebay_shard_store::LogPlace;

    use super::*;

    #[test]
    fn what_may_be_done_is_not_said_to_be_refused_until_later() {
        let busy = Error::retry("too much waits").after(AGAIN_AFTER);
        let told = doubtful(busy);
        assert_eq!((told.kind(), told.message(), told.retry_after()), (ErrorKind::Retry, "too much waits", None));
    }

    #[test]
    fn who_finds_that_the_log_has_moved_looks_once_more() {
        let folder = Key::new("x").unwrap();
        let after = |object: Option<LogObject>| {
            let place = LogPlace { folder: "x".into(), log: "0123456789abcdef".into(), shard: 0 };
            let follower = Follower::new(MountId(1), place, 3);
            object.into_iter().for_each(|object| follower.take_over(3, object, |_| ()));
            check_open(&follower.read(), &folder).err().map(|error| error.kind())
        };
        assert_eq!(after(None), None);
        assert_eq!(after(Some(LogObject::Moved)), Some(ErrorKind::Conflict));
        assert_eq!(after(Some(LogObject::Sealed)), Some(ErrorKind::NotFound));
    }
}
