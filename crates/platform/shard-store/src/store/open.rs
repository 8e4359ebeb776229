//! Opening a shard to change it, and reading what a manifest names.

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use forebay_shard::Shard;
use forebay_types::{Result, ResultExt};
use parking_lot::{Mutex, RwLock};

use super::background::Background;
use super::layers::Asked;
use super::text::open_text;
use super::{Mapped, Store, UpdateLimits, View, Writer};
use crate::columns::Columns;
use crate::folder::{FolderLock, MANIFEST, Manifest, Names, ShardFiles, map_part};
use crate::log::LocalLog;
use crate::update::{Change, LogStore};

impl Store {
    /// Opens a shard to change it as well: one process at a time.
    pub fn open_to_change(path: &Path) -> Result<Self> {
        Self::open_to_change_with(path, UpdateLimits::default())
    }

    /// The same with limits of one's own for updates.
    pub fn open_to_change_with(path: &Path, limits: UpdateLimits) -> Result<Self> {
        // What is no shard gets no lock file.
        Manifest::read(path)?;
        let lock = FolderLock::take(path)?;
        let manifest = Manifest::read(path)?;
        remove_unnamed(path, &manifest)?;
        let log = LocalLog::open(path, manifest.log_from)?;
        // Parts whose updates are compressed by now.
        log.forget(manifest.log_from)?;
        let (view, _) = read(path, &manifest)?;
        let columns = manifest.columns.clone();
        let (gathered, merging) = (Arc::default(), Arc::default());
        let names = Names::after(manifest.next_file);
        let (manifest, publishing) = (Mutex::new(manifest), RwLock::new(()));
        let (compressing, gathering) = (Mutex::new(()), Mutex::new(()));
        let writer = Writer { log, compressing, manifest, names, gathering, publishing, limits, gathered, merging, _lock: lock };
        let view = Arc::new(ArcSwap::from_pointee(view));
        let asked = asked_of(path, columns.as_ref(), &view);
        let (path, writer) = (path.to_path_buf(), Some(Arc::new(writer)));
        let mut store = Self { background: Vec::new(), path, columns, view, asked, seen: None, writer };
        if !store.is_text() {
            store.start_background()?;
        }
        Ok(store)
    }

    fn start_background(&mut self) -> Result<()> {
        let writer = self.writer()?;
        let (gathered, merging) = (writer.gathered.clone(), writer.merging.clone());
        let gather = |store: &Self| store.gather().map(drop);
        self.background = vec![
            Background::start("shard-gather", gathered, self.handle(), Self::wants_gather, gather)?,
            Background::start("shard-merge", merging, self.handle(), Self::wants_merge, Self::merge)?,
        ];
        Ok(())
    }

    /// The same store for a thread of its own.
    fn handle(&self) -> Self {
        Self {
            background: Vec::new(),
            path: self.path.clone(),
            columns: self.columns.clone(),
            view: self.view.clone(),
            asked: self.asked.clone(),
            seen: None,
            writer: self.writer.clone(),
        }
    }

    /// Ends it: waits for a merge that has begun. What was put is durable already, and is merged another time.
    pub fn close(self) -> Result<()> {
        drop(self);
        Ok(())
    }
}

pub(super) fn asked_of(path: &Path, columns: Option<&Columns>, view: &Arc<ArcSwap<View>>) -> Option<Arc<Asked>> {
    columns.map(|columns| Arc::new(Asked::new(path, columns.clone(), view.clone())))
}

/// All that a manifest names, and the number of the first update that was not there yet.
pub(super) fn read(path: &Path, manifest: &Manifest) -> Result<(View, u64)> {
    let mut view = View::default();
    if manifest.columns.is_none() {
        view.text = manifest.shards.first().map(|files| open_text(path, files)).transpose()?.map(Arc::new);
        return Ok((view, manifest.log_from));
    }
    for files in &manifest.shards {
        view.shards.push(Arc::new(open_shard(path, files)?));
    }
    let next = read_log(path, manifest.log_from, &mut view)?;
    Ok((view, next))
}

/// Adds the updates from a number on to a view. Says the number of the first that was not there yet.
pub(super) fn read_log(path: &Path, from: u64, view: &mut View) -> Result<u64> {
    let mut run = LogStore::default();
    let next = LocalLog::read(path, from, &mut |number, entry| {
        let mut rest = entry;
        while !rest.is_empty() {
            run.apply(number, Change::decode(&mut rest).context(|| path.display())?);
        }
        Ok(())
    })?;
    if !run.is_empty() {
        view.push(run);
    }
    Ok(next)
}

/// Maps a compressed shard's files. Layers are verified, and of the base no more than its head: the rest is when it is used first.
pub(super) fn open_shard(folder: &Path, files: &ShardFiles) -> Result<Mapped> {
    let base = folder.join(&files.base.file).display().to_string();
    let shard = Shard::open_named(&base, map_part(folder, &files.base)?, []).context(|| &base)?;
    for entry in &files.layers {
        shard.add_layer(map_part(folder, entry)?).context(|| folder.join(&entry.file).display().to_string())?;
    }
    Ok(Mapped::new(shard))
}

/// Removes what a process that died, or a change that failed, left behind: files that the manifest doesn't name.
fn remove_unnamed(path: &Path, manifest: &Manifest) -> Result<()> {
    for entry in std::fs::read_dir(path).context(|| path.display())? {
        let entry = entry.context(|| path.display())?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let ours = ["base-", "layer-", "cold-"].iter().any(|prefix| name.starts_with(prefix)) || name == "manifest.tmp";
        let mut named = manifest.files().chain(manifest.cold.iter().map(|cold| &cold.entry));
        if ours && name != MANIFEST && !named.any(|file| file.file == name) {
            std::fs::remove_file(entry.path()).context(|| entry.path().display().to_string())?;
            tracing::info!(path = %entry.path().display(), "a file that an unfinished change left was removed");
        }
    }
    Ok(())
}
