//! A log that this process writes alone.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_navigation::CLAIM_LIMITS;
use forebay_protocol::ShardClaim;
use forebay_shard_store::LogClaim;
use forebay_types::{Error, Result};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use super::held::Held;
use super::since::Since;
use super::{ANSWER_BYTES_MAX, Claims};
use crate::shards::log::{COMING_FOR, Name};

/// How long a change waits for shared storage where it has to.
const PATIENCE: Duration = Duration::from_secs(30);

/// A claim that this process goes on with.
pub(in crate::shards) struct Own {
    pub(in crate::shards) claim: LogClaim,
    pub(super) log: Name,
    pub(super) held: Arc<Held>,
    began: Instant,
    /// One object after the other.
    pub(super) turn: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    progress: watch::Sender<Progress>,
    /// There is something to bring to shared storage, or it is time to end.
    pub(super) more: Notify,
}

struct State {
    /// The number of the next object.
    next: u64,
    /// Before it all are acknowledged, or may be.
    told: u64,
    /// What shared storage has not.
    behind: VecDeque<Behind>,
    behind_bytes: u64,
    /// Bytes of all objects.
    bytes: u64,
    /// The second did not take one.
    has_failed: bool,
}

struct Behind {
    number: u64,
    object: Bytes,
    since: Instant,
}

#[derive(Clone, Copy)]
struct Progress {
    /// Before it shared storage has all.
    stored: u64,
    is_over: bool,
}

impl Own {
    pub(super) fn new(claim: LogClaim, log: Name, held: Arc<Held>) -> Self {
        let next = claim.number + 1;
        let state = State { next, told: next, behind: VecDeque::new(), behind_bytes: 0, bytes: 0, has_failed: false };
        Self {
            claim,
            log,
            held,
            began: forebay_runtime::now(),
            turn: tokio::sync::Mutex::default(),
            state: Mutex::new(state),
            progress: watch::Sender::new(Progress { stored: next, is_over: false }),
            more: Notify::new(),
        }
    }

    /// Whether it takes more: else it is ended, and another one made.
    pub(super) fn goes_on(&self) -> bool {
        let state = self.state.lock();
        !state.has_failed && state.bytes < CLAIM_LIMITS.bytes && !self.is_over()
    }

    /// Waits until one more may be on two disks alone. `Retry` when shared storage takes too long for that.
    pub(super) async fn has_room(&self) -> Result<()> {
        let mut progress = self.progress.subscribe();
        let room = async { while !self.takes_more() && progress.changed().await.is_ok() {} };
        forebay_runtime::time::timeout(PATIENCE, room).await.map_err(|_| {
            Error::retry("nothing was changed: shared storage is too far behind what two workers have on their disks")
        })
    }

    fn takes_more(&self) -> bool {
        let state = self.state.lock();
        let since = state.behind.front().map_or(Duration::ZERO, |behind| behind.since.elapsed());
        CLAIM_LIMITS.takes_more(state.behind_bytes, since.as_millis() as u64) || self.is_over()
    }

    /// An object is on its way to shared storage, whatever becomes of it on disks. `Conflict` where its number is another one's by now.
    pub(super) fn push(&self, number: u64, object: &Bytes) -> Result<()> {
        let mut state = self.state.lock();
        if self.is_over() || state.next != number || state.told != number {
            return Err(Error::conflict("the log went on"));
        }
        state.next += 1;
        state.behind_bytes += object.len() as u64;
        state.bytes += object.len() as u64;
        state.behind.push_back(Behind { number, object: object.clone(), since: forebay_runtime::now() });
        drop(state);
        self.more.notify_one();
        Ok(())
    }

    /// Two disks have an object, or shared storage.
    pub(super) fn tell(&self, number: u64) {
        let mut state = self.state.lock();
        state.told = state.told.max(number + 1);
        assert!(state.told <= state.next, "what is told was written");
    }

    /// The second did not take an object: what is acknowledged is in shared storage from here on, and another claim is made.
    pub(super) fn fail(&self) {
        self.state.lock().has_failed = true;
    }

    /// Waits until shared storage has an object.
    pub(super) async fn stored(&self, number: u64) -> Result<()> {
        let mut progress = self.progress.subscribe();
        let ended = async { progress.wait_for(|progress| progress.stored > number || progress.is_over).await.is_ok() };
        let has_ended = forebay_runtime::time::timeout(PATIENCE, ended).await.unwrap_or(false);
        match has_ended && self.stored_before() > number {
            true => Ok(()),
            // What becomes of it is in the log.
            false => Err(Error::retry("shared storage does not have the change yet: it may be made all the same")),
        }
    }

    /// The next object that shared storage is to have.
    pub(super) fn first_behind(&self) -> Option<(u64, Bytes)> {
        self.state.lock().behind.front().map(|behind| (behind.number, behind.object.clone()))
    }

    /// Whether workers may have forgotten that the first of these is coming, and nobody has told them that it came. Its writer may have waited
    /// long before it came here.
    pub(super) fn may_be_forgotten(&self) -> bool {
        let state = self.state.lock();
        state.behind.front().is_some_and(|first| first.number >= state.told && first.since.elapsed() > COMING_FOR / 8)
    }

    /// Shared storage has the first of those that it had not.
    pub(super) fn set_stored(&self, number: u64) {
        let mut state = self.state.lock();
        if let Some(first) = state.behind.pop_front() {
            assert_eq!(first.number, number, "objects are stored in their order");
            state.behind_bytes -= first.object.len() as u64;
        }
        // Who asks from here on finds it there.
        state.told = state.told.max(number + 1);
        drop(state);
        self.progress.send_modify(|progress| progress.stored = number + 1);
    }

    /// The number before which shared storage has all.
    pub(in crate::shards) fn stored_before(&self) -> u64 {
        self.progress.borrow().stored
    }

    /// How it stands, for who operates it.
    pub(super) fn told(&self) -> ShardClaim {
        let (LogClaim { writer, second, .. }, state) = (self.claim, self.state.lock());
        let behind_ms = state.behind.front().map_or(0, |first| millis(first.since));
        debug_assert_eq!(state.behind.is_empty(), state.behind_bytes == 0, "bytes are of objects that shared storage has not");
        ShardClaim {
            writer,
            second,
            held_ms: millis(self.began),
            behind_objects: u32::try_from(state.behind.len()).unwrap_or(u32::MAX),
            behind_bytes: state.behind_bytes,
            behind_ms,
        }
    }

    /// It is over.
    pub(super) fn end(&self) {
        self.progress.send_modify(|progress| progress.is_over = true);
        self.more.notify_one();
    }

    pub(super) fn is_over(&self) -> bool {
        self.progress.borrow().is_over
    }

    /// Looks whether it is time to end.
    pub(super) fn wake(&self) {
        self.more.notify_one();
    }

    /// What two disks have from a number on.
    pub(super) fn since(&self, from: u64) -> Since {
        let state = self.state.lock();
        if from >= state.told {
            return Since::Nothing;
        }
        match state.behind.front() {
            Some(first) if first.number <= from => {
                let wanted = state.behind.iter().filter(|behind| (from..state.told).contains(&behind.number));
                let mut left = ANSWER_BYTES_MAX;
                let fitting = wanted.take_while(|behind| {
                    let fits = behind.object.len() <= left || left == ANSWER_BYTES_MAX;
                    left = left.saturating_sub(behind.object.len());
                    fits
                });
                Since::Objects(fitting.take(forebay_protocol::KEPT_MAX).map(|behind| behind.object.clone()).collect())
            }
            _ => Since::Stored,
        }
    }
}

/// How long something is ago, in milliseconds.
fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl Claims {
    /// How the claim of a log stands that this process goes on with; none where there is none.
    pub(in crate::shards) fn told(&self, log: &Name) -> Option<ShardClaim> {
        self.own.lock().get(log).filter(|own| !own.is_over()).map(|own| own.told())
    }

    /// How many claims this process goes on with, the bytes that shared storage has not of them, and how long it has not the first.
    pub(in crate::shards) fn behind(&self) -> (u64, u64, Duration) {
        let all: Vec<ShardClaim> = self.own.lock().values().filter(|own| !own.is_over()).map(|own| own.told()).collect();
        let bytes = all.iter().map(|claim| claim.behind_bytes).sum();
        let first = all.iter().map(|claim| claim.behind_ms).max().unwrap_or(0);
        (all.len() as u64, bytes, Duration::from_millis(first))
    }

    /// Goes on with a claim of a log that is under none: one that this process had before is over, whether it has heard of that or not.
    pub(super) fn set_own(&self, own: &Arc<Own>) {
        let before = self.own.lock().insert(own.log.clone(), Arc::clone(own));
        if let Some(before) = before {
            before.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_shard_store::{ClaimFile, ClaimedLog, LogPlace};
    use forebay_types::{ErrorKind, MountId, WorkerId};

    use super::*;

    fn own(folder: &std::path::Path) -> Own {
        let place = LogPlace { folder: "x".into(), log: "0123456789abcdef".into(), shard: 0 };
        let claim = LogClaim { id: 7, writer: WorkerId(1), second: WorkerId(2), number: 4 };
        let file = ClaimFile::create(folder, "w", ClaimedLog { mount: 1, place: place.clone(), claim }).unwrap();
        Own::new(claim, (MountId(1), place), Arc::new(Held::new(file)))
    }

    fn found(own: &Own, from: u64) -> Vec<&'static str> {
        match own.since(from) {
            Since::Nothing => vec!["nothing"],
            Since::Stored => vec!["stored"],
            Since::Over => vec!["over"],
            Since::Objects(objects) => objects.iter().map(|_| "object").collect(),
        }
    }

    #[tokio::test]
    async fn a_claim_that_comes_after_another_one_of_the_log_ends_that() {
        let (folder, before) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let claims = Claims::open(&folder.path().join("claims")).unwrap();
        let (before, after) = (Arc::new(own(before.path())), Arc::new(own(folder.path())));
        before.push(5, &Bytes::from_static(b"x")).unwrap();
        claims.set_own(&before);
        assert_eq!((claims.behind().0, claims.behind().1), (1, 1), "shared storage has not what it took");
        claims.set_own(&after);
        assert_eq!(claims.behind(), (1, 0, Duration::ZERO));
        assert!(before.is_over(), "or it would be stored for ever what has no place any more");
        assert!(!after.is_over());
    }

    #[tokio::test]
    async fn others_are_told_what_is_acknowledged_and_not_in_shared_storage() {
        let folder = tempfile::tempdir().unwrap();
        let own = own(folder.path());
        let object = Bytes::from_static(b"x");
        own.push(5, &object).unwrap();
        assert_eq!(found(&own, 5), ["nothing"], "it is not on two disks yet");
        assert_eq!(own.push(6, &object).unwrap_err().kind(), ErrorKind::Conflict, "one after the other");
        own.tell(5);
        own.push(6, &object).unwrap();
        own.tell(6);
        assert_eq!((found(&own, 5), found(&own, 6), found(&own, 7)), (vec!["object"; 2], vec!["object"], vec!["nothing"]));
        let behind = |told: ShardClaim| (told.writer, told.second, told.behind_objects, told.behind_bytes);
        assert_eq!(behind(own.told()), (WorkerId(1), WorkerId(2), 2, 2));
        own.set_stored(5);
        assert_eq!(behind(own.told()), (WorkerId(1), WorkerId(2), 1, 1), "shared storage has one of them");
        assert_eq!((found(&own, 5), found(&own, 6)), (vec!["stored"], vec!["object"]));
        own.stored(5).await.unwrap();
        assert_eq!((own.stored_before(), own.first_behind().map(|first| first.0)), (6, Some(6)));
        own.fail();
        assert!(!own.goes_on());
        own.end();
        assert_eq!(own.stored(6).await.unwrap_err().kind(), ErrorKind::Retry);
        assert_eq!(own.push(7, &object).unwrap_err().kind(), ErrorKind::Conflict);
    }
}
