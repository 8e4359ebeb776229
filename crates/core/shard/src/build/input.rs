//! What a builder takes in, before anything of it becomes text: keys, values, and what is noted of both on the way.

use super::distinct::Distinct;
use crate::model::key::{Key, KeyType};
use crate::model::schema::Schema;
use crate::record::varint;

/// Records as they came: all values back to back, and their lengths plus one (0 for null).
pub(crate) struct Input {
    pub(crate) keys: KeyList,
    pub(crate) values: Vec<u8>,
    pub(crate) lengths: Vec<u8>,
    pub(crate) lengths_mark: usize,
    pub(super) distinct: Vec<Distinct>,
    /// The bytes that are in values.
    pub(super) used: [bool; 256],
    /// Whether any value is null.
    pub(super) nulls: bool,
}

impl Input {
    pub(crate) fn new(schema: &Schema) -> Self {
        Self {
            keys: KeyList::new(schema.key_type),
            values: Vec::new(),
            lengths: Vec::new(),
            lengths_mark: 0,
            distinct: schema.attributes.iter().map(|_| Distinct::new()).collect(),
            used: [false; 256],
            nulls: false,
        }
    }

    /// Ends the value whose bytes begin at `from`, or null.
    pub(crate) fn end_value(&mut self, attribute: usize, from: Option<usize>) {
        match from {
            Some(from) => {
                let value = &self.values[from..];
                self.distinct[attribute].add(value);
                value.iter().for_each(|byte| self.used[*byte as usize] = true);
                varint::write(value.len() as u64 + 1, &mut self.lengths);
            }
            None => {
                self.nulls = true;
                self.lengths.push(0);
            }
        }
    }

    /// Takes back the values of a record that was refused.
    pub(crate) fn forget(&mut self, mark: usize) {
        self.values.truncate(mark);
        self.lengths.truncate(self.lengths_mark);
    }

    /// Puts the records in the order of their keys. Returns the bytes of those that a later one replaced.
    pub(crate) fn sort(&mut self, attributes: usize) -> u64 {
        let mut places = Vec::with_capacity(self.keys.len());
        let (mut at, mut from) = (0, 0);
        for _ in 0..self.keys.len() {
            let (next, bytes) = record_extent(&self.lengths, at, attributes);
            places.push((at, next - at, from, bytes));
            (at, from) = (next, from + bytes);
        }
        assert!(
            at == self.lengths.len() && from == self.values.len(),
            "lengths and values are those of {} keys",
            self.keys.len()
        );
        let order = self.keys.order();
        let before = self.keys.bytes() + self.values.len() as u64 + (self.keys.len() * attributes) as u64;
        let (mut values, mut lengths) = (Vec::with_capacity(self.values.len()), Vec::with_capacity(self.lengths.len()));
        for index in &order {
            let (at, length, from, bytes) = places[*index as usize];
            lengths.extend_from_slice(&self.lengths[at..at + length]);
            values.extend_from_slice(&self.values[from..from + bytes]);
        }
        (self.values, self.lengths) = (values, lengths);
        self.keys = self.keys.select(&order);
        debug_assert!(self.keys.order().into_iter().eq(0..self.keys.len() as u32), "keys grow, and each is there once");
        before - (self.keys.bytes() + self.values.len() as u64 + (self.keys.len() * attributes) as u64)
    }

    /// How many distinct values an attribute has, about.
    pub(crate) fn distinct(&self, attribute: usize) -> u64 {
        self.distinct[attribute].estimate()
    }

    /// Calls with each record's bytes of `lengths` and of the values.
    pub(crate) fn for_each_record(&self, attributes: usize, mut call: impl FnMut(usize, &[u8], &[u8])) {
        let (mut at, mut from) = (0, 0);
        for record in 0..self.keys.len() {
            let (next, bytes) = record_extent(&self.lengths, at, attributes);
            call(record, &self.lengths[at..next], &self.values[from..from + bytes]);
            (at, from) = (next, from + bytes);
        }
        assert!(
            at == self.lengths.len() && from == self.values.len(),
            "lengths and values are those of {} keys",
            self.keys.len()
        );
    }
}

/// The keys of the records so far.
pub(crate) enum KeyList {
    Numbers(Vec<u64>),
    Strings { blob: Vec<u8>, ends: Vec<u32> },
}

impl KeyList {
    pub(crate) fn new(key_type: KeyType) -> Self {
        match key_type {
            KeyType::U64 => Self::Numbers(Vec::new()),
            KeyType::Bytes => Self::Strings { blob: Vec::new(), ends: Vec::new() },
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Numbers(keys) => keys.len(),
            Self::Strings { ends, .. } => ends.len(),
        }
    }

    pub(crate) fn key(&self, index: usize) -> Key {
        match self {
            Self::Numbers(keys) => Key::U64(keys[index]),
            Self::Strings { .. } => Key::Bytes(self.string(index).to_vec()),
        }
    }

    pub(crate) fn string(&self, index: usize) -> &[u8] {
        match self {
            Self::Numbers(_) => &[],
            Self::Strings { blob, ends } => {
                let from = if index == 0 { 0 } else { ends[index - 1] as usize };
                &blob[from..ends[index] as usize]
            }
        }
    }

    /// True if the key is above all before it.
    pub(crate) fn push(&mut self, key: &Key) -> bool {
        let count = self.len();
        match (&mut *self, key) {
            (Self::Numbers(keys), Key::U64(key)) => {
                let grows = keys.last().is_none_or(|last| last < key);
                keys.push(*key);
                grows
            }
            (Self::Strings { blob, ends }, Key::Bytes(key)) => {
                blob.extend_from_slice(key);
                ends.push(blob.len() as u32);
                count == 0 || self.string(count - 1) < key.as_slice()
            }
            _ => unreachable!("the key's type was checked"),
        }
    }

    /// The records in the order of their keys, the last of each key only.
    pub(crate) fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        let same = |a: u32, b: u32| match self {
            Self::Numbers(keys) => keys[a as usize] == keys[b as usize],
            Self::Strings { .. } => self.string(a as usize) == self.string(b as usize),
        };
        match self {
            Self::Numbers(keys) => order.sort_unstable_by_key(|index| (keys[*index as usize], *index)),
            Self::Strings { .. } => {
                order.sort_unstable_by(|a, b| self.string(*a as usize).cmp(self.string(*b as usize)).then(a.cmp(b)));
            }
        }
        let mut kept: Vec<u32> = Vec::with_capacity(order.len());
        for index in order {
            match kept.last_mut() {
                Some(last) if same(*last, index) => *last = index,
                _ => kept.push(index),
            }
        }
        kept
    }

    pub(crate) fn select(&self, order: &[u32]) -> Self {
        match self {
            Self::Numbers(keys) => Self::Numbers(order.iter().map(|index| keys[*index as usize]).collect()),
            Self::Strings { .. } => {
                let (mut blob, mut ends) = (Vec::new(), Vec::with_capacity(order.len()));
                for index in order {
                    blob.extend_from_slice(self.string(*index as usize));
                    ends.push(blob.len() as u32);
                }
                Self::Strings { blob, ends }
            }
        }
    }

    /// Bytes of all keys.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Numbers(keys) => keys.len() as u64 * 8,
            Self::Strings { blob, .. } => blob.len() as u64,
        }
    }
}

/// Reads the lengths of one record's values: the bytes it takes of `lengths` and of the values.
fn record_extent(lengths: &[u8], mut at: usize, attributes: usize) -> (usize, usize) {
    let mut bytes = 0;
    for _ in 0..attributes {
        let (length, next) = varint::read(lengths, at);
        bytes += length.saturating_sub(1) as usize;
        at = next;
    }
    (at, bytes)
}

/// Calls with each value of a record, by its attribute.
pub(crate) fn for_each_value<'v>(
    attributes: usize,
    lengths: &[u8],
    mut values: &'v [u8],
    mut call: impl FnMut(usize, Option<&'v [u8]>),
) {
    let mut at = 0;
    for attribute in 0..attributes {
        let (length, next) = varint::read(lengths, at);
        at = next;
        let (value, rest) = values.split_at(length.saturating_sub(1) as usize);
        values = rest;
        call(attribute, (length > 0).then_some(value));
    }
}
