//! Forebay's own data is no shared storage: whoever may read a mount would read the secrets in it.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use forebay_data_folder::{data_folder_at, has_data, is_data_folder};
use forebay_types::{Error, Result};
use parking_lot::Mutex;
use rustix::fs::{AtFlags, FileType, fstat, statat};

use super::Inner;

/// For so long a folder that was seen to be no data folder is none, and so many of them are remembered.
const BELIEVED: Duration = Duration::from_secs(10);
const REMEMBERED_MAX: usize = 4096;

/// What was seen to be apart from Forebay's own data.
#[derive(Default)]
pub(super) struct Apart {
    /// The mount's folder, as the file system knows it.
    folder: Mutex<Option<(u64, u64)>>,
    /// Folders below it by their real paths, and since when it is known of them and of all between them and the mount's.
    below: Mutex<HashMap<PathBuf, Instant>>,
}

impl Apart {
    /// Since when a folder is believed to lie in no data folder.
    fn since(&self, folder: &Path) -> Option<Instant> {
        let since = self.below.lock().get(folder).copied()?;
        (forebay_runtime::now().saturating_duration_since(since) < BELIEVED).then_some(since)
    }

    /// The data folder that a folder is or lies in, up to the mount's, which is asked for where it is not known already.
    fn data_folder(&self, folder: &Path, root: impl FnOnce() -> PathBuf) -> Option<PathBuf> {
        if self.since(folder).is_some() {
            return None;
        }
        let (root, mut since, mut seen) = (root(), forebay_runtime::now(), Vec::new());
        for around in folder.ancestors() {
            if let Some(known) = self.since(around) {
                since = known;
                break;
            }
            // Asks the file system, which may be a server's: nobody waits for the lock meanwhile.
            if is_data_folder(around) {
                return Some(around.to_path_buf());
            }
            seen.push(around.to_path_buf());
            if around == root {
                break;
            }
        }
        let mut below = self.below.lock();
        if below.len() + seen.len() > REMEMBERED_MAX {
            below.clear();
        }
        below.extend(seen.into_iter().map(|folder| (folder, since)));
        None
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
    /// folder. Costs a look at where it lies, as long as its folder is believed.
    pub(super) fn check_outside(&self, root: &OwnedFd, open: impl AsFd, (key, is_folder): (&str, bool)) -> Result<()> {
        // Where the system does not say it, links may lead elsewhere.
        let place = real_path(open).unwrap_or_else(|| self.folder.join(key));
        let folder = if is_folder { Some(place.as_path()) } else { place.parent() };
        let root = || real_path(root).unwrap_or_else(|| self.folder.clone());
        match folder.and_then(|folder| self.apart.data_folder(folder, root)) {
            None => Ok(()),
            Some(own) => Err(Error::denied(format!(
                "{}: it lies in the data folder {} of a forebay, and is not shown: mount another folder, or start that one with another \
                 --data-dir, or other disk-folders",
                self.path(key),
                own.display()
            ))),
        }
    }
}

/// Whether an open folder is a data folder, whoever's it is, or would be one with a file of this name.
pub(super) fn holds_data(folder: &OwnedFd, with: Option<&str>) -> bool {
    let is_file = |name: &str| {
        let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) != FileType::Directory)
    };
    has_data(|name| with == Some(name) || is_file(name))
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
        let (root, data) = (place.path().to_path_buf(), place.path().join("data"));
        std::fs::create_dir(&data).unwrap();
        std::fs::write(data.join("owner.secret"), "hush").unwrap();
        let found = |folder: &Path| apart.data_folder(folder, || root.clone());
        for _ in 0..2 {
            assert_eq!(found(&data.join("deep/er")).as_ref(), Some(&data));
        }
        assert_eq!(apart.below.lock().len(), 0, "nothing is believed of what lies in one");
        for number in 0..REMEMBERED_MAX {
            assert_eq!(found(&root.join(number.to_string())), None);
        }
        assert!((1..=REMEMBERED_MAX).contains(&apart.below.lock().len()));
        std::fs::remove_file(data.join("owner.secret")).unwrap();
        assert_eq!(found(&data.join("deep/er")), None, "it was one until now");
    }

    #[test]
    fn who_is_believed_costs_no_more_than_a_look_at_where_it_lies_and_no_longer_than_what_it_lies_in() {
        let (apart, place) = (Apart::default(), tempfile::tempdir().unwrap());
        let (root, deep) = (place.path().to_path_buf(), place.path().join("a/deep"));
        assert_eq!(apart.data_folder(&root, || root.clone()), None);
        let since = apart.since(&root).unwrap();
        assert_eq!(apart.data_folder(&deep, || root.clone()), None);
        assert_eq!((apart.since(&deep), apart.since(deep.parent().unwrap())), (Some(since), Some(since)));
        assert_eq!(apart.data_folder(&deep, || panic!("it is known")), None);
        assert_eq!(apart.below.lock().len(), 3, "nothing above the mount is looked at");
    }
}
