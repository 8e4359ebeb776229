//! Forebay's own data is no shared storage: whoever may read a mount would read the secrets in it.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use forebay_data_folder::{data_folder_at, is_data_folder};
use forebay_types::{Error, Result};
use parking_lot::Mutex;
use rustix::fs::fstat;

use super::Inner;

/// For so long a folder that was seen to be no data folder is none, and so many of them are remembered.
const BELIEVED: Duration = Duration::from_secs(10);
const REMEMBERED_MAX: usize = 4096;

/// What was seen to be apart from Forebay's own data.
#[derive(Default)]
pub(super) struct Apart {
    /// The mount's folder, as the file system knows it.
    folder: Mutex<Option<(u64, u64)>>,
    /// Folders below it by their real paths, and when.
    below: Mutex<HashMap<PathBuf, Instant>>,
}

impl Apart {
    fn is_data_folder(&self, folder: &Path) -> bool {
        let now = forebay_runtime::now();
        let is_believed = |seen: &Instant| now.saturating_duration_since(*seen) < BELIEVED;
        if self.below.lock().get(folder).is_some_and(is_believed) {
            return false;
        }
        // Asks the file system, which may be a server's: nobody waits for the lock meanwhile.
        if is_data_folder(folder) {
            return true;
        }
        let mut below = self.below.lock();
        if below.len() >= REMEMBERED_MAX {
            below.clear();
        }
        below.insert(folder.to_path_buf(), now);
        false
    }
}

impl Inner {
    /// The mount's folder neither is a data folder nor lies in one, nor does one of this process lie in it. Looked at once for each folder that
    /// has been at the mount's path.
    pub(super) fn check_apart(&self, root: &OwnedFd) -> Result<()> {
        let stat = fstat(root).map_err(|errno| self.failed("", errno))?;
        let folder = (stat.st_dev, stat.st_ino);
        if *self.apart.folder.lock() == Some(folder) {
            return Ok(());
        }
        if let Some(own) = data_folder_at(&self.folder) {
            return Err(Error::invalid(format!(
                "mount {}: {} and the data folder {} of a forebay are not apart, and its secrets would be read by whoever may read the \
                 mount: mount another folder, or start that one with another --data-dir",
                self.name,
                self.folder.display(),
                own.display()
            )));
        }
        *self.apart.folder.lock() = Some(folder);
        Ok(())
    }

    /// What is open below the mount lies in no data folder there, whoever has that. With the key that it was opened by, and whether it is a
    /// folder.
    pub(super) fn check_outside(&self, root: &OwnedFd, open: impl AsFd, (key, is_folder): (&str, bool)) -> Result<()> {
        let (root, place) = match (real_path(root), real_path(open)) {
            (Some(root), Some(place)) => (root, place),
            // The system does not say, and links may lead elsewhere.
            _ => (self.folder.clone(), self.folder.join(key)),
        };
        for folder in place.ancestors().skip(usize::from(!is_folder)) {
            if self.apart.is_data_folder(folder) {
                return Err(Error::denied(format!(
                    "{}: it lies in the data folder {} of a forebay, and is not shown: mount another folder, or start that one with another \
                     --data-dir, or other disk-folders",
                    self.path(key),
                    folder.display()
                )));
            }
            if folder == root {
                break;
            }
        }
        Ok(())
    }
}

/// Where on this machine what is open lies, whatever links have led there.
fn real_path(open: impl AsFd) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", open.as_fd().as_raw_fd())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded_and_data_folders_are_looked_at_anew() {
        let (apart, place) = (Apart::default(), tempfile::tempdir().unwrap());
        std::fs::write(place.path().join("owner.secret"), "hush").unwrap();
        for _ in 0..2 {
            assert!(apart.is_data_folder(place.path()));
        }
        for number in 0..=REMEMBERED_MAX {
            assert!(!apart.is_data_folder(&place.path().join(number.to_string())));
        }
        assert_eq!(apart.below.lock().len(), 1);
        std::fs::remove_file(place.path().join("owner.secret")).unwrap();
        assert!(!apart.is_data_folder(place.path()), "it was one until now");
    }
}
