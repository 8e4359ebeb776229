//! Looking into a log for what is new.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use forebay_metrics::table;
use forebay_shard_store::LogObject;
use forebay_types::{Error, ErrorKind, Result};
use futures::future::try_join_all;

use crate::origin::MountDoor;
use crate::shards::Shards;
use crate::shards::claims::Since;
use crate::shards::log::{Follower, Looked};
use crate::shards::served::Served;

/// Objects that are asked for at once, once there is more than one.
const AHEAD_MAX: u64 = 16;
/// How often a look begins anew, as the claim that a log stands under ends or is made.
const LOOKS_MAX: usize = 64;

impl Shards {
    /// Has a shard see every change that was acknowledged before `came`, and of the records with these hashes every one that anybody
    /// may have seen by then. Asks shared storage only where this worker may not have heard.
    /// `NotFound` where its records are in other shards.
    pub(in crate::shards) async fn catch_up(
        self: &Arc<Self>,
        served: &Served,
        came: Instant,
        records: impl Fn() -> Vec<u64>,
    ) -> Result<()> {
        let Some(log) = &served.log else { return Ok(()) };
        let door = self.origin.mount(log.mount()).await?;
        if self.is_fresh(&door, log, &records) {
            return Ok(());
        }
        self.look_since(&door, served, log, came).await?;
        if log.is_moved() { self.lead_on(&served.part.manifest).await } else { Ok(()) }
    }

    async fn look_since(self: &Arc<Self>, door: &MountDoor, served: &Served, log: &Follower, came: Instant) -> Result<()> {
        let asking = self.turns.following.join(served.id);
        let mut last = asking.turn().await;
        if log.is_moved() || last.is_some_and(|began| began >= came) {
            return Ok(());
        }
        let began = forebay_runtime::now();
        self.look(door, served, log).await?;
        *last = Some(began);
        Ok(())
    }

    /// The same without a look: whether nothing can have come that this worker has not heard of.
    pub(in crate::shards) fn is_fresh(&self, door: &MountDoor, log: &Follower, records: impl Fn() -> Vec<u64>) -> bool {
        let (rule, stands) = (self.cluster.hearing.rule(door.mount.options.validate), log.stands());
        let is_all = |looked: Looked| {
            rule.accepts(looked.began.elapsed()) && self.told.is_quiet(&log.name, looked.words, stands.next, &records)
        };
        !stands.is_moved && stands.looked.is_some_and(is_all)
    }

    /// Takes over all that the log has, and what is acknowledged beyond that.
    async fn look(self: &Arc<Self>, door: &MountDoor, served: &Served, log: &Follower) -> Result<()> {
        let (began, words) = (forebay_runtime::now(), self.told.words(&log.name));
        for _ in 0..LOOKS_MAX {
            self.look_at_stored(door, served, log).await?;
            if self.look_at_kept(door, served, log).await? {
                log.set_looked(Looked { began, words });
                return Ok(());
            }
        }
        Err(Error::retry(format!("{}: who changes the shard's records is another worker time after time", served.part.folder)))
    }

    async fn look_at_stored(self: &Arc<Self>, door: &MountDoor, served: &Served, log: &Follower) -> Result<()> {
        let (mut next, mut ahead) = (log.first_unseen(), 1);
        loop {
            let objects = try_join_all((next..next + ahead).map(|number| self.object(door, log, number))).await?;
            for bytes in objects {
                match bytes {
                    Some(bytes) if !log.read().is_sealed => match log.see(next, &bytes) {
                        Some(true) => {}
                        Some(false) => return Err(self.was_given_up(served)),
                        None => {
                            let object = decode(door, served, log, next, &bytes)?;
                            self.take_over(served, next, object)?;
                        }
                    },
                    _ => return Ok(()),
                }
                next += 1;
            }
            ahead = (ahead * 2).min(AHEAD_MAX);
        }
    }

    /// Takes over what is acknowledged and not in shared storage; false where that has more by now.
    async fn look_at_kept(self: &Arc<Self>, door: &MountDoor, served: &Served, log: &Follower) -> Result<bool> {
        loop {
            let (claim, next, unseen) = {
                let read = log.read();
                (read.claim(), read.next, read.first_unseen())
            };
            let Some(claim) = claim else { return Ok(true) };
            let objects = match self.since(log, claim, (next, unseen)).await? {
                Since::Objects(objects) => objects,
                Since::Nothing => return Ok(true),
                Since::Stored | Since::Over => return Ok(false),
            };
            for (number, bytes) in (next..).zip(objects) {
                let object = decode(door, served, log, number, &bytes)?;
                let taken = served.take_over_kept(number, object, &bytes);
                taken.inspect_err(|_| self.merge_much(Some(served.id)))?;
            }
        }
    }

    fn take_over(self: &Arc<Self>, served: &Served, number: u64, object: LogObject) -> Result<()> {
        // Where others have merged it since, their files want none of that.
        served.take_over(number, object).inspect_err(|_| self.merge_much(Some(served.id)))
    }

    /// What was answered from until now was given up by an operator, or put back to before it: the shard is opened anew.
    fn was_given_up(&self, served: &Served) -> Error {
        self.served.lock().remove(&served.id);
        // One that is far away goes by the name that is the other's turned round.
        self.far.lock().pop(&!served.id);
        Error::retry(format!("{}: changes were given up that only two workers had: ask again", served.part.folder))
    }

    /// The bytes of an object of a log; none where there is none.
    pub(super) async fn object(&self, door: &MountDoor, log: &Follower, number: u64) -> Result<Option<Bytes>> {
        let key = log.place().key(number)?;
        let bytes = match self.origin.read_whole(door, &key).await {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.context(format!("/{}/{key}", door.mount.name))),
        };
        table::WORKER_SHARD_LOG_READ.only().add(1);
        Ok(Some(Bytes::from(bytes)))
    }
}

pub(super) fn decode(door: &MountDoor, served: &Served, log: &Follower, number: u64, bytes: &[u8]) -> Result<LogObject> {
    let key = log.place().key(number)?;
    let schema = served.store.load().records()?.schema();
    LogObject::decode(bytes, number, &schema, &format!("/{}/{key}", door.mount.name))
}
