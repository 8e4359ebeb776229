//! New parts of a shard, on their way into its folder.

use std::collections::BTreeSet;
use std::path::Path;

use forebay_shard::{BuiltShard, ColdFile, LayerId};
use forebay_types::{Result, ResultExt};

use super::manifest::{ColdEntry, FileEntry, Manifest, ShardFiles};
use super::names::Names;
use super::publish::write_file;

/// Writes parts of a shard under new names, durably. They belong to the shard once a manifest names them.
pub(crate) struct PartWriter<'f> {
    folder: &'f Path,
    names: &'f Names,
    written: Vec<String>,
}

impl<'f> PartWriter<'f> {
    pub(crate) fn new(folder: &'f Path, names: &'f Names) -> Self {
        Self { folder, names, written: Vec::new() }
    }

    /// Writes a shard that was built: its base and its layers.
    pub(crate) fn shard(&mut self, built: &BuiltShard) -> Result<ShardFiles> {
        let base = self.write(self.names.next("base"), &built.base)?;
        let layers = built.layers.iter().map(|(id, bytes)| self.layer(*id, bytes)).collect::<Result<_>>()?;
        Ok(ShardFiles { base, layers })
    }

    pub(crate) fn layer(&mut self, id: LayerId, bytes: &[u8]) -> Result<FileEntry> {
        self.write(format!("{}-{id}", self.names.next("layer")), bytes)
    }

    pub(crate) fn cold(&mut self, cold: &ColdFile) -> Result<ColdEntry> {
        let entry = self.write(self.names.next("cold"), &cold.bytes)?;
        Ok(ColdEntry { entry, tail_bytes: cold.tail_bytes })
    }

    /// Removes what was written and is not to be named.
    pub(crate) fn take_back(&mut self, file: &str) -> Result<()> {
        self.written.retain(|written| written != file);
        let path = self.folder.join(file);
        std::fs::remove_file(&path).context(|| path.display())
    }

    fn write(&mut self, file: String, bytes: &[u8]) -> Result<FileEntry> {
        write_file(&self.folder.join(&file), bytes)?;
        self.written.push(file.clone());
        Ok(FileEntry { file, bytes: bytes.len() as u64 })
    }

    /// Removes what was written for a change that failed, if the manifest on disk doesn't name it: that may have been replaced
    /// before the failure. So what is tried again and again doesn't fill the disk.
    pub(crate) fn remove_unnamed(self) {
        let Ok(manifest) = Manifest::read(self.folder) else { return };
        let cold = manifest.cold.iter().map(|cold| &cold.entry);
        let named: BTreeSet<&str> = manifest.files().chain(cold).map(|entry| entry.file.as_str()).collect();
        for file in self.written.iter().filter(|file| !named.contains(file.as_str())) {
            let path = self.folder.join(file);
            if let Err(error) = std::fs::remove_file(&path) {
                // It takes room until the shard is opened to be changed the next time.
                tracing::warn!(path = %path.display(), %error, "a part that is of no use could not be removed");
            }
        }
    }
}
