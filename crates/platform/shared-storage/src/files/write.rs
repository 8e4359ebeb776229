//! Writing: a file of its own in the hidden folder, made durable, then given its name.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use forebay_data_folder::is_mark;
use forebay_types::{Error, ErrorKind, Key, ObjectInfo, Result};
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, fstat, fsync, mkdirat, openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::{Errno, pwrite};

use super::Inner;
use super::apart::holds_data;
use super::folder::folder_flags;
use super::list::DEPTH_MAX;
use super::name::HIDDEN;
use crate::request::PutCondition;

/// How long the lock of the writers that go by versions is waited for, and the pauses between.
const LOCKED_WITHIN: Duration = Duration::from_secs(10);
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// A draft that nobody has written to for so long has no writer.
const DRAFT_SECS_MAX: i64 = 24 * 60 * 60;
/// How often an object's folders are made where others remove them before it is in them.
const PLACED_TRIES: u32 = 5;
/// Drafts that are looked at.
const SWEPT_MAX: usize = 100_000;

/// A file that has no name yet; gone when dropped.
pub(super) struct Draft {
    hidden: OwnedFd,
    name: String,
    pub(super) file: OwnedFd,
    named: bool,
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.named {
            let _ = unlinkat(&self.hidden, &self.name, AtFlags::empty());
        }
    }
}

/// Bytes that one call of the system copies, some 50 us: kernels without preemption let nobody else at the core before it ends.
const CALL_BYTES: usize = 128 << 10;

impl Inner {
    /// A file to write an object into. Refuses a key that can't be a file before anything is written.
    pub(super) fn draft(&self, key: &Key) -> Result<Draft> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        self.parts(key)?;
        let failed = |errno| self.failed(key.as_str(), errno);
        let root = self.root()?;
        let hidden = match self.open_below(&root, HIDDEN, folder_flags() | OFlags::NOFOLLOW) {
            Err(Errno::NOENT) => {
                make_folder(&root, HIDDEN).map_err(failed)?;
                self.open_below(&root, HIDDEN, folder_flags() | OFlags::NOFOLLOW).map_err(failed)?
            }
            other => other.map_err(failed)?,
        };
        // Others write into this folder from other machines too.
        let name = format!("{:x}-{:x}-{:016x}", std::process::id(), NEXT.fetch_add(1, Relaxed), forebay_runtime::random::<u64>());
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&hidden, &name, flags, Mode::from_raw_mode(0o666)).map_err(failed)?;
        let draft = Draft { hidden, name, file, named: false };
        if !self.is_swept.swap(true, Relaxed)
            && let Ok(made) = fstat(&draft.file)
        {
            // The file server's clock, by which times of other drafts are: this machine's may be another one.
            sweep(&draft.hidden, made.st_mtime);
        }
        Ok(draft)
    }

    pub(super) fn write(&self, key: &Key, payload: &[Bytes], condition: &PutCondition) -> Result<ObjectInfo> {
        let draft = self.draft(key)?;
        self.write_at(key, &draft.file, payload, 0)?;
        self.publish(key, draft, condition)
    }

    pub(super) fn write_at(&self, key: &Key, file: &OwnedFd, payload: &[Bytes], mut at: u64) -> Result<()> {
        for piece in payload {
            let mut left = &piece[..];
            while !left.is_empty() {
                match pwrite(file, &left[..left.len().min(CALL_BYTES)], at) {
                    Ok(written) => {
                        at += written as u64;
                        left = &left[written..];
                    }
                    Err(Errno::INTR) => {}
                    Err(errno) => return Err(self.failed(key.as_str(), errno)),
                }
            }
        }
        Ok(())
    }

    /// Makes the draft the object, if the condition holds: its bytes are durable before its name is, and its name is
    /// before this returns.
    pub(super) fn publish(&self, key: &Key, mut draft: Draft, condition: &PutCondition) -> Result<ObjectInfo> {
        fsync(&draft.file).map_err(|errno| self.failed(key.as_str(), errno))?;
        let mut tries = 1;
        loop {
            match self.place(key, &mut draft, condition) {
                // Whoever removes folders that are empty has removed one that was made for this object.
                Err(error) if error.kind() == ErrorKind::NotFound && tries < PLACED_TRIES => tries += 1,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    drop(self.root()?);
                    let path = self.path(key.as_str());
                    return Err(Error::retry(format!("{path}: its folder was removed meanwhile: try again")).with_source(error));
                }
                placed => return placed,
            }
        }
    }

    /// Gives a draft its name. `NotFound` where a folder on the way goes meanwhile.
    fn place(&self, key: &Key, draft: &mut Draft, condition: &PutCondition) -> Result<ObjectInfo> {
        assert!(!draft.named, "{key}: a draft is placed twice");
        let failed = |errno| self.failed(key.as_str(), errno);
        let parts = self.parts(key)?;
        let (name, folders) = parts.split_last().expect("keys have a part");
        let folder = self.make_folders(key, folders)?;
        if is_mark(name) && holds_data(&folder, Some(*name)) {
            return Err(Error::invalid(format!(
                "{}: with a file of that name its folder would pass for a data folder of a forebay, and nothing in it would be shown: \
                 choose another name",
                self.path(key.as_str())
            )));
        }
        match condition {
            PutCondition::Any => renameat(&draft.hidden, &draft.name, &folder, *name).map_err(failed)?,
            PutCondition::Absent => {
                match renameat_with(&draft.hidden, &draft.name, &folder, *name, RenameFlags::NOREPLACE) {
                    // The file system can't (NFS can't): a link to an existing name fails as well.
                    Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                        rustix::fs::linkat(&draft.hidden, &draft.name, &folder, *name, AtFlags::empty()).map_err(failed)?;
                        unlinkat(&draft.hidden, &draft.name, AtFlags::empty()).map_err(failed)?;
                    }
                    other => other.map_err(failed)?,
                }
            }
            PutCondition::Version(tag) => {
                // File systems can't compare and rename in one step: writers that go by versions are kept apart by this
                // lock, on one machine and over NFS.
                let _lock = Lock::take(&draft.hidden).map_err(|errno| match errno {
                    Errno::WOULDBLOCK => Error::retry(format!(
                        "{}: another writer holds the lock of this folder for longer than {} s: try again",
                        self.path(key.as_str()),
                        LOCKED_WITHIN.as_secs()
                    )),
                    errno => failed(errno),
                })?;
                let there = match self.open_file(key) {
                    Ok((_, _, info)) => info.version.tag,
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        return Err(Error::conflict(format!("{}: version {tag} is gone", self.path(key.as_str()))));
                    }
                    Err(error) => return Err(error),
                };
                if there != *tag {
                    return Err(self.conflict(key, tag, &there));
                }
                renameat(&draft.hidden, &draft.name, &folder, *name).map_err(failed)?;
            }
        }
        draft.named = true;
        fsync(&folder).map_err(failed)?;
        fstat(&draft.file).map(|stat| self.info(key, &stat)).map_err(failed)
    }

    /// Removes an object's file. Of a key that ends with `/` what is empty: file systems have folders that no object is in.
    pub(super) fn remove(&self, key: &Key) -> Result<()> {
        let (path, is_folder) = key.as_str().strip_suffix('/').map_or((key.as_str(), false), |path| (path, true));
        let path = Key::new(path)?;
        let parts = match self.parts_of_existing(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            parts => parts?,
        };
        let (name, folders) = parts.split_last().expect("keys have a part");
        let root = self.root()?;
        let way = if folders.is_empty() { ".".to_string() } else { folders.join("/") };
        let folder = self.open_below(&root, &way, folder_flags());
        if let Ok(folder) = &folder {
            self.check_outside(&root, folder, (way.as_str(), true))?;
        }
        let removed = folder.and_then(|folder| {
            if is_folder {
                self.remove_empty(&folder, name, 0)?
            } else {
                unlinkat(&folder, *name, AtFlags::empty())?
            }
            fsync(&folder)
        });
        match removed {
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
            // What is in use, or in a folder that this user may not change, stays: no object is in it.
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::LOOP | Errno::BUSY | Errno::ACCESS | Errno::PERM) if is_folder => Ok(()),
            Err(errno) => Err(self.failed(key.as_str(), errno)),
        }
    }

    /// Removes a folder that no file is in, with the folders in it. Of one with files those go that are empty, and of a data folder nothing.
    fn remove_empty(&self, parent: &OwnedFd, name: &str, depth: usize) -> Result<(), Errno> {
        let folder = self.open_below(parent, name, folder_flags() | OFlags::NOFOLLOW)?;
        if holds_data(&folder, None) {
            return Err(Errno::ACCESS);
        }
        let entries = Dir::read_from(&folder)?.flatten().filter(|entry| entry.file_type() != FileType::RegularFile);
        let names: Vec<String> = entries.filter_map(|entry| entry.file_name().to_str().ok().map(str::to_string)).collect();
        for name in names.iter().filter(|name| depth < DEPTH_MAX && !matches!(name.as_str(), "." | "..")) {
            // What stays there keeps this one too.
            let _ = self.remove_empty(&folder, name, depth + 1);
        }
        unlinkat(parent, name, AtFlags::REMOVEDIR)
    }

    /// Opens the folder of an object, making what is missing of the way.
    fn make_folders(&self, key: &Key, folders: &[&str]) -> Result<OwnedFd> {
        let failed = |errno| match errno {
            Errno::NOTDIR => Error::invalid(format!(
                "{}: a part of the key is a file already, and a file system can't have both: choose another key",
                self.path(key.as_str())
            )),
            errno => self.failed(key.as_str(), errno),
        };
        let root = self.root()?;
        let mut folder = None;
        for depth in 1..=folders.len() {
            let path = folders[..depth].join("/");
            let opened = match self.open_below(&root, &path, folder_flags()) {
                Err(Errno::NOENT) => {
                    let parent = folder.as_ref().unwrap_or(&root);
                    self.check_outside(&root, parent, (key.as_str(), true))?;
                    make_folder(parent, folders[depth - 1]).map_err(failed)?;
                    self.open_below(&root, &path, folder_flags())
                }
                other => other,
            };
            folder = Some(opened.map_err(failed)?);
        }
        self.check_outside(&root, folder.as_ref().unwrap_or(&root), (key.as_str(), true))?;
        Ok(folder.unwrap_or(root))
    }
}

/// Makes a folder durably, unless somebody else just did.
fn make_folder(parent: &OwnedFd, name: &str) -> Result<(), Errno> {
    match mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
        Ok(()) => fsync(parent),
        Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// The lock of the writers that go by versions: a file in the hidden folder.
struct Lock {
    _file: OwnedFd,
}

impl Lock {
    fn take(hidden: &OwnedFd) -> Result<Self, Errno> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(hidden, "lock", flags, Mode::from_raw_mode(0o666))?;
        let began = forebay_runtime::now();
        loop {
            match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::INTR) => {}
                // Anyone who may write here can hold it as long as he likes.
                Err(Errno::WOULDBLOCK) if began.elapsed() < LOCKED_WITHIN => std::thread::sleep(LOCK_PAUSE),
                other => return other.map(|()| Self { _file: file }),
            }
        }
    }
}

/// Takes away what writers that were killed have left, on whatever machine, by the time of a file that was made now. What can't be looked at
/// stays.
fn sweep(hidden: &OwnedFd, now: i64) {
    let Ok(entries) = Dir::read_from(hidden) else { return };
    for entry in entries.take(SWEPT_MAX).flatten() {
        let name = entry.file_name();
        let is_draft = name.to_bytes().iter().filter(|byte| **byte == b'-').count() == 2;
        let Ok(stat) = statat(hidden, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        if is_draft && now.saturating_sub(stat.st_mtime) > DRAFT_SECS_MAX {
            match unlinkat(hidden, name, AtFlags::empty()) {
                Ok(()) => tracing::info!(draft = ?name, "draft of a writer that is gone taken away"),
                Err(error) => tracing::debug!(draft = ?name, %error, "draft of a writer that is gone stays"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::UNIX_EPOCH;

    use super::*;

    /// By this machine's clock all of them are of long ago.
    #[test]
    fn drafts_are_as_old_as_the_file_server_says() {
        const NOW_SECS: u64 = 1_000_000_000;
        let folder = tempfile::tempdir().unwrap();
        let draft = |name: &str, ago_secs: u64| {
            let path = folder.path().join(name);
            File::create(&path).unwrap().set_modified(UNIX_EPOCH + Duration::from_secs(NOW_SECS - ago_secs)).unwrap();
            path
        };
        let (young, old) = (draft("1f-0-00ff", 3600), draft("1f-1-00ff", 2 * DRAFT_SECS_MAX as u64));
        let hidden = OwnedFd::from(File::open(folder.path()).unwrap());
        sweep(&hidden, NOW_SECS as i64);
        assert!(young.exists() && !old.exists());
    }
}
