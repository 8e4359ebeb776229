//! Metadata in memory: what the databases do, without one. For simulations, which have no threads of a database's own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Weak};

use forebay_runtime::simulated;
use forebay_types::{Error, Key, Mount, MountId, MountName, MountOptions, Result, Verifier};
use parking_lot::{Mutex, MutexGuard};

use crate::database::{CHECKPOINT_BYTES_MAX, StoredTable};

/// What there is in this process, by its URL.
static DATABASES: Mutex<BTreeMap<String, Arc<Mutex<Tables>>>> = Mutex::new(BTreeMap::new());
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Metadata that is in this process's memory as long as this lives, for every coordinator of the process that opens its URL.
#[derive(Debug)]
pub struct Memory {
    url: String,
}

impl Memory {
    /// An empty one.
    #[expect(clippy::new_without_default, reason = "each is another one, which a default would not say")]
    pub fn new() -> Self {
        let url = format!("memory:{}", NEXT.fetch_add(1, SeqCst));
        DATABASES.lock().insert(url.clone(), Arc::default());
        Self { url }
    }

    /// No coordinator gets an answer from it, or each does again.
    pub fn set_away(&self, is_away: bool) {
        if let Some(tables) = DATABASES.lock().get(&self.url) {
            tables.lock().is_away = is_away;
        }
    }

    /// What [`crate::Metadata::open`] opens it by.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        DATABASES.lock().remove(&self.url);
    }
}

/// The one of a URL; none where it is of no [`Memory`].
pub(crate) fn find(url: &str) -> Option<Session> {
    let tables = DATABASES.lock().get(url).cloned()?;
    let state = SessionState { url: url.to_owned(), tables, epoch: AtomicU64::new(0), is_closed: AtomicBool::new(false) };
    Some(Session(Arc::new(state)))
}

#[derive(Default)]
struct Tables {
    is_away: bool,
    epoch: u64,
    /// As long as its session is there and open.
    leader: Weak<SessionState>,
    last_mount: u64,
    mounts: BTreeMap<MountId, Mount>,
    pins: BTreeSet<(MountId, Key)>,
    tables: BTreeMap<String, String>,
    tokens: BTreeMap<String, Verifier>,
    checkpoints: BTreeMap<String, (u64, Vec<u8>)>,
}

/// One process's way to it.
#[derive(Clone)]
pub(crate) struct Session(Arc<SessionState>);

struct SessionState {
    url: String,
    tables: Arc<Mutex<Tables>>,
    /// The acquired epoch; 0 before.
    epoch: AtomicU64,
    is_closed: AtomicBool,
}

impl Session {
    pub(crate) fn shown(&self) -> String {
        self.0.url.clone()
    }

    pub(crate) fn close(&self) {
        self.0.is_closed.store(true, SeqCst);
    }

    pub(crate) fn acquire_epoch(&self) -> Result<u64> {
        let mut tables = self.read()?;
        let leads = tables.leader.upgrade().filter(|leader| !leader.is_closed.load(SeqCst));
        if leads.is_some_and(|leader| !Arc::ptr_eq(&leader, &self.0)) {
            return Err(Error::retry(format!("another coordinator leads with metadata database {}", self.0.url)));
        }
        tables.leader = Arc::downgrade(&self.0);
        tables.epoch += 1;
        self.0.epoch.store(tables.epoch, SeqCst);
        Ok(tables.epoch)
    }

    pub(crate) fn mounts(&self) -> Result<Vec<Mount>> {
        Ok(self.read()?.mounts.values().cloned().collect())
    }

    pub(crate) fn add_mount(&self, name: &MountName, url: &str, options: &MountOptions) -> Result<Mount> {
        if url.contains('\0') {
            return Err(Error::invalid(format!("mount {name}: its URL holds a NUL byte")));
        }
        let mut tables = self.write()?;
        if tables.mounts.values().any(|mount| mount.name == *name) {
            return Err(Error::conflict(format!("mount {name} exists already: choose another name, or remove that one first")));
        }
        tables.last_mount += 1;
        let id = MountId(tables.last_mount);
        let mount = Mount { id, name: name.clone(), url: url.to_owned(), options: options.clone() };
        tables.mounts.insert(id, mount.clone());
        Ok(mount)
    }

    pub(crate) fn set_mount_options(&self, name: &MountName, options: &MountOptions) -> Result<Mount> {
        let mut tables = self.write()?;
        let mount = tables.mounts.values_mut().find(|mount| mount.name == *name).ok_or_else(|| no_mount(name))?;
        mount.options = options.clone();
        Ok(mount.clone())
    }

    pub(crate) fn remove_mount(&self, name: &MountName) -> Result<Mount> {
        let mut tables = self.write()?;
        let id = tables.mounts.values().find(|mount| mount.name == *name).map(|mount| mount.id).ok_or_else(|| no_mount(name))?;
        tables.pins.retain(|(mount, _)| *mount != id);
        tables.mounts.remove(&id).ok_or_else(|| no_mount(name))
    }

    pub(crate) fn pins(&self) -> Result<Vec<(MountId, Key)>> {
        Ok(self.read()?.pins.iter().cloned().collect())
    }

    pub(crate) fn add_pin(&self, mount: MountId, prefix: &Key) -> Result<()> {
        let mut tables = self.write()?;
        if !tables.mounts.contains_key(&mount) {
            return Err(Error::not_found(format!("the mount of pin {prefix:?} was removed")));
        }
        tables.pins.insert((mount, prefix.clone()));
        Ok(())
    }

    pub(crate) fn remove_pin(&self, mount: MountId, prefix: &Key) -> Result<()> {
        match self.write()?.pins.remove(&(mount, prefix.clone())) {
            true => Ok(()),
            false => Err(Error::not_found(format!("there is no pin of exactly {prefix:?}"))),
        }
    }

    pub(crate) fn tables(&self) -> Result<Vec<StoredTable>> {
        let table = |(name, statement): (&String, &String)| StoredTable { name: name.clone(), statement: statement.clone() };
        Ok(self.read()?.tables.iter().map(table).collect())
    }

    pub(crate) fn put_table(&self, name: &str, statement: &str, replace: bool) -> Result<()> {
        if name.contains('\0') || statement.contains('\0') {
            return Err(Error::invalid(format!("table {name:?}: its definition holds a NUL byte")));
        }
        let mut tables = self.write()?;
        if !replace && tables.tables.contains_key(name) {
            return Err(Error::conflict(format!("table {name} exists already: drop it first, or CREATE OR REPLACE it")));
        }
        tables.tables.insert(name.to_owned(), statement.to_owned());
        Ok(())
    }

    pub(crate) fn remove_table(&self, name: &str) -> Result<()> {
        let removed = self.write()?.tables.remove(name);
        removed.map(|_| ()).ok_or_else(|| Error::not_found(format!("there is no external table {name}")))
    }

    pub(crate) fn tokens(&self) -> Result<Vec<Verifier>> {
        Ok(self.read()?.tokens.values().cloned().collect())
    }

    pub(crate) fn add_token(&self, token: &Verifier) -> Result<()> {
        let mut tables = self.write()?;
        if tables.tokens.contains_key(&token.id) {
            return Err(Error::conflict(format!("token {} exists already", token.id)));
        }
        tables.tokens.insert(token.id.clone(), token.clone());
        Ok(())
    }

    pub(crate) fn remove_tokens(&self, ids: &[String]) -> Result<()> {
        let mut tables = self.write()?;
        ids.iter().for_each(|id| drop(tables.tokens.remove(id)));
        Ok(())
    }

    pub(crate) fn put_checkpoint(&self, kind: &str, window: u64, bytes: &[u8]) -> Result<()> {
        if bytes.len() > CHECKPOINT_BYTES_MAX || i64::try_from(window).is_err() {
            return Err(Error::invalid(format!("checkpoint {kind} of window {window} and {} bytes is too large", bytes.len())));
        }
        self.write()?.checkpoints.insert(kind.to_owned(), (window, bytes.to_vec()));
        Ok(())
    }

    pub(crate) fn checkpoint(&self, kind: &str) -> Result<Option<(u64, Vec<u8>)>> {
        Ok(self.read()?.checkpoints.get(kind).cloned())
    }

    fn read(&self) -> Result<MutexGuard<'_, Tables>> {
        // What a process still asks for that has ended is not done either.
        if self.0.is_closed.load(SeqCst) || simulated::has_ended() {
            return Err(Error::closed(format!("metadata database {} was closed", self.0.url)));
        }
        let tables = self.0.tables.lock();
        match tables.is_away {
            true => Err(Error::retry(format!("metadata database {} can't be reached", self.0.url))),
            false => Ok(tables),
        }
    }

    /// Only while no later epoch was acquired.
    fn write(&self) -> Result<MutexGuard<'_, Tables>> {
        let tables = self.read()?;
        match self.0.epoch.load(SeqCst) {
            epoch if epoch != 0 && epoch != tables.epoch => Err(Error::closed(format!(
                "another coordinator has taken over metadata database {}: epoch {epoch} is past",
                self.0.url
            ))),
            _ => Ok(tables),
        }
    }
}

fn no_mount(name: &MountName) -> Error {
    Error::not_found(format!("there is no mount {name}"))
}
