//! New shards: built under another name, in several files where the input is large, and put in place when all is there.

use std::path::{Path, PathBuf};

use forebay_shard::{Builder, ColdFile, Key, KeySample, QueryCounters, Record, Value};
use forebay_types::{Error, Result, ResultExt};

use super::Store;
use super::layers::{asked_before, begin_with, steering};
use crate::columns::Columns;
use crate::folder::{ColdEntry, Manifest, Names, PartWriter, ShardFiles, sync_folder};

/// A compressed shard begins another one from here on: building takes about ten times the memory.
const INPUT_BYTES: u64 = 512 << 20;

/// A shard on its way: records go into a folder of another name, which gets its own when all is there.
pub struct Building {
    path: PathBuf,
    temporary: Temporary,
    parts: Parts,
    names: Names,
    manifest: Manifest,
}

/// A folder that goes away unless it is put in place.
pub(super) struct Temporary {
    pub(super) path: PathBuf,
    placed: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.placed {
            // What was half built is of no use; what can't be removed now is no worse than before.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Records on their way into compressed shards of a folder.
pub(super) struct Parts {
    columns: Columns,
    size: f64,
    counters: QueryCounters,
    builder: Builder,
    pub(super) files: Vec<ShardFiles>,
    /// A cold file is to be made too, of the one shard that there is; where there are several, none is.
    keeps_cold: bool,
    pub(super) cold: Option<ColdEntry>,
}

impl Store {
    /// Whether a shard can be made at a path: nothing is there, or a shard that `replace` allows to be replaced.
    pub fn free_for(path: &Path, replace: bool) -> Result<()> {
        match path.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::from(error).context(path.display())),
            Ok(_) if replace => Manifest::read(path).map(drop).or_else(|error| {
                // A damaged shard may be replaced; what is none is not ours to remove.
                if error.kind() == forebay_types::ErrorKind::Corrupt { Ok(()) } else { Err(error) }
            }),
            Ok(_) => Err(Error::invalid(format!("{} is there already: --force replaces a shard", path.display()))),
        }
    }

    /// Begins a shard at a path: a folder that holds `size` times the input's bytes, or as near below as layers allow.
    pub fn build(path: &Path, columns: Columns, size: f64) -> Result<Building> {
        let temporary = Temporary::create(path)?;
        // A shard that takes the place of another one goes on to be asked what that one was.
        let asked = asked_before(path, &columns).unwrap_or_default();
        begin_with(&temporary.path, &asked)?;
        let manifest = Manifest { columns: Some(columns.clone()), size, log_from: 1, ..Manifest::default() };
        let parts = Parts::new(columns, size, steering(asked), false)?;
        Ok(Building { path: path.to_path_buf(), temporary, parts, names: Names::after(0), manifest })
    }

    /// Has a sample take the keys of its files, with the bytes of their records.
    pub fn sample(&self, sample: &mut KeySample) -> Result<()> {
        let (view, attributes) = (self.view.load_full(), self.records()?.attributes().count());
        for mapped in &view.shards {
            mapped.shard.scan(None, |key, record| {
                let bytes = values(record, attributes).into_iter().flatten().map(<[u8]>::len).sum::<usize>();
                sample.push(&key, (key.len() + bytes) as u64);
                Ok(true)
            })?;
        }
        Ok(())
    }
}

impl Building {
    /// Has a cold file made as well, which takes about half of the input: as part of a dataset the shard is answered from it where
    /// no worker has it.
    pub fn with_cold(mut self) -> Self {
        self.parts.keeps_cold = true;
        self
    }

    /// Adds a record; of two with one key the later stays.
    pub fn push(&mut self, key: Key, values: Vec<Value>) -> Result<()> {
        self.parts.push(&key, &values, &mut PartWriter::new(&self.temporary.path, &self.names))
    }

    /// Adds the records of another shard whose keys `belong` here; an error of that ends it. `Invalid` where it has other
    /// columns, or updates that are not merged.
    pub fn push_from(&mut self, store: &Store, belong: impl Fn(&Key) -> Result<bool>) -> Result<()> {
        let Self { temporary, parts, names, .. } = self;
        let (path, view) = (store.path.display(), store.view.load_full());
        if store.records()? != &parts.columns {
            return Err(Error::invalid(format!("{path} has other columns than the shard that its records are to go into")));
        }
        if view.pending().0 > 0 {
            return Err(Error::invalid(format!("{path} has updates that are not merged: `forebay shard merge` it")));
        }
        let attributes = parts.columns.attributes().count();
        let mut writer = PartWriter::new(&temporary.path, names);
        for (place, mapped) in view.shards.iter().enumerate() {
            mapped.shard.scan(None, |key, record| {
                if belong(&key)? && !view.suffixes_hide(place, &key)? {
                    parts.push_encoded(&key, &values(record, attributes), &mut writer)?;
                }
                Ok(true)
            })?;
        }
        Ok(())
    }

    /// Compresses what was added, and puts the shard in place of whatever shard is there.
    pub fn finish(mut self) -> Result<()> {
        let Self { path, temporary, parts, names, manifest } = &mut self;
        parts.finish_shard(&mut PartWriter::new(&temporary.path, names))?;
        manifest.next_file = names.last();
        manifest.shards = std::mem::take(&mut parts.files);
        manifest.cold = parts.cold.take();
        manifest.write(&temporary.path)?;
        temporary.place(path)
    }
}

/// The values of a record as a builder takes them.
pub(super) fn values(record: &Record, attributes: usize) -> Vec<Option<&[u8]>> {
    (0..attributes).map(|index| record.bytes(index)).collect()
}

impl Temporary {
    pub(super) fn create(path: &Path) -> Result<Self> {
        let name = path.file_name().ok_or_else(|| Error::invalid(format!("{} is no name for a shard", path.display())))?;
        let mut name = name.to_os_string();
        name.push(format!(".building-{}", std::process::id()));
        let folder = path.with_file_name(name);
        std::fs::create_dir(&folder).context(|| folder.display().to_string())?;
        Ok(Self { path: folder, placed: false })
    }

    pub(super) fn place(&mut self, path: &Path) -> Result<()> {
        let mut old = self.path.clone().into_os_string();
        old.push("-old");
        let old = PathBuf::from(old);
        let replaces = path.symlink_metadata().is_ok();
        if replaces {
            std::fs::rename(path, &old).context(|| path.display())?;
        }
        std::fs::rename(&self.path, path).context(|| path.display())?;
        self.placed = true;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        sync_folder(parent)?;
        if replaces { std::fs::remove_dir_all(&old).context(|| old.display().to_string()) } else { Ok(()) }
    }
}

impl Parts {
    /// With the layers that suit what was asked before.
    pub(super) fn new(columns: Columns, size: f64, counters: QueryCounters, keeps_cold: bool) -> Result<Self> {
        let builder = Builder::new(columns.schema())?;
        Ok(Self { columns, size, counters, builder, files: Vec::new(), keeps_cold, cold: None })
    }

    pub(super) fn push(&mut self, key: &Key, values: &[Value], writer: &mut PartWriter<'_>) -> Result<()> {
        if self.builder.input_bytes() > INPUT_BYTES {
            self.finish_shard(writer)?;
        }
        self.builder.push(key, values).context(|| format!("record {key}"))
    }

    pub(super) fn push_encoded(&mut self, key: &Key, values: &[Option<&[u8]>], writer: &mut PartWriter<'_>) -> Result<()> {
        if self.builder.input_bytes() > INPUT_BYTES {
            self.finish_shard(writer)?;
        }
        self.builder.push_encoded(key, values).context(|| format!("record {key}"))
    }

    /// Compresses the records so far into files.
    pub(super) fn finish_shard(&mut self, writer: &mut PartWriter<'_>) -> Result<()> {
        if self.builder.is_empty() && !self.files.is_empty() {
            return Ok(());
        }
        let mut builder = std::mem::replace(&mut self.builder, Builder::new(self.columns.schema())?);
        if let Some(one) = self.cold.take() {
            writer.take_back(&one.entry.file)?;
        }
        if self.keeps_cold && self.files.is_empty() {
            self.cold = ColdFile::of(&mut builder)?.map(|cold| writer.cold(&cold)).transpose()?;
        }
        let built = builder.finish_for(self.size, &self.counters)?;
        self.files.push(writer.shard(&built)?);
        Ok(())
    }
}
