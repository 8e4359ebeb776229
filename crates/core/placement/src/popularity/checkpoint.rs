//! Popularity as bytes, so that a coordinator that starts knows what was read before.

use forebay_types::{Error, Result, SegmentId};
use xxhash_rust::xxh3::xxh3_64;

use super::{Popularity, Record, Usage};

/// Begins every checkpoint.
const MAGIC: &[u8; 8] = b"FBYPOPUL";
/// Of the bytes below; described in docs/specs/popularity.md.
const VERSION: u32 = 2;
const HEADER_BYTES: usize = 24;
const RECORD_BYTES: usize = 32;
/// Of version 1, which had no reads: each operation counts as one.
const RECORD_BYTES_1: usize = 28;
const SUM_BYTES: usize = 8;

impl Popularity {
    /// The checkpoint, at most `bytes_max` of it: where not all segments find room, the most popular do.
    pub fn encode(&self, bytes_max: usize) -> Vec<u8> {
        let most = bytes_max.saturating_sub(HEADER_BYTES + SUM_BYTES) / RECORD_BYTES;
        let mut all = self.segments();
        if all.len() > most {
            all.sort_by(|one, other| other.1.accesses.total_cmp(&one.1.accesses));
            all.truncate(most);
            all.sort_unstable_by_key(|(segment, _)| *segment);
        }
        let mut bytes = Vec::with_capacity(HEADER_BYTES + all.len() * RECORD_BYTES + SUM_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(all.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.window.to_le_bytes());
        for (segment, usage) in all {
            bytes.extend_from_slice(&segment.0.to_le_bytes());
            for number in [usage.accesses, usage.bytes, usage.service_us, usage.reads] {
                bytes.extend_from_slice(&(number as f32).to_le_bytes());
            }
        }
        bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
        bytes
    }

    /// What a checkpoint holds, to about seven digits.
    /// `Corrupt`: the bytes don't verify. `Invalid`: they are of a later version.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let corrupt = |what: &str| Error::corrupt(format!("the checkpoint of popularity {what}; counting starts anew"));
        let Some((body, sum)) = bytes.split_last_chunk::<SUM_BYTES>() else { return Err(corrupt("is cut off")) };
        if body.len() < HEADER_BYTES || !body.starts_with(MAGIC) {
            return Err(corrupt("doesn't begin as one"));
        }
        if xxh3_64(body) != u64::from_le_bytes(*sum) {
            return Err(corrupt("doesn't match its checksum"));
        }
        let (header, records) = body.split_at(HEADER_BYTES);
        let version = u32::from_le_bytes(array(header, 8));
        let record_bytes = match version {
            1 => RECORD_BYTES_1,
            VERSION => RECORD_BYTES,
            _ => {
                return Err(Error::invalid(format!(
                    "the checkpoint of popularity has version {version}: run a newer coordinator"
                )));
            }
        };
        if records.len() != u32::from_le_bytes(array(header, 12)) as usize * record_bytes {
            return Err(corrupt("has another number of segments than it says"));
        }
        let window = u64::from_le_bytes(array(header, 16));
        let record = |record: &[u8]| {
            // What isn't a number, or is less than none, counts as none.
            let number = |at: usize| f64::from(f32::from_le_bytes(array(record, at))).max(0.0);
            let reads = number(if version == 1 { 16 } else { 28 });
            let usage = Usage { accesses: number(16), reads, bytes: number(20), service_us: number(24) };
            (SegmentId(u128::from_le_bytes(array(record, 0))), Record { usage, window, newest: 0.0 })
        };
        Ok(Self { window, records: records.chunks_exact(record_bytes).map(record).collect() })
    }
}

/// `N` bytes from `at` on; the caller has checked that they are there.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}
