//! The objects that a dataset follows, and which keys came from each.

use forebay_shard::{Key, KeyType};
use forebay_types::{Error, ForebayPath, Result};
use serde::{Deserialize, Serialize};

use super::names::is_log;

const MAGIC: &[u8; 8] = b"FBDSKEYS";
const VERSION: u32 = 1;
/// Magic, version, checksum of what follows, type of the keys, their count.
const HEADER_BYTES: usize = 28;
/// A year: objects are looked at so often at least, or never.
const EVERY_MS_MAX: u64 = 366 * 24 * 3600 * 1000;
/// Paths that it was made from, at most.
const FROM_MAX: usize = 1024;

/// Bytes of the keys of one source at most: few bytes can say many, where keys begin with what the ones before were.
pub const KEY_BYTES_MAX: usize = 512 << 20;

/// Keys that have room before the first of them is read.
const ROOM_MAX: usize = 1 << 20;

/// Keys of one source at most: those that are read are in memory together.
pub const KEYS_MAX: usize = KEY_BYTES_MAX / 8;

/// What a dataset follows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatasetFollowing {
    /// What its sources are kept under, drawn by chance as a log's name is: it stays when the dataset has other shards, and another dataset
    /// in the same folder has another one.
    pub name: String,
    /// Objects, patterns of objects, and folders of the dataset's mount.
    pub from: Vec<String>,
    /// How often it is looked whether they have changed, in milliseconds; 0 where nobody looks by himself.
    pub every_ms: u64,
}

impl DatasetFollowing {
    /// `Invalid` where more is followed than can be, or by a dataset without a log, which nobody changes.
    pub(super) fn check(&self, has_log: bool) -> Result<()> {
        if self.from.is_empty() || self.from.len() > FROM_MAX {
            return Err(Error::invalid(format!("a dataset follows 1 to {FROM_MAX} paths, not {}", self.from.len())));
        }
        if self.every_ms > EVERY_MS_MAX {
            return Err(Error::invalid("objects are followed once a year at least, or by order alone"));
        }
        match has_log && is_log(&self.name) && self.from.iter().all(|path| path.parse::<ForebayPath>().is_ok()) {
            true => Ok(()),
            false => Err(Error::corrupt("what a dataset follows is not named as objects are")),
        }
    }
}

/// Keys as an object keeps them; they ascend, and are of one type.
pub fn encode_keys(keys: &[Key]) -> Vec<u8> {
    assert!(keys.is_sorted_by(|a, b| a < b), "keys ascend");
    let mut bytes = Vec::with_capacity(HEADER_BYTES + keys.len() * 2);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&kind(keys.first().map_or(KeyType::U64, Key::key_type)).to_le_bytes());
    bytes.extend_from_slice(&(keys.len() as u64).to_le_bytes());
    let (mut number, mut text): (u64, &[u8]) = (0, &[]);
    for key in keys {
        match key {
            Key::U64(key) => {
                write_number(key - number, &mut bytes);
                number = *key;
            }
            Key::Bytes(key) => {
                let shared = key.iter().zip(text).take_while(|(a, b)| a == b).count();
                write_number(shared as u64, &mut bytes);
                write_number((key.len() - shared) as u64, &mut bytes);
                bytes.extend_from_slice(&key[shared..]);
                text = key.as_slice();
            }
        }
    }
    let checksum = forebay_types::crc32c(&bytes[16..]);
    bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Reads what [`encode_keys`] wrote, from whoever it comes, where it is `count` keys of a type. `what` names it in errors.
pub fn decode_keys(bytes: &[u8], key_type: KeyType, count: u64, what: &str) -> Result<Vec<Key>> {
    let damaged = || Error::corrupt(format!("{what}: the keys of a source are damaged: create the dataset again with --replace"));
    let (header, mut rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or_else(damaged)?;
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    let found = u64::from_le_bytes(header[20..28].try_into().expect("eight bytes"));
    if &header[..8] != MAGIC {
        return Err(damaged());
    }
    if word(8) > VERSION {
        return Err(Error::invalid(format!("{what}: it is of a newer version of Forebay: use that one")));
    }
    let is_whole = word(8) == VERSION && word(12) == forebay_types::crc32c(&bytes[16..]) && found == count;
    if !is_whole || (count > 0 && word(16) != kind(key_type)) {
        return Err(damaged());
    }
    let mut keys: Vec<Key> = Vec::with_capacity(room(count, rest.len()).ok_or_else(damaged)?);
    let mut key_bytes = 0usize;
    for _ in 0..count {
        let key = read_key(&mut rest, key_type, keys.last()).ok_or_else(damaged)?;
        key_bytes = key_bytes.saturating_add(key.len());
        if key_bytes > KEY_BYTES_MAX || keys.last().is_some_and(|last| *last >= key) {
            return Err(damaged());
        }
        keys.push(key);
    }
    if rest.is_empty() { Ok(keys) } else { Err(damaged()) }
}

/// For how many of so many keys, in so many bytes, there is room at first; none where there can't be so many.
fn room(count: u64, bytes: usize) -> Option<usize> {
    let count = usize::try_from(count).ok()?;
    // Each takes a byte at least.
    (count <= bytes.min(KEYS_MAX)).then_some(count.min(ROOM_MAX))
}

fn kind(key_type: KeyType) -> u32 {
    match key_type {
        KeyType::U64 => 0,
        KeyType::Bytes => 1,
    }
}

fn read_key(rest: &mut &[u8], key_type: KeyType, last: Option<&Key>) -> Option<Key> {
    match key_type {
        KeyType::U64 => {
            let before = if let Some(Key::U64(before)) = last { *before } else { 0 };
            Some(Key::U64(before.checked_add(read_number(rest)?)?))
        }
        KeyType::Bytes => {
            let before = if let Some(Key::Bytes(before)) = last { before.as_slice() } else { &[] };
            let (shared, own) = (usize::try_from(read_number(rest)?).ok()?, usize::try_from(read_number(rest)?).ok()?);
            let (own, after) = rest.split_at_checked(own)?;
            *rest = after;
            Some(Key::Bytes([before.get(..shared)?, own].concat()))
        }
    }
}

/// Seven bits a byte, the lowest first; the high bit says that more follow.
fn write_number(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read_number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        let bits = u64::from(byte & 0x7f);
        // The tenth byte has one bit of a number.
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{Column, ColumnKind, Columns};
    use crate::dataset::{Dataset, DatasetFile, DatasetShard};

    #[test]
    fn what_is_followed_comes_back_and_is_of_a_version_that_programs_without_it_refuse() {
        let column = |name: &str| Column { name: name.into(), kind: ColumnKind::Int };
        let file = DatasetFile { name: "manifest".into(), object: format!("{:032x}", 7), bytes: 3, crc32c: 1 };
        let columns = Columns::new(vec![column("k"), column("v")], "k").unwrap();
        let shard = DatasetShard { files: vec![file], log_from: 1, ..DatasetShard::default() };
        let plain = Dataset { log: Some("0123456789abcdef".into()), ..Dataset::new(columns, vec![0.5], vec![shard]) };
        assert!(plain.encode().unwrap().starts_with(b"forebay-shards 2 "));
        let following = DatasetFollowing { name: "fedcba9876543210".into(), from: vec!["/lake/orders".into()], every_ms: 60_000 };
        let following = |change: &dyn Fn(&mut DatasetFollowing)| {
            let mut following = following.clone();
            change(&mut following);
            Dataset { following: Some(following), ..plain.clone() }
        };
        let followed = following(&|_| {});
        let bytes = followed.encode().unwrap();
        assert!(bytes.starts_with(b"forebay-shards 3 "));
        assert_eq!(Dataset::decode(&bytes, "m").unwrap(), followed);
        assert_eq!(followed.shard_id(1, "a", 0), plain.shard_id(1, "a", 0));
        for wrong in [
            following(&|following| following.from.clear()),
            following(&|following| following.name = "../secret".into()),
            following(&|following| following.every_ms = u64::MAX),
            following(&|following| following.from = vec!["no path".into()]),
            following(&|following| following.from = vec!["/lake/a".into(); 1025]),
            Dataset { log: None, ..followed.clone() },
        ] {
            assert!(wrong.encode().is_err());
        }
    }

    fn numbers() -> Vec<Key> {
        [0, 1, 2, 200, 1 << 40, u64::MAX].map(Key::U64).to_vec()
    }

    fn texts() -> Vec<Key> {
        ["", "a", "ab", "abc\u{fc}", "b"].map(Key::from).to_vec()
    }

    #[test]
    fn keys_come_back_and_no_flipped_bit_passes() {
        for (keys, key_type) in [(numbers(), KeyType::U64), (texts(), KeyType::Bytes), (vec![], KeyType::Bytes)] {
            let bytes = encode_keys(&keys);
            let count = keys.len() as u64;
            assert_eq!(decode_keys(&bytes, key_type, count, "keys").unwrap(), keys);
            assert!(decode_keys(&bytes, key_type, count + 1, "keys").is_err(), "others than the manifest says");
            for at in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1;
                assert!(decode_keys(&damaged, key_type, count, "keys").is_err(), "byte {at}");
                assert!(decode_keys(&bytes[..at], key_type, count, "keys").is_err(), "cut at {at}");
            }
        }
        assert!(decode_keys(&encode_keys(&texts()), KeyType::U64, 5, "keys").is_err(), "of another type");
    }

    #[test]
    fn what_no_keys_could_be_is_damage_whatever_its_checksum() {
        let with_sum = |mut bytes: Vec<u8>| {
            let checksum = forebay_types::crc32c(&bytes[16..]);
            bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
            bytes
        };
        let mut many = encode_keys(&numbers());
        many[20..28].copy_from_slice(&u64::MAX.to_le_bytes());
        let mut twice = encode_keys(&numbers());
        twice[HEADER_BYTES + 1] = 0;
        let mut beyond = encode_keys(&texts());
        beyond[HEADER_BYTES + 1] = 0x7f;
        for (bytes, key_type, count) in [(many, KeyType::U64, u64::MAX), (twice, KeyType::U64, 6), (beyond, KeyType::Bytes, 5)] {
            assert!(decode_keys(&with_sum(bytes), key_type, count, "keys").is_err());
        }
    }

    #[test]
    fn no_memory_is_set_aside_for_keys_that_are_not_there() {
        assert_eq!((room(5, 9), room(10, 9)), (Some(5), None));
        assert_eq!((room(KEYS_MAX as u64, usize::MAX), room(KEYS_MAX as u64 + 1, usize::MAX)), (Some(ROOM_MAX), None));
    }

    #[test]
    fn neighbours_take_a_byte_each() {
        let keys: Vec<Key> = (1000..2000).map(Key::U64).collect();
        assert!(encode_keys(&keys).len() < HEADER_BYTES + 1002);
    }
}
