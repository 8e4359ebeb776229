//! Updates on their way into a shard: searched by a suffix array as it is (Succinct, section 4.1: the SuffixStore), and never changed once
//! they are sorted.

pub(crate) mod build;
mod search;

use std::ops::Range;

use crate::interval::Suffixes;
use crate::model::alphabet::{Alphabet, Meaning};
use crate::model::key::Key;
use crate::model::schema::Schema;
use crate::psi::Column;
use crate::record::Record;

/// Updates of many keys in bulk: the text of their records as it is, with its suffix array (Succinct, section 4.1).
///
/// It takes five bytes a symbol and never changes; it is asked with the same queries as a [`Shard`](crate::Shard), and
/// speaks of deleted keys too.
pub struct SuffixStore {
    schema: Schema,
    alphabet: Alphabet,
    /// In order; whether each has a record, and where the record's text begins.
    keys: Vec<Key>,
    puts: Vec<bool>,
    starts: Vec<u32>,
    text: Vec<u8>,
    array: Vec<i32>,
    columns: Vec<Column>,
}

impl SuffixStore {
    /// How many keys it speaks of.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether it speaks of none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// About the memory that it takes.
    pub fn bytes(&self) -> usize {
        let key = size_of::<Key>() + size_of::<u32>() + 1;
        let keys: usize = self.keys.iter().map(|key| if matches!(key, Key::Bytes(_)) { key.len() } else { 0 }).sum();
        self.text.len() * (1 + size_of::<i32>()) + self.keys.len() * key + keys
    }

    /// About the bytes of its records, as they count for a shard's input.
    pub fn input_bytes(&self) -> usize {
        self.text.len() + self.keys.iter().map(Key::len).sum::<usize>()
    }

    /// The key at a place, in order.
    pub fn key(&self, place: usize) -> &Key {
        &self.keys[place]
    }

    /// The place of a key that it speaks of.
    pub fn find(&self, key: &Key) -> Option<usize> {
        self.keys.binary_search(key).ok()
    }

    /// Puts the record at a place, or some of its attributes, into `out`; false if the key was deleted.
    pub fn read(&self, place: usize, columns: Option<&[usize]>, out: &mut Record) -> bool {
        out.clear();
        if !self.puts[place] {
            return false;
        }
        let text = &self.text[self.starts[place] as usize..self.starts[place + 1] as usize];
        match columns {
            None => self.values(text, out),
            Some(columns) => {
                let mut all = Record::new();
                self.values(text, &mut all);
                for column in columns {
                    out.bytes.extend_from_slice(all.bytes(*column).unwrap_or_default());
                    out.end_value(all.bytes(*column).is_none());
                }
            }
        }
        true
    }

    /// Spells out a record.
    fn values(&self, text: &[u8], out: &mut Record) {
        let (mut upper, mut null) = (0, false);
        for symbol in text.iter().skip(1) {
            match self.alphabet.meaning(*symbol) {
                Meaning::Byte(byte) => out.bytes.push(byte),
                Meaning::First(first) => upper = first,
                Meaning::Second(second) => out.bytes.push(self.alphabet.pair(upper, second)),
                Meaning::Null => null = true,
                Meaning::Delimiter(_) | Meaning::End => out.end_value(std::mem::take(&mut null)),
            }
        }
        out.end_value(null);
    }

    /// The record, by its place, and the attribute that a position of the text lies in.
    fn place_of(&self, position: usize) -> (u32, usize) {
        // Of places with one start all but the last are deletions.
        let place = self.starts[..self.keys.len()].partition_point(|start| *start as usize <= position) - 1;
        let delimiter = self.text[..=position].iter().rev().find_map(|symbol| match self.alphabet.meaning(*symbol) {
            Meaning::Delimiter(attribute) => Some(attribute as usize),
            _ => None,
        });
        (place as u32, delimiter.unwrap_or_default())
    }

    /// The first row of a suffix for which `below` doesn't hold, among those that begin with `symbol`.
    fn border(&self, symbol: u8, below: impl Fn(&[u8]) -> bool) -> u32 {
        let column = self.column(symbol);
        let rows = &self.array[column.start as usize..column.end() as usize];
        column.start + rows.partition_point(|position| below(&self.text[*position as usize..])) as u32
    }
}

impl Suffixes for SuffixStore {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    fn column(&self, symbol: u8) -> Column {
        self.columns.get(symbol as usize).copied().unwrap_or_default()
    }

    fn prefix(&self, pattern: &[u8]) -> Range<u32> {
        let (from, to) = (self.lower(pattern), self.upper(pattern));
        if from < to { from..to } else { 0..0 }
    }

    fn lower(&self, pattern: &[u8]) -> u32 {
        pattern.first().map_or(0, |first| self.border(*first, |suffix| suffix < pattern))
    }

    fn upper(&self, pattern: &[u8]) -> u32 {
        let head = |suffix: &[u8]| suffix[..pattern.len().min(suffix.len())] <= *pattern;
        pattern.first().map_or(0, |first| self.border(*first, head))
    }

    fn equal(&self, attribute: usize, value: &[u8]) -> Range<u32> {
        self.ended(attribute, [&[self.alphabet.delimiter(attribute)][..], value].concat())
    }

    fn ending(&self, attribute: usize, end: &[u8]) -> Range<u32> {
        self.ended(attribute, end.to_vec())
    }
}

impl SuffixStore {
    /// The rows that begin with `pattern` (symbols), where the value of `attribute` ends behind it.
    fn ended(&self, attribute: usize, mut pattern: Vec<u8>) -> Range<u32> {
        if attribute + 1 < self.schema.attributes.len() {
            pattern.push(self.alphabet.delimiter(attribute + 1));
            return self.prefix(&pattern);
        }
        // The last value ends at the next record or with the text, which is below.
        let from = self.lower(&pattern);
        pattern.push(self.alphabet.delimiter(0));
        from..self.upper(&pattern).max(from)
    }
}
