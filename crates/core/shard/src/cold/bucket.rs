//! Buckets: the keys of some values of an attribute.

use forebay_types::Result;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::block::{checksum, damaged};
use super::cursor::{Cursor, put_key};
use crate::model::key::{Key, KeyType};
use crate::record::varint;

/// A value of more bytes stands there as its XXH3-128.
const VALUE_BYTES_MAX: usize = 16;

/// Which of so many buckets a value is in. Buckets are in the order of hashes.
pub(super) fn bucket_of(hash: u64, buckets: u64) -> u64 {
    ((u128::from(hash) * u128::from(buckets)) >> 64) as u64
}

pub(super) fn hash(value: &[u8]) -> u64 {
    xxh3_64(value)
}

/// Appends a value with its keys, which are in order.
pub(super) fn put(value: &[u8], keys: &[&Key], out: &mut Vec<u8>) {
    let (name, is_hash) = name(value);
    varint::write((name.len() as u64) << 1 | u64::from(is_hash), out);
    out.extend_from_slice(&name);
    let mut list = Vec::new();
    let mut before = None;
    for key in keys {
        put_key(key, before, &mut list);
        before = Some(*key);
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
    if *sum != head(place, values) {
        return Err(damaged());
    }
    keys(values, value, key_type).ok_or_else(damaged)
}

fn keys(values: &[u8], value: &[u8], key_type: KeyType) -> Option<Vec<Key>> {
    let (name, is_hash) = name(value);
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

fn name(value: &[u8]) -> (Vec<u8>, bool) {
    match value.len() <= VALUE_BYTES_MAX {
        true => (value.to_vec(), false),
        false => (xxh3_128(value).to_le_bytes().to_vec(), true),
    }
}
