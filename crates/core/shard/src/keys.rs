//! Keys by record and records by key: numbers in Elias-Fano, strings in groups that leave out what neighbours share.

use bytes::Bytes;

use crate::bits::elias_fano::{self, EliasFano};
use crate::bits::word::{load, width_of};
use crate::bits::{Packed, pack};
use crate::model::key::{Key, KeyType};
use crate::part::Part;
use crate::record::varint;

/// String keys of a group share the search for it; all but the first are written as what differs from the one before.
const GROUP: usize = 16;

/// The keys of a shard in order: a key's place is its record.
#[derive(Clone, Debug)]
pub(crate) enum KeyIndex {
    Numbers(EliasFano),
    Strings(StringKeys),
}

#[derive(Clone, Debug)]
pub(crate) struct StringKeys {
    blob: Bytes,
    groups: Packed,
    count: usize,
}

/// Keys as a query returns them, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Of [`KeyType::U64`].
    U64(Vec<u64>),
    /// Of [`KeyType::Bytes`].
    Bytes(Vec<Vec<u8>>),
}

impl Keys {
    /// No keys.
    pub fn new(key_type: KeyType) -> Self {
        match key_type {
            KeyType::U64 => Self::U64(Vec::new()),
            KeyType::Bytes => Self::Bytes(Vec::new()),
        }
    }

    /// How many keys.
    pub fn len(&self) -> usize {
        match self {
            Self::U64(keys) => keys.len(),
            Self::Bytes(keys) => keys.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The keys one by one.
    pub fn iter(&self) -> Box<dyn Iterator<Item = Key> + '_> {
        match self {
            Self::U64(keys) => Box::new(keys.iter().map(|key| Key::U64(*key))),
            Self::Bytes(keys) => Box::new(keys.iter().map(|key| Key::Bytes(key.clone()))),
        }
    }
}

/// Five sections of sorted number keys.
pub(crate) fn encode_numbers(keys: &[u64]) -> [Vec<u8>; 5] {
    elias_fano::encode(keys)
}

/// Five sections of sorted string keys, of which two are used.
pub(crate) fn encode_strings<'k>(keys: impl Iterator<Item = &'k [u8]>) -> [Vec<u8>; 5] {
    let (mut blob, mut groups) = (Vec::new(), Vec::new());
    let mut last: &[u8] = &[];
    for (index, key) in keys.enumerate() {
        debug_assert!(index == 0 || last < key, "key {index} is above the one before");
        let shared = if index % GROUP == 0 {
            groups.push(blob.len() as u64);
            0
        } else {
            key.iter().zip(last).take_while(|(a, b)| a == b).count()
        };
        varint::write(shared as u64, &mut blob);
        varint::write((key.len() - shared) as u64, &mut blob);
        blob.extend_from_slice(&key[shared..]);
        last = key;
    }
    let length = (blob.len() as u64).to_le_bytes().to_vec();
    let groups = pack(groups, blob.len() as u64);
    [length, blob, groups, Vec::new(), Vec::new()]
}

impl KeyIndex {
    /// Reads five sections of `part` from `first` on.
    pub(crate) fn open(part: &Part, first: usize, key_type: KeyType, count: usize) -> Self {
        let sections: [Bytes; 5] = std::array::from_fn(|index| part.section(first + index));
        match key_type {
            KeyType::U64 => Self::Numbers(EliasFano::new(sections, count)),
            KeyType::Bytes => {
                let [length, blob, groups, ..] = sections;
                Self::Strings(StringKeys { blob, groups: Packed::new(groups, width_of(load(&length, 0))), count })
            }
        }
    }

    /// The record of `key`.
    #[inline]
    pub(crate) fn find(&self, key: &Key) -> Option<u32> {
        match (self, key) {
            (Self::Numbers(keys), Key::U64(key)) => keys.find(*key).map(|index| index as u32),
            (Self::Strings(keys), Key::Bytes(key)) => keys.rank(key).1,
            _ => None,
        }
    }

    /// How many keys are below `key`, or with `inclusive` not above it.
    pub(crate) fn rank(&self, key: &Key, inclusive: bool) -> u32 {
        let (below, found) = match (self, key) {
            (Self::Numbers(keys), Key::U64(key)) => (keys.rank(*key) as u32, keys.find(*key).is_some()),
            (Self::Strings(keys), Key::Bytes(key)) => {
                let (below, found) = keys.rank(key);
                (below, found.is_some())
            }
            _ => (0, false),
        };
        below + u32::from(inclusive && found)
    }

    pub(crate) fn get(&self, record: u32) -> Key {
        match self {
            Self::Numbers(keys) => Key::U64(keys.get(record as usize)),
            Self::Strings(keys) => Key::Bytes(keys.get(record as usize)),
        }
    }

    pub(crate) fn get_all(&self, records: &[u32]) -> Keys {
        match self {
            Self::Numbers(keys) => Keys::U64(keys.get_all(records)),
            Self::Strings(keys) => Keys::Bytes(records.iter().map(|record| keys.get(*record as usize)).collect()),
        }
    }
}

impl StringKeys {
    /// Reads the key at `at` over the one before it; the offset after it.
    fn step(&self, at: usize, key: &mut Vec<u8>) -> usize {
        let (shared, at) = varint::read(&self.blob, at);
        let (length, at) = varint::read(&self.blob, at);
        key.truncate(shared as usize);
        let end = at.saturating_add(length as usize);
        key.extend_from_slice(self.blob.get(at..end).unwrap_or_default());
        end
    }

    fn get(&self, index: usize) -> Vec<u8> {
        let mut key = Vec::new();
        let mut at = self.groups.get(index / GROUP) as usize;
        for _ in 0..=index % GROUP {
            at = self.step(at, &mut key);
        }
        key
    }

    /// How many keys are below `wanted`, and its index if it is one.
    fn rank(&self, wanted: &[u8]) -> (u32, Option<u32>) {
        let (mut low, mut high) = (0, self.count.div_ceil(GROUP));
        let mut key = Vec::new();
        while low < high {
            let middle = (low + high) / 2;
            key.clear();
            self.step(self.groups.get(middle) as usize, &mut key);
            if key.as_slice() <= wanted { low = middle + 1 } else { high = middle }
        }
        let Some(group) = low.checked_sub(1) else { return (0, None) };
        key.clear();
        let mut at = self.groups.get(group) as usize;
        let from = group * GROUP;
        for index in from..self.count.min(from + GROUP) {
            at = self.step(at, &mut key);
            if key.as_slice() >= wanted {
                return (index as u32, (key == wanted).then_some(index as u32));
            }
        }
        (self.count.min(from + GROUP) as u32, None)
    }
}
