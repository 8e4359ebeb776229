//! Buckets: the keys of some values of an attribute.

use std::io::Read;

use forebay_types::{Result, digest};

use super::block::{checksum, damaged};
use super::cursor::{Cursor, put_key};
use crate::model::key::{Key, KeyType};
use crate::record::varint;

/// A value of more bytes stands there as its digest.
const VALUE_BYTES_MAX: usize = 16;

/// Which of so many buckets a value is in. Buckets are in the order of hashes.
pub(super) fn bucket_of(hash: u64, buckets: u64) -> u64 {
    ((u128::from(hash) * u128::from(buckets)) >> 64) as u64
}

/// What a value is called in a bucket: itself, or its digest where it is long, since nothing compares the values themselves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    length: u8,
    pub(super) is_hash: bool,
    bytes: [u8; VALUE_BYTES_MAX],
}

impl Name {
    pub(super) fn of(value: &[u8]) -> Self {
        let mut bytes = [0; VALUE_BYTES_MAX];
        let is_hash = value.len() > VALUE_BYTES_MAX;
        if is_hash {
            bytes = digest(&[value]).to_be_bytes();
        } else {
            bytes[..value.len()].copy_from_slice(value);
        }
        Self { length: value.len().min(VALUE_BYTES_MAX) as u8, is_hash, bytes }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length as usize]
    }

    fn head(&self) -> u8 {
        self.length << 1 | u8::from(self.is_hash)
    }

    /// Appends it, as [`Self::read`] reads it.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(self.head());
        out.extend_from_slice(self.as_bytes());
    }

    pub(super) fn read(from: &mut impl Read) -> std::io::Result<Self> {
        let (mut head, mut bytes) = ([0], [0; VALUE_BYTES_MAX]);
        from.read_exact(&mut head)?;
        let length = (head[0] >> 1).min(VALUE_BYTES_MAX as u8);
        from.read_exact(&mut bytes[..length as usize])?;
        Ok(Self { length, is_hash: head[0] & 1 == 1, bytes })
    }
}

/// Appends a value with its keys, which are in order.
pub(super) fn put(name: &Name, keys: impl Iterator<Item = Key>, out: &mut Vec<u8>) {
    name.write(out);
    let mut list = Vec::new();
    let mut before = None;
    for key in keys {
        put_key(&key, before.as_ref(), &mut list);
        before = Some(key);
    }
    varint::write(list.len() as u64, out);
    out.extend_from_slice(&list);
}

/// What stands before a bucket's values.
pub(super) fn head(place: u64, values: &[u8]) -> [u8; 4] {
    checksum(place, &[values]).to_le_bytes()
}

/// The keys of a value; none where the bucket has no such value.
pub(super) fn find(place: u64, bytes: &[u8], value: &[u8], key_type: KeyType) -> Result<Vec<Key>> {
    let (sum, values) = bytes.split_first_chunk::<4>().ok_or_else(damaged)?;
    if *sum != head(place, values) { Err(damaged()) } else { keys(values, value, key_type).ok_or_else(damaged) }
}

fn keys(values: &[u8], value: &[u8], key_type: KeyType) -> Option<Vec<Key>> {
    let name = Name::of(value);
    let (name, is_hash) = (name.as_bytes(), name.is_hash);
    let mut cursor = Cursor(values);
    while !cursor.0.is_empty() {
        let head = cursor.number()?;
        let is_it = head & 1 == u64::from(is_hash) && cursor.bytes(head >> 1)? == name;
        if head & 1 != u64::from(is_hash) {
            cursor.bytes(head >> 1)?;
        }
        let length = cursor.number()?;
        let mut list = Cursor(cursor.bytes(length)?);
        if is_it {
            let mut keys: Vec<Key> = Vec::new();
            while !list.0.is_empty() {
                keys.push(list.key(key_type, keys.last())?);
            }
            return Some(keys);
        }
    }
    Some(Vec::new())
}
