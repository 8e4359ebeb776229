//! Readers: opening a shard beside whoever changes it, and following the changes.

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use forebay_shard::{LayerId, VerifiedLayer};
use forebay_types::{Error, ErrorKind, Result};
use parking_lot::Mutex;

use super::open::{asked_of, open_shard, read, read_log};
use super::{Mapped, Store, View};
use crate::folder::{FileEntry, Held, Manifest, ShardFiles, Stamp, map_part};

/// How often a reader looks again when files go away while it opens them.
const ATTEMPTS: usize = 20;

/// What a reader's view was made of.
pub(super) struct Seen {
    folder: Held,
    stamp: Stamp,
    manifest: Manifest,
    /// The number of the first update that it has not read.
    next: u64,
}

impl Seen {
    /// Whether a cold file belongs to the shard.
    pub(super) fn keeps_cold(&self) -> bool {
        self.manifest.cold.is_some()
    }
}

/// A compressed shard that stays, with the layers that are new and those that are gone.
struct Stays {
    mapped: Arc<Mapped>,
    gone: Vec<LayerId>,
    new: Vec<VerifiedLayer>,
}

impl Store {
    /// Opens a shard to read it, beside whoever changes it; sees it as it is now, and as it is later after
    /// [`refresh`](Self::refresh).
    pub fn open(path: &Path) -> Result<Self> {
        when_it_holds_still(path, |stamp, manifest| {
            let folder = Held::open(path)?;
            let (view, next) = read(path, &manifest)?;
            folder.check_at(path)?;
            let view = Arc::new(ArcSwap::from_pointee(view));
            let columns = manifest.columns.clone();
            let asked = asked_of(path, columns.as_ref(), &view);
            let seen = Some(Mutex::new(Seen { folder, stamp, manifest, next }));
            Ok(Self { background: Vec::new(), path: path.to_path_buf(), columns, view, asked, seen, writer: None })
        })
    }

    /// Sees what other processes published since it was opened, or since the last time: updates, merges, layers, a shard that
    /// was built anew. Says whether there was any of it. Costs a look at the folder's files when there is nothing; questions go
    /// on meanwhile. After an error it goes on to answer from what it saw last. A store that was opened to be changed sees its
    /// own changes anyway, and there are no others.
    pub fn refresh(&self) -> Result<bool> {
        let Some(seen) = &self.seen else { return Ok(false) };
        let mut seen = seen.lock();
        if Stamp::of(&self.path) == seen.stamp && seen.folder.is_at(&self.path)? {
            return Ok(false);
        }
        *seen = when_it_holds_still(&self.path, |stamp, manifest| self.see(&seen, stamp, manifest))?;
        Ok(true)
    }

    fn see(&self, seen: &Seen, stamp: Stamp, manifest: Manifest) -> Result<Seen> {
        if manifest.columns != self.columns {
            let message = format!("{}: a shard of other columns is there by now: open it again", self.path.display());
            return Err(Error::conflict(message));
        }
        let folder = Held::open(&self.path)?;
        let before = self.view.load_full();
        // Names are never used twice in one folder, and say nothing in another one.
        let next = if self.is_text() || !seen.folder.is_at(&self.path)? {
            let (view, next) = read(&self.path, &manifest)?;
            folder.check_at(&self.path)?;
            self.show(&before, view);
            next
        } else {
            self.see_changes(seen, &manifest, &folder, &before)?
        };
        Ok(Seen { folder, stamp, manifest, next })
    }

    /// Reads what is new in the folder, and keeps what has stayed.
    fn see_changes(&self, seen: &Seen, manifest: &Manifest, folder: &Held, before: &View) -> Result<u64> {
        let (mut shards, mut stay) = (Vec::new(), Vec::new());
        for files in &manifest.shards {
            let place = seen.manifest.shards.iter().position(|known| known.base == files.base);
            if let Some(place) = place {
                let stays = self.stays(before.shards[place].clone(), &seen.manifest.shards[place], files)?;
                shards.push(stays.mapped.clone());
                stay.push(stays);
            } else {
                shards.push(Arc::new(open_shard(&self.path, files)?));
            }
        }
        let mut view = View { shards, ..View::default() };
        // The updates that were read are those behind the same shards.
        let next = if manifest.log_from == seen.manifest.log_from {
            view.runs = before.runs.clone();
            read_log(&self.path, seen.next, &mut view)?
        } else {
            read_log(&self.path, manifest.log_from, &mut view)?
        };
        folder.check_at(&self.path)?;
        stay.iter().for_each(|stays| stays.mapped.shard.replace_layers(&stays.gone, &stays.new));
        self.show(before, view);
        Ok(next)
    }

    fn stays(&self, mapped: Arc<Mapped>, before: &ShardFiles, now: &ShardFiles) -> Result<Stays> {
        let without = |some: &ShardFiles, others: &ShardFiles| -> Vec<FileEntry> {
            some.layers.iter().filter(|entry| !others.layers.contains(entry)).cloned().collect()
        };
        let gone = without(before, now).iter().filter_map(FileEntry::layer).collect();
        let verify = |entry: &FileEntry| mapped.shard.verify_layer(map_part(&self.path, entry)?);
        let new = without(now, before).iter().map(verify).collect::<Result<_>>()?;
        Ok(Stays { mapped, gone, new })
    }

    /// Lets questions that begin from here on have a view.
    fn show(&self, before: &View, view: View) {
        let stays = |mapped: &&Arc<Mapped>| view.shards.iter().any(|other| Arc::ptr_eq(other, mapped));
        let shards = before.shards.iter().filter(|mapped| !stays(mapped)).cloned().collect();
        let gone = View { shards, ..View::default() };
        self.view.store(Arc::new(view));
        self.asked.iter().for_each(|asked| asked.replaced(&gone));
    }
}

/// Reads what a manifest names; begins again when the shard changes meanwhile, so that files are gone that it names.
fn when_it_holds_still<T>(path: &Path, mut call: impl FnMut(Stamp, Manifest) -> Result<T>) -> Result<T> {
    let mut attempt = 1;
    loop {
        // Before all that is read, so that what comes later makes another one.
        let stamp = Stamp::of(path);
        let manifest = Manifest::read(path)?;
        match call(stamp, manifest.clone()) {
            Err(error) if attempt < ATTEMPTS && has_changed(path, &manifest, &error) => {
                tracing::debug!(path = %path.display(), %error, attempt, "the shard changed while it was opened");
            }
            outcome => return outcome,
        }
        attempt += 1;
    }
}

fn has_changed(path: &Path, manifest: &Manifest, error: &Error) -> bool {
    error.kind() == ErrorKind::Retry || Manifest::read(path).is_ok_and(|now| now != *manifest)
}
