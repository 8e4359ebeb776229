//! Where objects are cut into segments, and the two hashes that name one: by version for its bytes, by key for its route.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::{Error, Key, MountId, ObjectVersion, Result, SEGMENT_BYTES, digest};

/// A segment of one object version, as a [`digest`] of (mount, key, tag, size, index): two versions of a key never
/// share a segment, so bytes of two versions can't mix, and nobody finds a key of his own whose segment is one of another mount.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SegmentId(pub u128);

/// What tells the id of a compressed column from the column's own. Another one where columns are decoded to something else from a release
/// on: what lies on disk from before is not found then.
const PACKED: u128 = 0x6c7a_345f_6f66_5f61_5f64_6563_6f64_6564;

impl SegmentId {
    /// The id of the `index`-th segment of `version`.
    pub fn of(version: &ObjectVersion, index: u32) -> Self {
        let (key, tag) = (version.key.as_str().as_bytes(), version.tag.as_str().as_bytes());
        // In one piece: every read makes its ids anew.
        let mut head = [0; 28];
        head[..8].copy_from_slice(&version.mount.0.to_le_bytes());
        head[8..16].copy_from_slice(&version.size.to_le_bytes());
        head[16..20].copy_from_slice(&index.to_le_bytes());
        head[20..].copy_from_slice(&(key.len() as u64).to_le_bytes());
        Self(digest(&[&head, key, tag]))
    }

    /// The id under which the disk tier keeps a decoded column compressed whose own id this is.
    pub fn packed(self) -> Self {
        Self(self.0 ^ PACKED)
    }
}

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What routing hashes: a segment's place in its key, whatever the version, so that an object whose version is not
/// known yet is asked for where its bytes will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RouteKey(pub u64);

impl RouteKey {
    /// Where the `index`-th segment of `key` is routed.
    pub fn of(mount: MountId, key: &Key, index: u32) -> Self {
        let mut hash = Xxh3::new();
        hash.update(&mount.0.to_le_bytes());
        hash.update(&index.to_le_bytes());
        hash.update(key.as_str().as_bytes());
        Self(hash.digest())
    }

    /// Where listings of a mount are answered from.
    pub fn of_listing(mount: MountId) -> Self {
        Self(xxh3_64(&[b"list".as_slice(), &mount.0.to_le_bytes()].concat()))
    }
}

/// A range of bytes within one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SegmentRange {
    /// Which segment of the object.
    pub index: u32,
    /// First byte, counted from the segment's start.
    pub start: u32,
    /// Length in bytes.
    pub len: u32,
}

impl SegmentRange {
    /// The range in bytes of the object.
    pub fn object_range(&self) -> Range<u64> {
        let start = u64::from(self.index) * SEGMENT_BYTES + u64::from(self.start);
        start..start + u64::from(self.len)
    }
}

/// Bytes of an object at most, 1 PiB: several times what any object store takes, and few enough that the segments of one object can
/// be gone through one by one. Larger ones, which file systems may have with nothing in them, are refused where they are opened.
pub const OBJECT_BYTES_MAX: u64 = 1 << 50;

/// How many segments an object of `size` bytes has; none when it is empty, and never more than the largest object has.
pub fn segment_count(size: u64) -> u32 {
    size.min(OBJECT_BYTES_MAX).div_ceil(SEGMENT_BYTES) as u32
}

/// `Invalid` when an object is too large to be read.
pub fn check_object_bytes(size: u64) -> Result<()> {
    match size <= OBJECT_BYTES_MAX {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "an object of {size} bytes is too large: {OBJECT_BYTES_MAX} bytes (1 PiB) at most; is it a sparse file?"
        ))),
    }
}

/// Bytes of the `index`-th segment of an object of `size` bytes; 0 past its end.
pub fn segment_bytes(size: u64, index: u32) -> u64 {
    size.saturating_sub(u64::from(index) * SEGMENT_BYTES).min(SEGMENT_BYTES)
}

/// Cuts a range of an object's bytes at the borders of segments, in order.
pub fn split_range(range: Range<u64>) -> impl Iterator<Item = SegmentRange> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        if at >= range.end {
            return None;
        }
        let (index, start) = (at / SEGMENT_BYTES, at % SEGMENT_BYTES);
        let len = (SEGMENT_BYTES - start).min(range.end - at);
        at += len;
        Some(SegmentRange { index: index as u32, start: start as u32, len: len as u32 })
    })
}
