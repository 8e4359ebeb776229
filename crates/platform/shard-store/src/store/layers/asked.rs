//! What a shard is asked, from one process to the next: it steers which layers build, tune and merge make.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use forebay_shard::QueryCounters;
use forebay_types::Result;
use parking_lot::Mutex;

use crate::columns::Columns;
use crate::folder::{AskedShares, CountersFile, Manifest, read_counters};
use crate::store::{Store, View};

/// One question in 16 is counted: fewer than this many say nothing about the next ones, and layers for all kinds are better.
const QUESTIONS_MIN: f64 = 500.0;
/// Another process has the file for a moment only.
const ATTEMPTS: usize = 20;
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(5);

/// What was asked of a shard of records. When the last handle of an opened shard goes, what it was asked is kept in the folder.
pub(in crate::store) struct Asked {
    path: PathBuf,
    columns: Columns,
    view: Arc<ArcSwap<View>>,
    /// What was asked of shards that a merge has replaced, and is not in the file yet.
    replaced: Mutex<QueryCounters>,
}

impl Asked {
    pub(in crate::store) fn new(path: &Path, columns: Columns, view: Arc<ArcSwap<View>>) -> Self {
        Self { path: path.to_path_buf(), columns, view, replaced: Mutex::default() }
    }

    /// What the folder's shard was asked by all processes so far, and keeps what this one was asked since the last time.
    pub(in crate::store) fn keep(&self) -> QueryCounters {
        let new = self.take_new();
        if let Some(kept) = self.add_to_file(&new) {
            return kept;
        }
        let mut replaced = self.replaced.lock();
        *replaced = replaced.plus(&new);
        read_counters(&self.path).unwrap_or_default().then(&new)
    }

    /// Takes over what shards were asked that answer no more questions.
    pub(in crate::store) fn replaced(&self, view: &View) {
        let new = new_of(view);
        let mut replaced = self.replaced.lock();
        *replaced = replaced.plus(&new);
    }

    fn take_new(&self) -> QueryCounters {
        std::mem::take(&mut *self.replaced.lock()).plus(&new_of(&self.view.load()))
    }

    /// The sum, if there is something new and the file can be written to.
    fn add_to_file(&self, new: &QueryCounters) -> Option<QueryCounters> {
        if new.questions() == 0.0 {
            return None;
        }
        self.try_add_to_file(new).unwrap_or_else(|error| {
            // As in a folder that may only be read.
            tracing::debug!(path = %self.path.display(), %error, "what was asked of a shard could not be kept");
            None
        })
    }

    /// Nothing where another process doesn't let go of the file.
    fn try_add_to_file(&self, new: &QueryCounters) -> Result<Option<QueryCounters>> {
        for _ in 0..ATTEMPTS {
            if let Some(mut file) = CountersFile::take(&self.path)? {
                let kept = file.read()?.unwrap_or_default().then(new);
                file.write(&kept)?;
                return Ok(Some(kept));
            }
            std::thread::sleep(ATTEMPT_INTERVAL);
        }
        Ok(None)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let new = self.take_new();
        // Another shard may be there by now.
        if Manifest::read(&self.path).is_ok_and(|manifest| manifest.columns.as_ref() == Some(&self.columns)) {
            self.add_to_file(&new);
        }
    }
}

/// What the shards of a view were asked since the last time that somebody wanted to know.
fn new_of(view: &View) -> QueryCounters {
    view.shards.iter().fold(QueryCounters::default(), |all, mapped| all.plus(&mapped.newly_asked()))
}

/// What decides about layers: the counters, once they say enough.
pub(in crate::store) fn steering(counters: QueryCounters) -> QueryCounters {
    if counters.questions() < QUESTIONS_MIN { QueryCounters::default() } else { counters }
}

/// What was asked of the shard that one of the same columns is to replace.
pub(in crate::store) fn asked_before(path: &Path, columns: &Columns) -> Option<QueryCounters> {
    Manifest::read(path).ok().filter(|manifest| manifest.columns.as_ref() == Some(columns))?;
    read_counters(path)
}

impl Store {
    /// What the shard was asked by all processes so far, as far as that says enough to choose layers by; keeps what this one was asked.
    pub fn what_was_asked(&self) -> Option<AskedShares> {
        AskedShares::of(&steering(self.asked.as_ref()?.keep()))
    }

    /// Has the shard in a folder, of which nothing is known here yet, begin with what the same records were asked elsewhere.
    pub fn begin_asked(folder: &Path, asked: &AskedShares) -> Result<()> {
        if read_counters(folder).is_some() { Ok(()) } else { begin_with(folder, &asked.counters()) }
    }

    /// Has the shard in another folder, which says the same, go on to be asked what this one was: its layers are chosen by that.
    pub fn hand_asked_to(&self, other: &Path) -> Result<()> {
        self.asked.as_ref().map_or(Ok(()), |asked| begin_with(other, &asked.keep()))
    }
}

/// Lets a folder begin with counters.
pub(in crate::store) fn begin_with(folder: &Path, counters: &QueryCounters) -> Result<()> {
    if *counters == QueryCounters::default() {
        return Ok(());
    }
    CountersFile::take(folder)?.map_or(Ok(()), |mut file| file.write(counters))
}
