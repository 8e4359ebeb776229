//! The peer at the ceiling: plain records in a hash map, with an inverted index, whatever memory that takes.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use xxhash_rust::xxh3::Xxh3DefaultBuilder;

use super::row::{self, Row};
use crate::workload::{ATTRIBUTES, Records};

/// A hash map of plain records with an inverted index: the ceiling.
pub(crate) struct Plain<'a> {
    records: HashMap<u64, Box<[u8]>, BuildHasherDefault<KeyHasher>>,
    /// Keys of each value, ascending, an index an attribute.
    postings: Vec<HashMap<&'a [u8], Vec<u64>, Xxh3DefaultBuilder>>,
}

impl<'a> Plain<'a> {
    /// Keeps the records, and indexes `attributes` (by place).
    pub(crate) fn new(records: &'a Records, attributes: &[usize]) -> Self {
        let body = |row| {
            let mut body = Vec::with_capacity(160);
            row::write(records, row, &mut body);
            body.into_boxed_slice()
        };
        let bodies = records.keys.iter().enumerate().map(|(row, &key)| (key, body(row))).collect();
        let mut postings: Vec<HashMap<&[u8], Vec<u64>, Xxh3DefaultBuilder>> = vec![HashMap::default(); ATTRIBUTES.len()];
        for &attribute in attributes {
            for (row, &key) in records.keys.iter().enumerate() {
                postings[attribute].entry(records.value(row, attribute)).or_default().push(key);
            }
        }
        Self { records: bodies, postings }
    }

    /// Puts a record's values into `into`.
    pub(crate) fn get(&self, key: u64, into: &mut Row) -> bool {
        self.records.get(&key).map(|body| into.read(body)).is_some()
    }

    /// The keys of a value, ascending.
    pub(crate) fn search(&self, attribute: usize, value: &[u8]) -> Vec<u64> {
        self.postings[attribute].get(value).cloned().unwrap_or_default()
    }
}

/// One multiplication: a good engineer's hash of a number.
#[derive(Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are numbers")
    }

    fn write_u64(&mut self, key: u64) {
        let wide = u128::from(key ^ 0x9E37_79B9_7F4A_7C15) * 0xD6E8_FEB8_6659_FD93;
        self.0 = (wide >> 64) as u64 ^ wide as u64;
    }
}
