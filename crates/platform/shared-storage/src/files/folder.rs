//! Reaching files below the mount's folder and nowhere else.

use std::os::fd::{AsFd, OwnedFd};

use forebay_types::{Error, Key, ObjectInfo, Result};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat, fstat, open, openat, openat2};
use rustix::io::Errno;

use super::Inner;

/// Below this folder, whatever links say; and no links of the `/proc` kind.
const BELOW: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

impl Inner {
    /// The mount's folder itself.
    pub(super) fn root(&self) -> Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(&self.folder, flags, Mode::empty()).map_err(|errno| {
            let folder = self.folder.display();
            match errno {
                Errno::NOENT | Errno::NOTDIR => Error::not_found(format!(
                    "mount {}: there is no folder {folder} on this machine: make it, or mount what should be there",
                    self.name
                )),
                Errno::ACCESS | Errno::PERM => {
                    Error::denied(format!("mount {}: this user may not read the folder {folder}", self.name))
                }
                errno => Error::from(std::io::Error::from(errno)).context(format!("mount {}: {folder}", self.name)),
            }
        })?;
        self.check_apart(&root)?;
        Ok(root)
    }

    pub(super) fn check_folder(&self) -> Result<()> {
        let root = self.root()?;
        let entries = rustix::fs::Dir::read_from(&root);
        entries.map(|_| ()).map_err(|errno| self.failed("", errno))
    }

    pub(super) fn open_below(&self, root: impl AsFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC;
        loop {
            match openat2(&root, path, flags, Mode::empty(), BELOW) {
                // A rename elsewhere in the tree disturbed the walk.
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::NOSYS | Errno::PERM) => return walk_below(&root, path, flags),
                other => return other,
            }
        }
    }

    /// Opens an object's file, and tells the version of what is open.
    pub(super) fn open_file(&self, key: &Key) -> Result<(OwnedFd, Stat, ObjectInfo)> {
        let parts = self.parts_of_existing(key)?;
        // Opening a pipe must not wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let root = self.root()?;
        let file = self.open_below(&root, &parts.join("/"), flags).map_err(|errno| self.failed(key.as_str(), errno))?;
        let stat = fstat(&file).map_err(|errno| self.failed(key.as_str(), errno))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                self.check_outside(&root, &file, (key.as_str(), false))?;
                Ok((file, stat, self.info(key, &stat)))
            }
            FileType::Directory => {
                Err(Error::not_found(format!("{}: this is a folder, not a file: list it", self.path(key.as_str()))))
            }
            _ => Err(Error::invalid(format!("{}: neither a file nor a folder", self.path(key.as_str())))),
        }
    }

    /// What a failed call on an object means.
    pub(super) fn failed(&self, key: &str, errno: Errno) -> Error {
        let path = self.path(key);
        match errno {
            Errno::NOENT | Errno::NOTDIR => Error::not_found(format!("{path}: there is no such file")),
            Errno::XDEV | Errno::LOOP => Error::denied(format!("{path}: a link on the way leaves the mount: it is not followed")),
            Errno::NAMETOOLONG => Error::invalid(format!("{path}: a name of it is too long for the file system")),
            Errno::ACCESS | Errno::PERM => Error::denied(format!("{path}: this user may not do that there")),
            Errno::ROFS => Error::denied(format!("{path}: the file system is read-only")),
            Errno::NOSPC | Errno::DQUOT => Error::retry(format!("{path}: the file system is full: make room")),
            Errno::STALE => Error::retry(format!("{path}: the NFS server lost the file handle: try again")),
            Errno::ISDIR => Error::invalid(format!("{path}: there is a folder of that name")),
            Errno::EXIST | Errno::NOTEMPTY => Error::conflict(format!("{path}: it is there already")),
            errno => Error::from(std::io::Error::from(errno)).context(path),
        }
    }
}

/// As `openat2`, where the kernel or a sandbox has none: part by part, following no link at all.
fn walk_below(root: impl AsFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let (folders, name) = path.rsplit_once('/').map_or(("", path), |(folders, name)| (folders, name));
    let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at: Option<OwnedFd> = None;
    for part in folders.split('/').filter(|part| !part.is_empty()) {
        let next = match &at {
            Some(folder) => openat(folder, part, step, Mode::empty()),
            None => openat(&root, part, step, Mode::empty()),
        };
        at = Some(next.map_err(|errno| if errno == Errno::NOTDIR { Errno::LOOP } else { errno })?);
    }
    match &at {
        Some(folder) => openat(folder, name, flags | OFlags::NOFOLLOW, Mode::empty()),
        None => openat(&root, name, flags | OFlags::NOFOLLOW, Mode::empty()),
    }
}

/// Opens a folder for changes in it. For what only its path is needed.
pub(super) fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY
}
