//! Logs that one worker writes alone for a while: what it writes is acknowledged when two disks have it, and goes to shared storage then.
//!
//! Owns: what is on this worker's disk of such claims, its own and those that it is the second of, bringing that to shared storage, and ending
//! claims, its own and those of others who are gone.
//!
//! Never does: acknowledge what not two disks or shared storage have, or write past a claim before it is over.
//!
//! Start with [`Shards::way`](super::Shards::way) and [`Shards::end_claim`](super::Shards::end_claim). docs/decisions/0019 has the reasons.

mod answer;
mod begin;
mod end;
mod held;
mod meters;
mod own;
mod past;
mod since;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_navigation::CLAIM_LIMITS;
use forebay_shard_store::{ClaimFile, ClaimedLog, LogObject, LogPlace};
use forebay_types::{Error, Result, ResultExt, WorkerId};
use parking_lot::Mutex;

use super::log::Name;
use crate::background::aside;
use crate::cluster::ClaimName;
use crate::single_flight::SingleFlight;
pub(super) use begin::Way;
pub(crate) use end::look_after;
use held::Held;
use meters::ClaimMeters;
use own::Own;
pub(super) use since::Since;

/// Claims that are on disk here, at most: each is a file.
const HELD_MAX: usize = 1024;

/// How long no claims are made after this worker's disk took none.
const PUT_OFF_FOR: Duration = Duration::from_secs(10);

/// The claims that this worker has a part in.
pub(super) struct Claims {
    folder: PathBuf,
    /// What is on disk here, by claim.
    held: Mutex<HashMap<u128, Arc<Held>>>,
    /// The logs that this process writes alone.
    own: Mutex<HashMap<Name, Arc<Own>>>,
    /// Logs that nobody here is to claim now.
    quiet: Mutex<HashSet<Name>>,
    /// Claims that are being ended.
    ending: SingleFlight<ClaimedLog, ()>,
    /// This disk took none a moment ago: none are made until then.
    put_off: Mutex<Option<Instant>>,
    is_stopping: AtomicBool,
    pub(super) meters: ClaimMeters,
}

impl Claims {
    /// Keeps files below `folder`; what processes before this one left there is found again.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder).context(|| folder.display())?;
        // Its name is durable before anything in it counts.
        if let Some(above) = folder.parent() {
            std::fs::File::open(above).and_then(|above| above.sync_all()).context(|| above.display())?;
        }
        let left = ClaimFile::left(folder)?;
        let held = left.into_iter().map(|file| (file.of().claim.id, Arc::new(Held::left(file)))).collect();
        Ok(Self {
            folder: folder.to_path_buf(),
            held: Mutex::new(held),
            own: Mutex::default(),
            quiet: Mutex::default(),
            ending: SingleFlight::default(),
            put_off: Mutex::default(),
            is_stopping: AtomicBool::new(false),
            meters: ClaimMeters::new(),
        })
    }

    fn by_id(&self, claim: u128) -> Option<Arc<Held>> {
        self.held.lock().get(&claim).cloned()
    }

    /// What is on disk here of a claim: nothing where it is another log's. Whoever writes to a log may have copied there what makes the claim of
    /// another one, and must neither read what is under it nor end it by that.
    fn of(&self, of: &ClaimedLog) -> Option<Arc<Held>> {
        self.by_id(of.claim.id).filter(|held| held.of == *of)
    }

    /// The same by the object that makes the claim.
    fn at(&self, (claim, mount, key): ClaimName<'_>) -> Option<Arc<Held>> {
        let (place, number) = LogPlace::parse(key)?;
        self.by_id(claim).filter(|held| (held.of.mount, &held.of.place, held.of.claim.number) == (mount.0, &place, number))
    }

    fn all(&self) -> Vec<Arc<Held>> {
        self.held.lock().values().cloned().collect()
    }

    /// How many there are on disk here, and their bytes.
    pub(super) fn held(&self) -> (usize, u64) {
        let all = self.all();
        (all.len(), all.iter().map(|held| held.bytes()).sum())
    }

    /// Has a claim on disk from now on, with nothing under it.
    async fn begin(&self, of: ClaimedLog, role: &'static str) -> Result<Arc<Held>> {
        let id = of.claim.id;
        if self.held.lock().len() >= HELD_MAX {
            return Err(Error::retry(format!(
                "this worker has {HELD_MAX} logs with changes that shared storage has not: try again"
            )));
        }
        let folder = self.folder.clone();
        let made = aside("beginning a claim", move || ClaimFile::create(&folder, role, of)).await?;
        let held = Arc::new(Held::new(made));
        self.held.lock().insert(id, Arc::clone(&held));
        Ok(held)
    }

    /// The claim of a log that this process goes on with, if it is that one.
    pub(super) fn own(&self, log: &Name, claim: u128) -> Option<Arc<Own>> {
        self.own.lock().get(log).filter(|own| own.claim.id == claim).cloned()
    }

    fn own_by_id(&self, claim: u128) -> Option<Arc<Own>> {
        self.own.lock().values().find(|own| own.claim.id == claim).cloned()
    }

    /// Lets a claim go that is over.
    async fn forget(&self, of: &ClaimedLog) {
        let own = {
            let mut all = self.own.lock();
            let name = all.iter().find(|(_, own)| own.held.of == *of).map(|(name, _)| name.clone());
            name.and_then(|name| all.remove(&name))
        };
        if let Some(own) = own {
            own.end();
        }
        let held = {
            let mut all = self.held.lock();
            let is_of = all.get(&of.claim.id).is_some_and(|held| held.of == *of);
            if is_of { all.remove(&of.claim.id) } else { None }
        };
        if let Some(held) = held
            && let Err(error) = held.remove().await
        {
            tracing::warn!(%error, "the file of a claim that is over stays until the next start");
        }
    }

    /// Goes on with no claim whose log is gone; what is on disk of it stays for a while.
    fn let_go(&self, own: &Own) {
        self.own.lock().retain(|_, other| other.claim.id != own.claim.id);
        own.end();
    }

    /// Nobody here claims a log until what is given goes.
    pub(super) fn keep_quiet<'a>(&'a self, log: &Name) -> Quiet<'a> {
        self.quiet.lock().insert(log.clone());
        Quiet { claims: self, log: log.clone() }
    }

    fn put_off(&self) {
        *self.put_off.lock() = Some(forebay_runtime::now() + PUT_OFF_FOR);
    }

    fn is_put_off(&self) -> bool {
        self.put_off.lock().is_some_and(|until| forebay_runtime::now() < until)
    }

    fn is_quiet(&self, log: &Name) -> bool {
        self.is_stopping.load(Relaxed) || self.quiet.lock().contains(log)
    }

    /// Own claims end, and no more are made.
    pub(super) fn stop(&self) {
        self.is_stopping.store(true, Relaxed);
        self.own.lock().values().for_each(|own| own.wake());
    }
}

/// A log that nobody here claims.
pub(super) struct Quiet<'a> {
    claims: &'a Claims,
    log: Name,
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        self.claims.quiet.lock().remove(&self.log);
    }
}

/// Bytes of objects that one answer has, at most, but for one alone.
const ANSWER_BYTES_MAX: usize = CLAIM_LIMITS.behind_bytes as usize;

/// Whether bytes are the object with a number under a claim: nothing else comes to its log by it, whoever says that it does.
fn is_under(of: &ClaimedLog, number: u64, object: &[u8]) -> bool {
    LogObject::claim_in(object, number, &of.place.folder).is_ok_and(|claim| claim == Some(of.claim))
}

/// The name of a worker in errors.
fn named(worker: WorkerId) -> String {
    format!("worker {worker}")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use forebay_shard_store::LogClaim;
    use forebay_types::MountId;

    use super::*;

    #[tokio::test]
    async fn what_is_on_disk_under_a_claim_is_its_own_log_s_whatever_another_one_says() {
        let folder = tempfile::tempdir().unwrap();
        let claims = Claims::open(&folder.path().join("claims")).unwrap();
        let place = LogPlace { folder: "x".into(), log: "0123456789abcdef".into(), shard: 0 };
        let claim = LogClaim { id: 7, writer: WorkerId(1), second: WorkerId(2), number: 4 };
        let of = ClaimedLog { mount: 1, place: place.clone(), claim };
        let held = claims.begin(of.clone(), "second").await.unwrap();
        held.keep(5, Bytes::from_static(b"five")).await.unwrap();
        let copied = LogPlace { folder: "y".into(), ..place.clone() };
        let others = [
            ClaimedLog { mount: 2, ..of.clone() },
            ClaimedLog { place: copied.clone(), ..of.clone() },
            ClaimedLog { claim: LogClaim { number: 3, ..claim }, ..of.clone() },
        ];
        for other in &others {
            let key = other.place.key(other.claim.number).unwrap();
            assert!(claims.of(other).is_none() && claims.at((7, MountId(other.mount), &key)).is_none(), "{other:?}");
            claims.forget(other).await;
        }
        let key = place.key(4).unwrap();
        let found = claims.at((7, MountId(1), &key)).unwrap().found(5, false).await.unwrap();
        assert_eq!((found.is_closed, found.objects), (false, vec![Bytes::from_static(b"five")]), "nobody has closed it");
        assert_eq!(claims.of(&of).map(|held| held.of.clone()), Some(of.clone()));
        claims.forget(&of).await;
        assert!(claims.by_id(7).is_none() && ClaimFile::left(&folder.path().join("claims")).unwrap().is_empty());
    }
}
