//! Inverted indexes: an equality is answered by the keys themselves, at once, for more bytes than postings take.

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use crate::bits::word::load;
use crate::keys::Keys;
use crate::model::key::KeyType;
use crate::part::Part;
use crate::record::varint;

/// A slice of an inverted index: for the values of some rows of one attribute, the keys in order, found by hash.
#[derive(Clone, Debug)]
pub(crate) struct IndexSlice {
    /// Offsets of groups plus one, by hash of the value; a power of two of them.
    table: Bytes,
    slots: usize,
    groups: Bytes,
    entries: Bytes,
}

/// Groups of equal values on their way into a slice.
#[derive(Default)]
pub(crate) struct IndexWriter {
    places: Vec<(u64, u32)>,
    groups: Vec<u8>,
    entries: Vec<u8>,
}

impl IndexWriter {
    /// Adds the group of `value`: 8 bytes an entry.
    pub(crate) fn push(&mut self, value: &[u8], entries: impl ExactSizeIterator<Item = u64>) {
        assert!(u32::try_from(self.groups.len() + 1).is_ok(), "a group at byte {}: its place has four bytes", self.groups.len());
        self.places.push((xxh3_64(value), self.groups.len() as u32 + 1));
        varint::write(value.len() as u64, &mut self.groups);
        self.groups.extend_from_slice(value);
        varint::write(self.entries.len() as u64 / 8, &mut self.groups);
        varint::write(entries.len() as u64, &mut self.groups);
        entries.for_each(|entry| self.entries.extend_from_slice(&entry.to_le_bytes()));
    }

    /// The sections: table, groups, entries.
    pub(crate) fn finish(self) -> [Vec<u8>; 4] {
        let slots = (self.places.len() * 3 / 2 + 1).next_power_of_two();
        assert!(slots > self.places.len(), "a look-up ends at a free slot");
        let mut table = vec![0u32; slots];
        for (hash, place) in self.places {
            let mut at = hash as usize & (slots - 1);
            while table[at] != 0 {
                at = (at + 1) & (slots - 1);
            }
            table[at] = place;
        }
        let table = table.into_iter().flat_map(u32::to_le_bytes).collect();
        [(slots as u64).to_le_bytes().to_vec(), table, self.groups, self.entries]
    }
}

impl IndexSlice {
    pub(crate) fn open(part: &Part) -> Self {
        let slots = (load(&part.section(0), 0) as usize).max(1);
        Self { slots, table: part.section(1), groups: part.section(2), entries: part.section(3) }
    }

    /// Appends the entries of `value`, whose hash is `hash`: number keys, or the records of string keys. Those from `lowest` on,
    /// at most `count`.
    #[inline]
    pub(crate) fn find(&self, hash: u64, value: &[u8], lowest: u64, count: usize, out: &mut Vec<u64>) {
        let mut at = hash as usize & (self.slots - 1);
        for _ in 0..self.slots {
            let place = load(&self.table, at * 4) as u32;
            if place == 0 {
                return;
            }
            let (length, from) = varint::read(&self.groups, place as usize - 1);
            let end = from.saturating_add(length as usize);
            if self.groups.get(from..end) == Some(value) {
                let (first, next) = varint::read(&self.groups, end);
                let (length, _) = varint::read(&self.groups, next);
                let from = first as usize * 8;
                let entries = self.entries.get(from..from.saturating_add(length as usize * 8)).unwrap_or_default();
                let entries = entries.as_chunks::<8>().0;
                let above = entries.partition_point(|entry| u64::from_le_bytes(*entry) < lowest);
                out.extend(entries[above..].iter().take(count).map(|entry| u64::from_le_bytes(*entry)));
                return;
            }
            at = (at + 1) & (self.slots - 1);
        }
    }

    /// The hash that [`find`](Self::find) wants.
    #[inline]
    pub(crate) fn hash(value: &[u8]) -> u64 {
        xxh3_64(value)
    }
}

pub(crate) fn keys_of(key_type: KeyType, entries: Vec<u64>, key: impl Fn(u32) -> Vec<u8>) -> Keys {
    match key_type {
        KeyType::U64 => Keys::U64(entries),
        KeyType::Bytes => Keys::Bytes(entries.into_iter().map(|record| key(record as u32)).collect()),
    }
}
