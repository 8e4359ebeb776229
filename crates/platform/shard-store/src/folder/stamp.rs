//! Whether a shard's folder may have changed, without reading what it holds.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use forebay_types::{Error, Result, ResultExt};

use super::MANIFEST;

/// What the file system says of a folder: each change of the manifest, and each entry of the log, makes it another one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stamp {
    manifest: Option<(u64, i64, i64, u64)>,
    /// Parts of the log, with their lengths.
    log: BTreeMap<OsString, u64>,
}

impl Stamp {
    /// The present one. What isn't there is left out: whoever reads it next finds out.
    pub(crate) fn of(folder: &Path) -> Self {
        let known = |metadata: Metadata| (metadata.ino(), metadata.mtime(), metadata.mtime_nsec(), metadata.len());
        let manifest = std::fs::metadata(folder.join(MANIFEST)).ok().map(known);
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let parts = files.filter(|file| file.file_name().as_encoded_bytes().starts_with(b"log-"));
        let log = parts.filter_map(|file| Some((file.file_name(), file.metadata().ok()?.len())));
        Self { manifest, log: log.collect() }
    }
}

/// A folder that was found at a path. While this is held, no other folder has its number, so that one of the same name that
/// took its place is told from it.
#[derive(Debug)]
pub(crate) struct Held {
    folder: File,
}

impl Held {
    /// The folder that is there now.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Ok(Self { folder: File::open(path).context(|| path.display())? })
    }

    /// Whether it is the one at a path.
    pub(crate) fn is_at(&self, path: &Path) -> Result<bool> {
        let (held, there) = (self.folder.metadata()?, std::fs::metadata(path).context(|| path.display())?);
        Ok((held.dev(), held.ino()) == (there.dev(), there.ino()))
    }

    /// An error, to try again, if another one is at the path by now.
    pub(crate) fn check_at(&self, path: &Path) -> Result<()> {
        if self.is_at(path)? {
            return Ok(());
        }
        Err(Error::retry(format!("{}: the shard was replaced while it was opened; try again", path.display())))
    }
}
