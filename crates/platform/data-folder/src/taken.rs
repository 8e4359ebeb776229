//! The data folders of this process.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use forebay_types::{Result, ResultExt};

/// By the paths that they really have.
static TAKEN: LazyLock<Mutex<Vec<PathBuf>>> = LazyLock::new(Mutex::default);

/// A folder that is known as this process's, as long as this lives.
#[derive(Debug)]
pub(crate) struct Taken(PathBuf);

impl Taken {
    pub(crate) fn new(folder: &Path) -> Result<Self> {
        let real = fs::canonicalize(folder).context(|| format!("data folder {} can't be found", folder.display()))?;
        all_taken().push(real.clone());
        Ok(Self(real))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut all = all_taken();
        if let Some(at) = all.iter().position(|folder| *folder == self.0) {
            all.swap_remove(at);
        }
    }
}

pub(crate) fn all_taken() -> MutexGuard<'static, Vec<PathBuf>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}
