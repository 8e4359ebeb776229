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
use forebay_shard_store::{ClaimFile, ClaimedLog, LogObject};
use forebay_types::{Error, Result, ResultExt, WorkerId};
use parking_lot::Mutex;

use super::log::Name;
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
    ending: SingleFlight<u128, ()>,
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

    /// What is on disk here of a claim.
    fn of(&self, claim: u128) -> Option<Arc<Held>> {
        self.held.lock().get(&claim).cloned()
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
        let made = forebay_runtime::spawn_blocking(move || ClaimFile::create(&folder, role, of)).await;
        let held = Arc::new(Held::new(made.map_err(|error| Error::internal(format!("a claim ended early: {error}")))??));
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
    async fn forget(&self, claim: u128) {
        let own = {
            let mut all = self.own.lock();
            let name = all.iter().find(|(_, own)| own.claim.id == claim).map(|(name, _)| name.clone());
            name.and_then(|name| all.remove(&name))
        };
        if let Some(own) = own {
            own.end();
        }
        let held = self.held.lock().remove(&claim);
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
