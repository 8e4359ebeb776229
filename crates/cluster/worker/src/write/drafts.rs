//! Drafts: objects that processes of the cluster write for who opened them, and that nobody sees until he commits them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use forebay_types::{Error, Key, MountId, OperationId, Result, SEGMENT_BYTES};
use futures::stream::{self, StreamExt};
use parking_lot::Mutex;
use tokio::sync::RwLock;

use super::Writes;
use super::noted::NotedUpload;

/// Operations whose drafts are open at a time.
const OPERATIONS_MAX: usize = 1_024;
/// Those of one connection: nobody takes all places.
const OPERATIONS_A_CONNECTION: usize = 256;
/// Drafts of one operation at a time.
const DRAFTS_MAX: usize = 10_000;
/// Bytes of drafts that are kept for the tiers until they are committed, at most: what is beyond is read from shared storage again.
const KEPT_BYTES_MAX: u64 = 256 << 20;
/// How long the parts of an abandoned upload are tried to be removed.
const ABORT_WITHIN: Duration = Duration::from_secs(30);
/// Uploads that are given up at once where many end together.
const ABORTS_AT_ONCE: usize = 64;

/// An object that is written in parts.
pub(super) struct Draft {
    pub(super) mount: MountId,
    pub(super) key: Key,
    /// Parts are written under the shared lock, the end takes the upload out under the exclusive one.
    pub(super) upload: RwLock<Option<NotedUpload>>,
    kept: Option<Kept>,
}

impl Draft {
    pub(super) fn new(mount: MountId, key: &Key, upload: NotedUpload) -> Self {
        Self { mount, key: key.clone(), upload: RwLock::new(Some(upload)), kept: None }
    }

    /// A part that shared storage has.
    pub(super) fn keep(&self, part: u32, payload: &Bytes) {
        if let Some(kept) = &self.kept {
            kept.add(part, payload);
        }
    }

    /// All bytes of an object of so many parts, if they were kept.
    pub(super) fn take_kept(&self, parts: u32) -> Option<Bytes> {
        self.kept.as_ref()?.take(parts)
    }

    /// Removes what was written of it. What ends it otherwise meanwhile wins.
    pub(super) async fn given_up(&self) {
        // A part that is being written ends with its connection, so the lock is free soon.
        let Some(upload) = self.upload.write().await.take() else { return };
        match forebay_runtime::time::timeout(ABORT_WITHIN, upload.abort()).await {
            Ok(Ok(())) => tracing::info!(key = %self.key, "upload given up"),
            Ok(Err(error)) => tracing::warn!(key = %self.key, %error, "parts of an upload may be left in shared storage"),
            Err(_) => tracing::warn!(key = %self.key, "parts of an upload may be left in shared storage"),
        }
    }
}

/// Gives an upload up in the background.
pub(super) fn give_up(writes: &Writes, draft: Arc<Draft>) {
    writes.background.spawn(async move { draft.given_up().await });
}

/// Gives all of these up.
pub(super) async fn all_given_up(drafts: Vec<Arc<Draft>>) {
    stream::iter(drafts).for_each_concurrent(ABORTS_AT_ONCE, |draft| async move { draft.given_up().await }).await;
}

/// The parts of a draft as they were written.
struct Kept {
    /// None where it is larger than a segment, or there was no room for it.
    parts: Mutex<Option<BTreeMap<u32, Bytes>>>,
    /// Bytes of all drafts of the worker.
    all: Arc<AtomicU64>,
}

impl Kept {
    fn add(&self, part: u32, payload: &Bytes) {
        let mut kept = self.parts.lock();
        let Some(parts) = kept.as_mut() else { return };
        let added = payload.len() as u64;
        let before = parts.insert(part, payload.clone()).map_or(0, |before| before.len() as u64);
        self.all.fetch_sub(before, Relaxed);
        let all = self.all.fetch_add(added, Relaxed) + added;
        if bytes_of(parts) > SEGMENT_BYTES || all > KEPT_BYTES_MAX {
            self.let_go(&mut kept);
        }
    }

    fn take(&self, parts: u32) -> Option<Bytes> {
        let mut kept = self.parts.lock();
        let whole = kept.as_ref().filter(|kept| kept.keys().copied().eq(0..parts)).map(|kept| {
            let mut whole = BytesMut::with_capacity(bytes_of(kept) as usize);
            kept.values().for_each(|part| whole.extend_from_slice(part));
            whole.freeze()
        });
        self.let_go(&mut kept);
        whole
    }

    fn let_go(&self, kept: &mut Option<BTreeMap<u32, Bytes>>) {
        if let Some(parts) = kept.take() {
            let freed = bytes_of(&parts);
            let before = self.all.fetch_sub(freed, Relaxed);
            assert!(before >= freed, "{freed} bytes of a draft are let go of {before} that are kept");
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut kept = std::mem::take(self.parts.get_mut());
        self.let_go(&mut kept);
    }
}

fn bytes_of(parts: &BTreeMap<u32, Bytes>) -> u64 {
    parts.values().map(|part| part.len() as u64).sum()
}

/// The drafts of all operations that have some here.
#[derive(Default)]
pub(super) struct Drafts {
    opened: Mutex<HashMap<OperationId, Opened>>,
    kept_bytes: Arc<AtomicU64>,
}

struct Opened {
    /// The connection that opened them, and that alone commits them.
    by: u64,
    mount: MountId,
    below: Key,
    open: HashMap<u64, Begun>,
}

struct Begun {
    /// The connection that writes it.
    by: u64,
    draft: Arc<Draft>,
}

/// Which connection may do something to a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The one that began it.
    Writer(u64),
    /// The one that opened the operation's.
    Opener(u64),
}

impl Drafts {
    /// Lets drafts of an operation begin, below one place, until a connection commits or ends them.
    pub(super) fn open(&self, operation: OperationId, by: u64, mount: MountId, below: Key) -> Result<()> {
        let mut opened = self.opened.lock();
        match opened.get(&operation) {
            Some(known) if (known.by, known.mount, &known.below) == (by, mount, &below) => return Ok(()),
            Some(_) => return Err(Error::conflict(format!("drafts of operation {:016x} are open already", operation.0))),
            None => {}
        }
        if opened.values().filter(|operation| operation.by == by).count() >= OPERATIONS_A_CONNECTION {
            return Err(Error::retry(format!(
                "a connection has drafts of {OPERATIONS_A_CONNECTION} operations open at a worker at most: end one"
            )));
        }
        if opened.len() >= OPERATIONS_MAX {
            return Err(Error::retry(format!("drafts of {OPERATIONS_MAX} operations are open at this worker: wait for one")));
        }
        opened.insert(operation, Opened { by, mount, below, open: HashMap::new() });
        Ok(())
    }

    /// `NotFound` where no draft of this object may begin.
    pub(super) fn check(&self, operation: OperationId, mount: MountId, key: &Key) -> Result<()> {
        checked(&mut self.opened.lock(), operation, mount, key).map(|_| ())
    }

    /// Notes that one has begun; gives it back where none may any more.
    pub(super) fn begin(&self, operation: OperationId, id: u64, by: u64, draft: Draft) -> Result<(), (Error, Arc<Draft>)> {
        let kept = Kept { parts: Mutex::new(Some(BTreeMap::new())), all: Arc::clone(&self.kept_bytes) };
        let draft = Arc::new(Draft { kept: Some(kept), ..draft });
        let mut opened = self.opened.lock();
        match checked(&mut opened, operation, draft.mount, &draft.key) {
            Ok(opened) => {
                let known = opened.open.insert(id, Begun { by, draft });
                assert!(known.is_none(), "a draft's id is given once");
                Ok(())
            }
            Err(error) => Err((error, draft)),
        }
    }

    /// The draft of an id, for who may do something to it.
    pub(super) fn find(&self, id: u64, by: By) -> Option<Arc<Draft>> {
        let opened = self.opened.lock();
        opened.values().find_map(|operation| {
            let begun = operation.open.get(&id)?;
            let may = match by {
                By::Writer(connection) => begun.by == connection,
                By::Opener(connection) => operation.by == connection,
            };
            may.then(|| Arc::clone(&begun.draft))
        })
    }

    /// It is committed, or given up.
    pub(super) fn remove(&self, id: u64) {
        self.opened.lock().values_mut().for_each(|operation| drop(operation.open.remove(&id)));
    }

    /// Ends what a connection has opened for an operation, if it has: what is left of it.
    pub(super) fn end(&self, operation: OperationId, by: u64) -> Vec<Arc<Draft>> {
        let mut opened = self.opened.lock();
        match opened.get(&operation) {
            Some(known) if known.by == by => opened.remove(&operation).map(left).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// The connection has ended: what is left of all that it has opened.
    pub(super) fn gone(&self, by: u64) -> Vec<Arc<Draft>> {
        let mut opened = self.opened.lock();
        opened.extract_if(|_, operation| operation.by == by).flat_map(|(_, operation)| left(operation)).collect()
    }
}

fn left(opened: Opened) -> Vec<Arc<Draft>> {
    opened.open.into_values().map(|begun| begun.draft).collect()
}

fn checked<'a>(
    opened: &'a mut HashMap<OperationId, Opened>,
    operation: OperationId,
    mount: MountId,
    key: &Key,
) -> Result<&'a mut Opened> {
    let operation = opened
        .get_mut(&operation)
        .filter(|opened| opened.mount == mount && key.as_str().starts_with(opened.below.as_str()))
        .ok_or_else(|| Error::not_found(format!("{key}: no drafts are open here for it: the statement is over")))?;
    match operation.open.len() < DRAFTS_MAX {
        true => Ok(operation),
        false => {
            Err(Error::invalid(format!("{key}: a statement writes {DRAFTS_MAX} files through a worker at most: write fewer")))
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::ErrorKind;

    use super::*;

    const LAKE: MountId = MountId(1);

    fn key(key: &str) -> Key {
        Key::new(key).expect("a key")
    }

    #[test]
    fn drafts_are_of_who_opened_them_and_below_one_place() {
        let (drafts, operation) = (Drafts::default(), OperationId(7));
        let begins = |mount, at: &str| drafts.check(operation, mount, &key(at)).is_ok();
        assert!(!begins(LAKE, "out/a"), "nobody opened any");
        drafts.open(operation, 1, LAKE, key("out/")).unwrap();
        drafts.open(operation, 1, LAKE, key("out/")).unwrap();
        for (by, below) in [(2, "out/"), (1, "other/")] {
            assert_eq!(drafts.open(operation, by, LAKE, key(below)).unwrap_err().kind(), ErrorKind::Conflict);
        }
        assert!(begins(LAKE, "out/a") && !begins(LAKE, "other/a") && !begins(MountId(2), "out/a"));
        assert!(drafts.end(operation, 2).is_empty() && begins(LAKE, "out/a"), "it is not another's to end");
        assert!(drafts.gone(2).is_empty() && begins(LAKE, "out/a"));
        drafts.gone(1);
        assert!(!begins(LAKE, "out/a"), "they end with the connection");
    }

    #[test]
    fn no_connection_has_all_operations() {
        let drafts = Drafts::default();
        let opens = |operation: u64, by: u64| drafts.open(OperationId(operation), by, LAKE, key("out/"));
        for operation in 0..OPERATIONS_A_CONNECTION as u64 {
            opens(operation, 1).unwrap();
        }
        assert_eq!(opens(u64::MAX, 1).unwrap_err().kind(), ErrorKind::Retry);
        opens(0, 1).unwrap();
        opens(u64::MAX, 2).unwrap();
        drafts.end(OperationId(0), 1);
        opens(u64::MAX - 1, 1).unwrap();
        // Those of several connections have an end too.
        let mut others = (OPERATIONS_A_CONNECTION + 1..OPERATIONS_MAX).map(|operation| opens(operation as u64, operation as u64));
        assert!(others.all(|opened| opened.is_ok()));
        assert_eq!(opens(1 << 40, 1 << 40).unwrap_err().kind(), ErrorKind::Retry);
    }

    #[test]
    fn kept_bytes_are_whole_or_none_and_are_let_go() {
        let all = Arc::new(AtomicU64::new(0));
        let kept = || Kept { parts: Mutex::new(Some(BTreeMap::new())), all: Arc::clone(&all) };
        let of = |text: &'static str| Bytes::from_static(text.as_bytes());
        let draft = kept();
        draft.add(1, &of("cd"));
        draft.add(0, &of("xy"));
        draft.add(0, &of("ab"));
        assert_eq!(all.load(Relaxed), 4);
        assert_eq!((draft.take(2), draft.take(2), all.load(Relaxed)), (Some(of("abcd")), None, 0));
        let draft = kept();
        draft.add(1, &of("cd"));
        assert_eq!((draft.take(2), all.load(Relaxed)), (None, 0), "a part is missing");
        let draft = kept();
        draft.add(0, &of("ab"));
        drop(draft);
        assert_eq!(all.load(Relaxed), 0);
        // As if others had taken all there is.
        all.store(KEPT_BYTES_MAX, Relaxed);
        let draft = kept();
        draft.add(0, &of("ab"));
        assert_eq!((draft.take(1), all.load(Relaxed)), (None, KEPT_BYTES_MAX));
    }
}
