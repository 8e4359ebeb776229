//! Who may change a shard's folder: one process at a time, and no lock outlives it.

use std::fs::OpenOptions;
use std::path::Path;

use forebay_data_folder::FileLock;
use forebay_types::{Error, Result, ResultExt};

/// The right to change a shard's folder: one process at a time; it ends with the process.
pub(crate) struct FolderLock {
    _lock: FileLock,
}

impl FolderLock {
    /// Takes the right, or says who else may have it.
    pub(crate) fn take(folder: &Path) -> Result<Self> {
        let path = folder.join("lock");
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path).context(|| path.display())?;
        match FileLock::take(file).context(|| path.display())? {
            Ok(lock) => Ok(Self { _lock: lock }),
            Err(_) => {
                let message = format!("{}: another process is changing this shard; wait for it and try again", folder.display());
                Err(Error::retry(message))
            }
        }
    }
}
