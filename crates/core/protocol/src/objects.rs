//! What is said of objects: which bytes of one are meant, when one may be written, and a page of a listing of them.

use std::ops::Range;

use forebay_types::{Error, Key, MountId, ObjectInfo, Result, VersionTag};
use serde::{Deserialize, Serialize};

/// Which bytes of an object whose size may not be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RangeSpec {
    /// `len` bytes from `start`, fewer at the object's end. `Invalid` when the object ends before `start`.
    Bounded {
        /// First byte.
        start: u64,
        /// Bytes.
        len: u64,
    },
    /// All from `start`.
    From {
        /// First byte.
        start: u64,
    },
    /// The last `len` bytes, fewer when the object is smaller.
    Suffix {
        /// Bytes.
        len: u64,
    },
}

/// What is asked about the drafts of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DraftCall {
    /// From now on drafts may be begun of keys that start with `below`, until this connection ends: `Done`. `Conflict` where somebody
    /// else has opened them.
    Open {
        /// The mount.
        mount: MountId,
        /// What their keys start with.
        below: Key,
    },
    /// A process of the cluster begins one: `Upload`. Its parts come over the same connection, as `PutPart`.
    Begin {
        /// The mount.
        mount: MountId,
        /// The object.
        key: Key,
    },
    /// None may be begun any more, and those that are not committed are given up: `Done`, when nothing of them remains and no commit is
    /// under way.
    End,
}

impl RangeSpec {
    /// The bytes that are meant of an object of `size` bytes. `Invalid` when they begin past its end.
    pub fn within(self, size: u64) -> Result<Range<u64>> {
        let (start, end) = match self {
            Self::Bounded { start, len } => (start, start.saturating_add(len).min(size)),
            Self::From { start } => (start, size),
            Self::Suffix { len } => (size.saturating_sub(len), size),
        };
        if start > size {
            return Err(Error::invalid(format!("byte {start} was asked for, the object has {size} bytes")));
        }
        Ok(start..end)
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::ErrorKind;

    use super::*;

    #[test]
    fn ranges_are_cut_off_at_the_end() {
        assert_eq!(RangeSpec::Bounded { start: 3, len: 10 }.within(8).unwrap(), 3..8);
        assert_eq!(RangeSpec::Bounded { start: 3, len: u64::MAX }.within(8).unwrap(), 3..8);
        assert_eq!(RangeSpec::From { start: 0 }.within(0).unwrap(), 0..0);
        assert_eq!(RangeSpec::Suffix { len: 10 }.within(8).unwrap(), 0..8);
        assert_eq!(RangeSpec::Suffix { len: 3 }.within(8).unwrap(), 5..8);
        assert_eq!(RangeSpec::From { start: 8 }.within(8).unwrap(), 8..8);
        assert_eq!(RangeSpec::Bounded { start: 9, len: 1 }.within(8).unwrap_err().kind(), ErrorKind::Invalid);
    }
}

/// When a write may happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PutCondition {
    /// Always.
    Any,
    /// Only when no such object exists; else `Conflict`.
    Absent,
    /// Only over this version; else `Conflict`.
    Version(VersionTag),
}

/// One page of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListPage {
    /// Objects in byte order of their keys.
    pub objects: Vec<ObjectInfo>,
    /// Common prefixes in byte order, each with its trailing `/`.
    pub folders: Vec<Key>,
    /// Where the next page goes on (`after`); none at the end.
    pub next: Option<Key>,
}
