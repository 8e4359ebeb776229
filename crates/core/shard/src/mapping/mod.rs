//! Which shard of a dataset has a key: by the key's hash, or by ranges of keys.

mod range;
mod sample;

use std::collections::BTreeSet;
use std::ops::{Bound, Range};
use std::sync::Arc;

use forebay_navigation::Share;
use forebay_types::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

pub use range::KeyRange;
pub use sample::KeySample;

use crate::model::key::{Key, KeyType};

/// Bytes of a split point at most: of a longer key its beginning is one.
pub const SPLIT_BYTES_MAX: usize = 64;

/// Which of a dataset's shards has a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyMap {
    /// One of so many, by the key's hash.
    Hash(usize),
    /// One more than there are split points: each split point is the least key that the shard behind it may have. Keys are in their own order, in
    /// which numbers below zero stand behind all others.
    Ranges(Arc<[Key]>),
}

impl KeyMap {
    /// Of a dataset of so many shards, with these split points, or by hash without any.
    pub fn new(shards: usize, splits: Option<&Arc<[Key]>>) -> Self {
        splits.map_or(Self::Hash(shards), |splits| Self::Ranges(Arc::clone(splits)))
    }

    /// How many shards there are.
    pub fn shards(&self) -> usize {
        match self {
            Self::Hash(shards) => *shards,
            Self::Ranges(splits) => splits.len() + 1,
        }
    }

    /// The split points; none by hash.
    pub fn splits(&self) -> Option<&Arc<[Key]>> {
        match self {
            Self::Hash(_) => None,
            Self::Ranges(splits) => Some(splits),
        }
    }

    /// `Corrupt` where these are no split points of so many shards with such keys.
    pub fn check(&self, shards: usize, of: KeyType) -> Result<()> {
        let Self::Ranges(splits) = self else { return Ok(()) };
        let is_one = |split: &Key| split.key_type() == of && split.len() <= SPLIT_BYTES_MAX;
        // Two of them are never one, and those of a number are in its order.
        match self.shards() == shards && splits.iter().all(is_one) && splits.is_sorted_by(|one, next| one < next) {
            true => Ok(()),
            false => Err(Error::corrupt("the split points of shards are not as many, as short and as ordered as such are")),
        }
    }

    /// The shard that has a key, if any has.
    pub fn shard_of(&self, key: &Key) -> usize {
        match self {
            // The high part of a product spreads evenly over any number.
            Self::Hash(shards) => ((u128::from(key_hash(key)) * *shards as u128) >> 64) as usize,
            Self::Ranges(splits) => splits.partition_point(|split| split <= key),
        }
    }

    /// The keys that a shard may have; all by hash.
    pub fn range_of(&self, shard: usize) -> KeyRange {
        debug_assert!(shard < self.shards(), "shards are numbered from 0");
        let Self::Ranges(splits) = self else { return KeyRange::all() };
        let from = shard.checked_sub(1).and_then(|before| splits.get(before)).cloned();
        let to = splits.get(shard).cloned();
        KeyRange { from: from.map_or(Bound::Unbounded, Bound::Included), to: to.map_or(Bound::Unbounded, Bound::Excluded) }
    }

    /// The shards that may have keys of a range, which stand side by side.
    pub fn meeting(&self, range: &KeyRange) -> Range<usize> {
        if range.is_empty() {
            return 0..0;
        }
        let Self::Ranges(splits) = self else { return 0..self.shards() };
        let first = match &range.from {
            Bound::Included(key) | Bound::Excluded(key) => self.shard_of(key),
            Bound::Unbounded => 0,
        };
        let last = match &range.to {
            Bound::Included(key) => self.shard_of(key),
            Bound::Excluded(key) => splits.partition_point(|split| split < key),
            Bound::Unbounded => splits.len(),
        };
        debug_assert!(first.max(last) < self.shards(), "each key is in a shard");
        assert!(first <= last, "the end that comes first is in a shard that comes first");
        first..last + 1
    }

    /// The same for several ranges, ascending, each once.
    pub fn meeting_any(&self, ranges: &[KeyRange]) -> BTreeSet<usize> {
        let mut all = BTreeSet::new();
        for range in ranges {
            // Of keys by their hash each range has all.
            if all.len() == self.shards() {
                break;
            }
            all.extend(self.meeting(range));
        }
        all
    }

    /// For each shard of another map those of this one that its keys come from, ascending.
    pub fn recut(&self, to: &Self) -> Result<Vec<Vec<Share>>> {
        if let (Self::Hash(before), Self::Hash(after)) = (self, to) {
            let count = |shards: usize| u32::try_from(shards).unwrap_or(u32::MAX);
            return forebay_navigation::recut(count(*before), count(*after));
        }
        let sources: Vec<Range<usize>> = (0..to.shards()).map(|shard| self.meeting(&to.range_of(shard))).collect();
        let mut parts = vec![0u32; self.shards()];
        sources.iter().flat_map(Range::clone).for_each(|shard| parts[shard] += 1);
        debug_assert!(parts.iter().all(|parts| *parts > 0), "the keys of each shard go somewhere");
        // How many keys lie behind a split point nobody counts: split points are where as much is on both sides.
        let share = |shard: usize| Share { shard: shard as u32, part: 1.0 / f64::from(parts[shard]) };
        Ok(sources.into_iter().map(|from| from.map(share).collect()).collect())
    }
}

/// A key's hash.
pub fn key_hash(key: &Key) -> u64 {
    match key {
        Key::U64(number) => xxh3_64(&number.to_le_bytes()),
        Key::Bytes(bytes) => xxh3_64(bytes),
    }
}
