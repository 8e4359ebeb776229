//! A folder listed as a bucket would be: byte order of whole keys, pages, no empty folders, and no link to one entered.

use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};

use forebay_data_folder::has_data;
use forebay_types::{Key, Result};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat, fstat, statat};
use rustix::io::Errno;

use super::Inner;
use super::folder::folder_flags;
use super::fresh::Ask;
use super::name::HIDDEN;
use crate::request::ListPage;

/// Deepest folder that is looked into; keys of 1,024 bytes can't be deeper.
pub(super) const DEPTH_MAX: usize = 512;

/// Lists in byte order of the keys, one folder's names in memory at a time. Folders that are links are not entered, so
/// that nothing is listed twice; links to files below the mount are files.
pub(super) fn list(files: &Inner, prefix: &Key, folders: bool, after: Option<&Key>, limit: usize) -> Result<ListPage> {
    let root = files.root()?;
    let (prefix, after) = (prefix.as_str(), after.map_or("", Key::as_str));
    let mut walk = Walk { files, root: &root, prefix, folders, after, limit, page: ListPage::default(), left_out: 0 };
    // Only the folder that the prefix names is looked into, however many there are beside it.
    let start = prefix.rfind('/').map_or("", |slash| &prefix[..=slash]);
    let is_path = |path: &str| !path.split('/').rev().skip(1).any(|part| part.is_empty() || part == "." || part == "..");
    if start.is_empty() {
        let _ = walk.folder(&root, "", 0)?;
    } else if is_path(start) && !start.starts_with(&format!("{HIDDEN}/")) {
        match files.open_below(&root, start.trim_end_matches('/'), folder_flags()) {
            Ok(folder) => {
                files.check_outside(&root, &folder, (start, true))?;
                let _ = walk.folder(&folder, start, 0)?;
            }
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(errno) => return Err(files.failed(start, errno)),
        }
    }
    if walk.left_out > 0 {
        tracing::warn!(mount = %files.name, names = walk.left_out, "files whose names are no keys are left out of the listing");
    }
    Ok(walk.page)
}

struct Walk<'a> {
    files: &'a Inner,
    root: &'a OwnedFd,
    prefix: &'a str,
    folders: bool,
    after: &'a str,
    limit: usize,
    page: ListPage,
    left_out: u64,
}

impl Walk<'_> {
    /// Adds what is in a folder, `path` being the key of everything in it up to its name. Breaks when the page is full.
    fn folder(&mut self, folder: impl AsFd, path: &str, depth: usize) -> Result<ControlFlow<()>> {
        // A file server may be mounted anywhere below the mount.
        let mut asking: Option<Option<Ask>> = None;
        for (key, is_folder) in self.names(&folder, path)? {
            // A folder's key ends with `/`: everything in it starts with that, and sorts by it.
            let wanted = match is_folder {
                true => key.starts_with(self.prefix) || self.prefix.starts_with(&key),
                false => key.starts_with(self.prefix),
            };
            let is_behind = key.as_str() > self.after;
            let step = match is_folder {
                _ if !wanted => continue,
                true if self.folders && key.len() > self.prefix.len() => {
                    if !is_behind || self.after.starts_with(&key) || !self.has_file(&folder, path, &key, depth)? {
                        continue;
                    }
                    self.add(&key, None)
                }
                true if is_behind || self.after.starts_with(&key) => self.enter(&folder, path, &key, depth)?,
                false if is_behind => {
                    let ask = *asking.get_or_insert_with(|| (self.files.asking)(folder.as_fd()));
                    match self.stat(&folder, path, &key, ask)? {
                        Some(stat) => self.add(&key, Some(&stat)),
                        None => continue,
                    }
                }
                _ => continue,
            };
            if step.is_break() {
                return Ok(step);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn add(&mut self, key: &str, stat: Option<&Stat>) -> ControlFlow<()> {
        let Ok(key) = Key::new(key) else {
            self.left_out += 1;
            return ControlFlow::Continue(());
        };
        if self.page.objects.len() + self.page.folders.len() == self.limit {
            let object = self.page.objects.last().map(|object| &object.version.key);
            self.page.next = object.max(self.page.folders.last()).cloned();
            return ControlFlow::Break(());
        }
        match stat {
            Some(stat) => self.page.objects.push(self.files.info(&key, stat)),
            None => self.page.folders.push(key),
        }
        ControlFlow::Continue(())
    }

    fn enter(&mut self, folder: impl AsFd, path: &str, key: &str, depth: usize) -> Result<ControlFlow<()>> {
        let name = &key[path.len()..key.len() - 1];
        if depth >= DEPTH_MAX {
            self.left_out += 1;
            return Ok(ControlFlow::Continue(()));
        }
        match self.files.open_below(&folder, name, folder_flags() | OFlags::NOFOLLOW) {
            Ok(below) => self.folder(&below, key, depth + 1),
            // Removed meanwhile, or not for this user: what can't be read isn't listed.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => Ok(ControlFlow::Continue(())),
            Err(errno) => Err(self.files.failed(key, errno)),
        }
    }

    /// Whether there is a file somewhere in the folder: S3 has no empty ones.
    fn has_file(&mut self, folder: impl AsFd, path: &str, key: &str, depth: usize) -> Result<bool> {
        let mut probe = Walk { prefix: key, folders: false, after: "", limit: 1, page: ListPage::default(), ..*self };
        let _ = probe.enter(folder, path, key, depth)?;
        Ok(!probe.page.objects.is_empty())
    }

    /// The keys of what is in a folder, with whether each is a folder itself, in the order of what they become.
    fn names(&mut self, folder: impl AsFd, path: &str) -> Result<Vec<(String, bool)>> {
        let mut keys = Vec::new();
        for entry in Dir::read_from(&folder).map_err(|errno| self.files.failed(path, errno))? {
            let entry = entry.map_err(|errno| self.files.failed(path, errno))?;
            let Ok(name) = entry.file_name().to_str() else {
                self.left_out += 1;
                continue;
            };
            if name == "." || name == ".." || (path.is_empty() && name == HIDDEN) {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                    Err(_) => continue,
                },
                kind => kind,
            };
            match kind {
                FileType::Directory => keys.push((format!("{path}{name}/"), true)),
                FileType::RegularFile | FileType::Symlink => keys.push((format!("{path}{name}"), false)),
                _ => {}
            }
        }
        keys.sort_unstable();
        // Of a data folder nothing is shown, whoever's it is.
        let has = |name: &str| keys.binary_search(&(format!("{path}{name}"), false)).is_ok();
        Ok(if has_data(has) { Vec::new() } else { keys })
    }

    /// What is known of a file, by its server too; none when it isn't one that can be read below the mount.
    fn stat(&self, folder: impl AsFd, path: &str, key: &str, ask: Option<Ask>) -> Result<Option<Stat>> {
        if let Some(ask) = ask {
            ask(folder.as_fd(), &key[path.len()..]).map_err(|errno| self.files.failed(key, errno))?;
        }
        let stat = match statat(&folder, &key[path.len()..], AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
                let found = self.files.open_below(self.root, key, OFlags::PATH).and_then(|target| {
                    // It may be another server's.
                    (self.files.asking)(target.as_fd()).map_or(Ok(()), |ask| ask(target.as_fd(), ""))?;
                    Ok((fstat(&target)?, target))
                });
                match found {
                    Ok((stat, target)) if self.files.check_outside(self.root, &target, (key, false)).is_ok() => stat,
                    _ => return Ok(None),
                }
            }
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(self.files.failed(key, errno)),
        };
        Ok((FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some(stat))
    }
}
