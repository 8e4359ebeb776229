//! Some of many keys, and the split points that they make.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{SPLIT_BYTES_MAX, key_hash};
use crate::model::key::Key;

/// Keys of a sample for each range that is to be made of it: their bytes differ by some 6 % then.
const KEYS_EACH: usize = 256;
const KEYS_MIN: usize = 4096;
const KEYS_MAX: usize = 262_144;

/// Those keys of many that have the lowest hashes, with what each counts: any key is as likely as another to be among them, a key that comes again
/// counts once, as its last record does, and of the same keys it is the same sample in whatever order they come.
pub struct KeySample {
    most: usize,
    /// By hash; of a long key its beginning.
    kept: BTreeMap<u64, (Key, u64)>,
}

impl KeySample {
    /// One that is to be cut in so many ranges.
    pub fn new(ranges: usize) -> Self {
        Self { most: ranges.saturating_mul(KEYS_EACH).clamp(KEYS_MIN, KEYS_MAX), kept: BTreeMap::new() }
    }

    /// Takes a key, whose record has so many bytes.
    pub fn push(&mut self, key: &Key, bytes: u64) {
        let hash = key_hash(key);
        if self.kept.len() >= self.most && self.kept.last_key_value().is_some_and(|(last, _)| *last < hash) {
            return;
        }
        let key = match key {
            Key::U64(number) => Key::U64(*number),
            Key::Bytes(bytes) => Key::Bytes(bytes[..bytes.len().min(SPLIT_BYTES_MAX)].to_vec()),
        };
        self.kept.insert(hash, (key, bytes.max(1)));
        if self.kept.len() > self.most {
            self.kept.pop_last();
        }
    }

    /// Split points that cut the keys in so many ranges of about as many bytes each; fewer where there are not as many that differ in their
    /// first bytes.
    pub fn splits(&self, ranges: usize) -> Arc<[Key]> {
        let mut keys: Vec<&(Key, u64)> = self.kept.values().collect();
        keys.sort_unstable();
        let mut left: u128 = keys.iter().map(|(_, bytes)| u128::from(*bytes)).sum();
        let (mut splits, mut here, mut before) = (Vec::<Key>::new(), 0u128, None::<&Key>);
        for (key, bytes) in keys {
            let to_make = ranges.saturating_sub(splits.len()) as u128;
            if let Some(before) = before.filter(|before| *before < key)
                && to_make > 1
                && here * to_make >= left
            {
                splits.push(between(before, key));
                left -= here;
                here = 0;
            }
            here += u128::from(*bytes);
            before = Some(key);
        }
        debug_assert!(splits.is_sorted_by(|one, next| one < next), "split points are ascending");
        splits.into()
    }
}

/// The shortest key that is above one and not above the next.
fn between(one: &Key, next: &Key) -> Key {
    match (one, next) {
        (Key::Bytes(one), Key::Bytes(next)) => {
            let same = one.iter().zip(next).take_while(|(one, next)| one == next).count();
            Key::Bytes(next[..next.len().min(same + 1)].to_vec())
        }
        _ => next.clone(),
    }
}
