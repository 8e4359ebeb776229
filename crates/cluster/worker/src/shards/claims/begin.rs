//! Claiming a log, writing under that, and bringing it to shared storage.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_navigation::{CLAIM_LIMITS, Claimed, Turn, turn};
use forebay_placement::rank;
use forebay_protocol::{CLAIMS_SINCE, DataRequest, PutCondition, WorkerInfo, encode};
use forebay_shard_store::{Acknowledged, LogClaim, LogObject};
use forebay_types::{Error, ErrorKind, Key, Result, RouteKey, WorkerId};

use super::own::Own;
use crate::origin::MountDoor;
use crate::shards::Shards;
use crate::shards::log::Follower;
use crate::shards::served::Served;

/// How long it is waited for until shared storage is asked again that did not take an object.
const PAUSE: Duration = Duration::from_millis(250);

/// How the next object of a log is written.
pub(in crate::shards) enum Way {
    /// To shared storage.
    Store,
    /// To two disks.
    Keep(Arc<Own>),
}

impl Shards {
    /// How the next object of a log is written, that has been read to its end. `Conflict` where that is another one by now, as after a claim:
    /// whoever writes looks again.
    pub(in crate::shards) async fn way(self: &Arc<Self>, served: &Served, log: &Follower) -> Result<Way> {
        let (claim, next, unseen) = {
            let read = log.read();
            (read.claim(), read.next, read.first_unseen())
        };
        let own = claim.and_then(|claim| self.claims.own(&log.name, claim.id));
        // Who drains is to have nothing of which it is the only disk but one.
        let own = own.filter(|own| own.goes_on() && !self.drains(own.claim.second));
        let claimed = match (&claim, &own) {
            (None, _) => Claimed::Free,
            (Some(_), Some(_)) => Claimed::Here,
            (Some(_), None) => Claimed::Elsewhere,
        };
        let ack = self.latest_known(&served.part.manifest).dataset.orders.ack;
        let wants_two = ack == Acknowledged::TwoWorkers && self.may_claim(log);
        let second = if wants_two && !self.claims.is_put_off() { self.second_of(served, log) } else { None };
        match (turn(wants_two, second.is_some(), claimed), own, claim, second) {
            (Turn::Keep, Some(own), ..) => Ok(Way::Keep(own)),
            (Turn::Claim, _, _, Some(second)) => self.claim(log, next, &second).await,
            (Turn::End, _, Some(claim), _) => {
                self.end_claim(&log.claimed(claim), unseen).await?;
                Err(Error::conflict("a claim is over"))
            }
            _ => Ok(Way::Store),
        }
    }

    /// Whether this worker may write a log alone: every worker reads what is written so.
    fn may_claim(&self, log: &Follower) -> bool {
        let can_all_read = self.cluster.view().workers.iter().all(|worker| worker.protocol >= CLAIMS_SINCE);
        can_all_read && !self.claims.is_quiet(&log.name) && !self.drains(self.cluster.id)
    }

    /// The worker that is to have the same as this one: the next in the rank of those who hold the shard that answers; none where there is none.
    fn second_of(&self, served: &Served, log: &Follower) -> Option<WorkerInfo> {
        let view = self.cluster.view();
        let workers: Vec<_> = view.placeable().map(|worker| worker.id).collect();
        let order = rank(RouteKey::of(log.mount(), &served.part.folder, served.part.number), &workers);
        let second = order.into_iter().find(|worker| *worker != self.cluster.id && !self.cluster.peers.is_away(*worker))?;
        view.workers.iter().find(|worker| worker.id == second).cloned()
    }

    /// Whether a worker is about to leave.
    fn drains(&self, worker: WorkerId) -> bool {
        self.cluster.worker(worker).is_some_and(|worker| worker.draining)
    }

    /// Claims a log, as the object of a number, behind one that stands under no claim. `Conflict` once that is there, or another object is.
    async fn claim(self: &Arc<Self>, log: &Follower, number: u64, second: &WorkerInfo) -> Result<Way> {
        let claim = LogClaim { id: forebay_runtime::random(), writer: self.cluster.id, second: second.id, number };
        let (mount, key) = (log.mount(), log.place().key(number)?);
        let door = self.origin.mount(mount).await?;
        // Both disks know of it before anybody else: that one knows nothing of it means that it is another disk.
        let held = match self.claims.begin(log.claimed(claim), "writer").await {
            Ok(held) => held,
            Err(error) => {
                tracing::warn!(%error, "changes are acknowledged when shared storage has them: this disk takes none");
                self.claims.put_off();
                return Ok(Way::Store);
            }
        };
        let own = Arc::new(Own::new(claim, log.name.clone(), held));
        self.claims.set_own(&own);
        if let Err(error) = self.cluster.peers.claim_begin(second, claim.id, self.cluster.id, mount, &key).await {
            tracing::debug!(worker = %second.id, %error, "no second worker takes changes");
            self.claims.forget(&own.held.of).await;
            return Ok(Way::Store);
        }
        let object = Bytes::from(LogObject::Claim(claim).encode(number));
        let put = self.writes.put(mount, &key, PutCondition::Absent, object.clone()).await;
        self.told.came(mount, &key);
        // What is in its place may be the same, of which an answer was lost.
        let is_refused = put.as_ref().is_err_and(|error| error.kind() == ErrorKind::Conflict);
        if is_refused && self.has_object(&door, &key, &object).await.is_ok_and(|has| !has) {
            self.claims.forget(&own.held.of).await;
            self.cluster.peers.claim_end(second, (claim.id, mount, &key)).await;
        } else {
            // It is there, or may be: then it is found, and gone on with. Else it is ended.
            self.claims.meters.begun();
            self.store_meanwhile(&own);
        }
        put.and_then(|_| Err(Error::conflict("a log is claimed")))
    }

    /// Has the next object of a log on two disks, or in shared storage where the second disk does not take it; all workers have heard of it then.
    /// It goes to shared storage whatever becomes of this. Gives which of both has it.
    pub(in crate::shards) async fn keep(&self, own: &Arc<Own>, number: u64, key: &Key, object: Bytes) -> Result<Acknowledged> {
        // Who does not hear must not acknowledge.
        self.cluster.may_write().await?;
        let _turn = own.turn.lock().await;
        own.has_room().await?;
        own.push(number, &object)?;
        let there = async {
            let gone = || Error::retry("the second worker is gone");
            let second = self.cluster.worker(own.claim.second).ok_or_else(gone)?;
            self.cluster.peers.claim_keep(&second, own.claim.id, number, object.clone()).await
        };
        let (here, there) = futures::join!(own.held.keep(number, object.clone()), there);
        let by = match here.and(there) {
            Ok(()) => {
                own.tell(number);
                Acknowledged::TwoWorkers
            }
            Err(error) => {
                tracing::debug!(%key, %error, "a change waits for shared storage, since not two disks have it");
                own.fail();
                own.stored(number).await?;
                debug_assert!(own.stored_before() > number, "shared storage has what it acknowledges");
                Acknowledged::Storage
            }
        };
        let (mount, key) = (own.log.0, key.clone());
        let told = self.cluster.tell_everyone(mount, encode(&DataRequest::Changed { mount, key, info: None })).await;
        told.map(|()| by)
    }

    /// Brings what comes under an own claim to shared storage, and ends it when nothing comes any more.
    fn store_meanwhile(self: &Arc<Self>, own: &Arc<Own>) {
        let (shards, own) = (Arc::clone(self), Arc::clone(own));
        self.background.spawn(async move {
            let idle = Duration::from_millis(CLAIM_LIMITS.idle_ms);
            while !own.is_over() {
                let brought = match own.first_behind() {
                    Some((number, object)) => shards.store_kept(&own, number, object).await,
                    None => {
                        let is_idle = forebay_runtime::time::timeout(idle, own.more.notified()).await.is_err();
                        let is_time = is_idle || !own.goes_on() || shards.claims.is_quiet(&own.log);
                        if is_time && own.first_behind().is_none() { shards.end_own(&own).await } else { Ok(()) }
                    }
                };
                if let Err(error) = brought {
                    tracing::debug!(log = %own.log.1.folder, %error, "what two disks have is brought to shared storage later");
                    forebay_runtime::time::sleep(PAUSE).await;
                }
            }
        });
    }

    async fn store_kept(&self, own: &Own, number: u64, object: Bytes) -> Result<()> {
        let (mount, key) = (own.log.0, own.log.1.key(number)?);
        if own.may_be_forgotten() {
            self.tell_of_kept(&own.held.of, number, &object).await?;
        }
        match self.writes.put_in_log(mount, &key, object.clone(), self.others_with(&own.log)).await {
            Ok(_) => own.set_stored(number),
            Err(error) if error.kind() == ErrorKind::Conflict => {
                let door = self.origin.mount(mount).await?;
                match self.has_object(&door, &key, &object).await? {
                    true => own.set_stored(number),
                    false => {
                        // Another worker has ended the claim: by what the two had, or past it.
                        tracing::info!(%key, "a claim was ended by another worker");
                        self.claims.forget(&own.held.of).await;
                        own.end();
                    }
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn has_object(&self, door: &MountDoor, key: &Key, object: &Bytes) -> Result<bool> {
        Ok(self.origin.read_whole(door, key).await?.as_slice() == &object[..])
    }

    async fn end_own(self: &Arc<Self>, own: &Arc<Own>) -> Result<()> {
        // Who writes under it goes on first.
        let Ok(_turn) = own.turn.try_lock() else { return Ok(()) };
        let (of, stored) = (&own.held.of, own.stored_before());
        let door = self.origin.mount(own.log.0).await?;
        // Whether that one is there which makes the claim is not known.
        let from = if stored > own.claim.number + 1 { stored } else { own.claim.number };
        if from == stored && self.stands_under(&door, of, stored - 1).await?.is_none() {
            tracing::info!(folder = %of.place.folder, "a log that was claimed is gone");
            self.claims.let_go(own);
            return Ok(());
        }
        self.end_claim(of, from).await?;
        own.end();
        Ok(())
    }
}
