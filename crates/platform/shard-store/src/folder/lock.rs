use std::fs::{File, OpenOptions};
use std::path::Path;

use forebay_types::{Error, Result, ResultExt};
use rustix::fs::{FlockOperation, flock};

/// The right to change a shard's folder: one process at a time; it ends with the process.
pub(crate) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes the right, or says who else may have it.
    pub(crate) fn take(folder: &Path) -> Result<Self> {
        let path = folder.join("lock");
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path).context(|| path.display())?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _file: file }),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let message = format!("{}: another process is changing this shard; wait for it and try again", folder.display());
                Err(Error::retry(message))
            }
            Err(error) => Err(Error::from(std::io::Error::from(error)).context(path.display())),
        }
    }
}
