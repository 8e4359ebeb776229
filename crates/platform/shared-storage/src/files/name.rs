//! What keys are as names of files, and versions as what the file system says of them.

use forebay_types::{Error, Key, Result, VersionTag};
use rustix::fs::Stat;

use super::Inner;

/// Where files are until they are whole. Not shown, and not to be reached by a key.
pub(super) const HIDDEN: &str = ".forebay-tmp";

impl Inner {
    /// The parts of a key that a file can have as its path. `Invalid` for any other: two keys must never be one file.
    pub(super) fn parts<'a>(&self, key: &'a Key) -> Result<Vec<&'a str>> {
        let parts: Vec<_> = key.as_str().split('/').collect();
        let refuse = |why: &str| Err(Error::invalid(format!("{}: {why}", self.path(key.as_str()))));
        match &parts[..] {
            _ if key.has_dot_segment() => refuse("a key with \".\" or \"..\" between slashes is no file"),
            _ if parts.contains(&"") => {
                refuse("a key with an empty part (\"a//b\", \"a/\", \"/a\") can't be a file: choose another")
            }
            [first, ..] if *first == HIDDEN => refuse("this folder holds unfinished writes: choose another key"),
            _ => Ok(parts),
        }
    }

    /// As [`Self::parts`], for a key that is looked for: what can't be a file isn't there.
    pub(super) fn parts_of_existing<'a>(&self, key: &'a Key) -> Result<Vec<&'a str>> {
        match self.parts(key) {
            Err(error) if !key.has_dot_segment() => {
                Err(Error::not_found(format!("{}: there is no such file", self.path(key.as_str()))).with_source(error))
            }
            parts => parts,
        }
    }
}

pub(super) fn modified_ns(stat: &Stat) -> i128 {
    i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec)
}

fn changed_ns(stat: &Stat) -> i128 {
    i128::from(stat.st_ctime) * 1_000_000_000 + i128::from(stat.st_ctime_nsec)
}

/// A file's version: another file, another length or another time of modification is another version, and so is one that
/// was changed in any way: whoever rewrites a file may set its time of modification back. A change of rights or of its
/// links costs that the same bytes are fetched again.
pub(super) fn tag(stat: &Stat) -> VersionTag {
    VersionTag::file(stat.st_ino, stat.st_size as u64, modified_ns(stat), changed_ns(stat))
}

/// Whether an open file has the bytes that it had when `before` was looked at. One that has lost a name since was replaced or
/// deleted, which changes it and not its bytes.
pub(super) fn has_same_bytes(before: &Stat, now: &Stat) -> bool {
    tag(before) == tag(now)
        || (now.st_nlink < before.st_nlink && before.st_size == now.st_size && modified_ns(before) == modified_ns(now))
}
