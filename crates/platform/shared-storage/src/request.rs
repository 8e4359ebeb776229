//! What is asked of shared storage, in the same words for all kinds of it.

use std::ops::Range;

pub use forebay_protocol::{ListPage, PutCondition};
use forebay_types::{Error, Key, Result, VersionTag};

/// A read of one object.
#[derive(Clone, Debug)]
pub struct Get<'a> {
    /// The key below the mount.
    pub key: &'a Key,
    /// Which bytes.
    pub range: GetRange,
    /// Only this version; any other is `Conflict`.
    pub if_match: Option<&'a VersionTag>,
    /// Who goes first when bandwidth is scarce.
    pub class: Class,
}

/// Which bytes of an object to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GetRange {
    /// All of them.
    All,
    /// These, or as many of them as there are; `Invalid` when the object ends before the first, or the range is empty.
    /// An empty object answers a range from 0 with nothing.
    Bounded(Range<u64>),
    /// From here to the end.
    From(u64),
    /// The last so many, or all when there are fewer.
    Suffix(u64),
}

impl GetRange {
    /// These bytes of an object of `size`: all of them as such, since S3 tells the checksum of nothing less.
    pub fn part(range: Range<u64>, size: u64) -> Self {
        if range == (0..size) { Self::All } else { Self::Bounded(range) }
    }

    /// Refuses what no object could answer.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Bounded(range) if range.is_empty() => {
                Err(Error::invalid(format!("the range {}..{} is empty", range.start, range.end)))
            }
            Self::Suffix(0) => Err(Error::invalid("the last 0 bytes are no range")),
            _ => Ok(()),
        }
    }

    /// The bytes of an object of `size` bytes; none when it ends before them. An empty object has what starts at 0.
    pub(crate) fn of(&self, size: u64) -> Option<Range<u64>> {
        let range = match self {
            Self::All => 0..size,
            Self::Bounded(range) => range.start..range.end.min(size),
            Self::From(start) => *start..size,
            Self::Suffix(bytes) => size.saturating_sub(*bytes)..size,
        };
        (range.start < size || range.start == 0).then_some(range)
    }

    /// Whether an object that has no byte of this must be empty.
    pub(crate) fn starts_at_first(&self) -> bool {
        match self {
            Self::All | Self::Suffix(_) => true,
            Self::Bounded(range) => range.start == 0,
            Self::From(start) => *start == 0,
        }
    }
}

/// Who goes first when bandwidth is scarce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Somebody waits for it.
    Demand,
    /// It will be asked for.
    Prefetch,
    /// Nobody in particular will ask for it: it is read as prefetch is, and counts for itself where the bound is split.
    Background,
}

/// Where a page goes on: behind `after`, and, where `after` is or lies in a folder that was shown as one, behind all of
/// it.
pub(crate) fn behind(prefix: &Key, folders: bool, after: &Key) -> String {
    let below = after.as_str().strip_prefix(prefix.as_str()).filter(|_| folders);
    match below.and_then(|below| below.find('/')) {
        Some(slash) => format!("{}\u{10ffff}", &after.as_str()[..prefix.as_str().len() + slash + 1]),
        None => after.as_str().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_go_on_behind_a_folder() {
        let key = |key: &str| Key::new(key).unwrap();
        assert_eq!(behind(&key("a/"), true, &key("a/b/")), "a/b/\u{10ffff}");
        assert_eq!(behind(&key("a/"), true, &key("a/b/c")), "a/b/\u{10ffff}");
        assert_eq!(behind(&key("a/"), true, &key("a/")), "a/");
        assert_eq!(behind(&key("a/"), true, &key("a/b")), "a/b");
        assert_eq!(behind(&key("a/"), false, &key("a/b/c")), "a/b/c");
    }
}
