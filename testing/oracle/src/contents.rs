//! Bytes that say themselves which object, which version and which place they are of.
//!
//! An object is a run of records of 16 bytes: key, version, index of the record, and a number made of these three. Any range
//! that holds one whole record names its version, and every byte of a range can be compared with what that version has there.

use std::cell::RefCell;
use std::collections::VecDeque;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Bytes of a record.
pub const RECORD_BYTES: u64 = 16;
/// Shortest range that names its version wherever it begins.
pub const RANGE_BYTES_MIN: u64 = 2 * RECORD_BYTES;
/// Records of an object: at least, and how many more at most.
const RECORDS: (u64, u64) = (1 << 11, 14 << 10);
/// The same of small ones.
const RECORDS_SMALL: (u64, u64) = (1 << 11, 3 << 10);
/// Objects of this key and larger ones are small.
pub const SMALL: u32 = 1 << 16;

/// Versions whose bytes are kept: what is read was written not long ago.
const MADE_MAX: usize = 32;

thread_local! {
    static MADE: RefCell<VecDeque<((u32, u32), Bytes)>> = const { RefCell::new(VecDeque::new()) };
}

/// What bytes turned out to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// The bytes that this version has there, all of them.
    Version(u32),
    /// Bytes of two versions, or of two places.
    Mixed {
        /// The version that the first whole record names.
        first: u32,
        /// Offset in the object of the first byte that is not of it.
        at: u64,
    },
    /// Too few or too many bytes of a version.
    Length {
        /// The version.
        version: u32,
        /// Bytes that it has in the range that was asked for.
        expected: u64,
        /// Bytes that came.
        came: u64,
    },
    /// Bytes that nobody wrote.
    Foreign,
}

/// Bytes of a version of an object.
pub fn size(key: u32, version: u32) -> u64 {
    let (least, more) = if key < SMALL { RECORDS } else { RECORDS_SMALL };
    RECORD_BYTES * (least + u64::from(mix(key, version, u32::MAX)) % more)
}

/// All bytes of a version of an object.
pub fn bytes(key: u32, version: u32) -> Bytes {
    MADE.with_borrow_mut(|made| {
        if let Some((_, bytes)) = made.iter().find(|(of, _)| *of == (key, version)) {
            return bytes.clone();
        }
        let mut bytes = vec![0; size(key, version) as usize];
        let places = bytes.chunks_exact_mut(RECORD_BYTES as usize);
        (0..).zip(places).for_each(|(index, place)| place.copy_from_slice(&record(key, version, index)));
        let bytes = Bytes::from(bytes);
        if made.len() == MADE_MAX {
            made.pop_front();
        }
        made.push_back(((key, version), bytes.clone()));
        bytes
    })
}

/// What `came` is, of `asked` bytes from `start` on of the object `key`; bytes behind its end are not missed.
pub fn identify(key: u32, start: u64, asked: u64, came: &[u8]) -> Seen {
    let Some(version) = version_in(key, start, came) else { return Seen::Foreign };
    let expected = size(key, version).saturating_sub(start).min(asked);
    // As a rule all of it is right, which a comparison of the whole says sooner than one of each record.
    if bytes(key, version).get(start as usize..start as usize + came.len()) == Some(came) && came.len() as u64 == expected {
        return Seen::Version(version);
    }
    for (index, piece) in pieces(start, came) {
        let record = record(key, version, index);
        let offset = (start + piece.start as u64).saturating_sub(u64::from(index) * RECORD_BYTES) as usize;
        let right = &record[offset..offset + piece.len()];
        if let Some(wrong) = came[piece.clone()].iter().zip(right).position(|(came, right)| came != right) {
            return Seen::Mixed { first: version, at: start + (piece.start + wrong) as u64 };
        }
    }
    match came.len() as u64 == expected {
        true => Seen::Version(version),
        false => Seen::Length { version, expected, came: came.len() as u64 },
    }
}

/// The version that the first whole record of a range names.
fn version_in(key: u32, start: u64, came: &[u8]) -> Option<u32> {
    let skip = (start.next_multiple_of(RECORD_BYTES) - start) as usize;
    let first = came.get(skip..skip + RECORD_BYTES as usize)?;
    let number = |at: usize| u32::from_le_bytes([first[at], first[at + 1], first[at + 2], first[at + 3]]);
    let (version, index) = (number(4), number(8));
    (first == record(key, version, index)).then_some(version)
}

/// The records that a range touches: each one's index, and which bytes of the range are of it.
fn pieces(start: u64, came: &[u8]) -> impl Iterator<Item = (u32, std::ops::Range<usize>)> {
    let end = start + came.len() as u64;
    (start / RECORD_BYTES..end.div_ceil(RECORD_BYTES)).map(move |index| {
        let from = (index * RECORD_BYTES).max(start) - start;
        let to = ((index + 1) * RECORD_BYTES).min(end) - start;
        (index as u32, from as usize..to as usize)
    })
}

fn record(key: u32, version: u32, index: u32) -> [u8; RECORD_BYTES as usize] {
    let numbers = [mix(key, version, index), index, version, key];
    numbers.into_iter().fold(0, |record: u128, number| record << 32 | u128::from(number)).to_le_bytes()
}

/// A number that hardly any other three numbers have.
fn mix(key: u32, version: u32, index: u32) -> u32 {
    let seed = u64::from(key) << 40 ^ u64::from(version) << 20 ^ u64::from(index) ^ 0x5851_f42d_4c95_7f2d;
    let once = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let twice = (once ^ once >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (twice ^ twice >> 31) as u32
}
