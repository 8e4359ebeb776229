//! The bytes of the index, record by record, each with its own checksum.

use forebay_types::{Owner, PageRun, SegmentId};

use crate::books::{OWNERS, index};

/// Bytes of a record, and of the index's header.
pub(crate) const RECORD_BYTES: usize = 40;
/// Version of the folder's layout, and of how segments are named.
pub(crate) const FORMAT_VERSION: u32 = 2;

const MAGIC: &[u8; 8] = b"FBYINDEX";

/// One change of what the disk tier has. Applying a suffix of the index twice ends in the same state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// A segment has an extent, with none of its pages yet unless they are known already.
    Extent { id: SegmentId, start: u64, bytes: u32, owner: Owner, keep: bool },
    /// Pages are there.
    Present { id: SegmentId, run: PageRun },
    /// Pages are not there any more.
    Dropped { id: SegmentId, run: PageRun },
    /// The extent was given up.
    Freed { id: SegmentId },
    /// The keep flag has changed.
    Keep { id: SegmentId, keep: bool },
}

impl Record {
    /// The record's bytes: `crc32c u32 | kind u8 | owner u8 | keep u8 | 0 | id u128 | start u64 | a u32 | b u32`.
    pub fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let (kind, id, owner, keep, start, a, b) = match self {
            Self::Extent { id, start, bytes, owner, keep } => (1, id, index(owner) as u8, keep, start, bytes, 0),
            Self::Present { id, run } => (2, id, 0, false, 0, run.start, run.len),
            Self::Dropped { id, run } => (3, id, 0, false, 0, run.start, run.len),
            Self::Freed { id } => (4, id, 0, false, 0, 0, 0),
            Self::Keep { id, keep } => (5, id, 0, keep, 0, 0, 0),
        };
        let mut bytes = [0; RECORD_BYTES];
        bytes[4..7].copy_from_slice(&[kind, owner, u8::from(keep)]);
        bytes[8..24].copy_from_slice(&id.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&start.to_le_bytes());
        bytes[32..36].copy_from_slice(&a.to_le_bytes());
        bytes[36..].copy_from_slice(&b.to_le_bytes());
        seal(bytes)
    }

    /// The record in these bytes; none when they do not verify or say what no record says.
    pub fn from_bytes(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        if bytes[..4] != forebay_types::crc32c(&bytes[4..]).to_le_bytes() {
            return None;
        }
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let id = SegmentId(u128::from_le_bytes(bytes[8..24].try_into().expect("sixteen bytes")));
        let start = u64::from_le_bytes(bytes[24..32].try_into().expect("eight bytes"));
        let (keep, a, b) = (bytes[6] == 1, u32_at(32), u32_at(36));
        let run = || {
            let fits = b > 0 && a.checked_add(b).is_some_and(|end| end <= forebay_types::PAGES_PER_SEGMENT);
            fits.then_some(PageRun { start: a, len: b })
        };
        Some(match bytes[4] {
            1 if a > 0 && u64::from(a) <= forebay_types::SEGMENT_BYTES => {
                Self::Extent { id, start, bytes: a, owner: *OWNERS.get(usize::from(bytes[5]))?, keep }
            }
            2 => Self::Present { id, run: run()? },
            3 => Self::Dropped { id, run: run()? },
            4 => Self::Freed { id },
            5 => Self::Keep { id, keep },
            _ => return None,
        })
    }
}

/// The index's first bytes: `crc32c u32 | 0 u32 | magic 8 bytes | version u32 | zeros`.
pub(crate) fn header() -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[8..16].copy_from_slice(MAGIC);
    bytes[16..20].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    seal(bytes)
}

fn seal(mut bytes: [u8; RECORD_BYTES]) -> [u8; RECORD_BYTES] {
    let sum = forebay_types::crc32c(&bytes[4..]);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_damaged_ones_do_not() {
        let id = SegmentId(0x0123_4567_89ab_cdef_0011_2233_4455_6677);
        let run = PageRun { start: 3, len: 16381 };
        for record in [
            Record::Extent { id, start: 1 << 40, bytes: 50_000, owner: Owner::Shard, keep: true },
            Record::Present { id, run },
            Record::Dropped { id, run },
            Record::Freed { id },
            Record::Keep { id, keep: true },
        ] {
            let bytes = record.to_bytes();
            assert_eq!(Record::from_bytes(&bytes), Some(record));
            for at in 0..RECORD_BYTES {
                let mut damaged = bytes;
                damaged[at] ^= 0x10;
                assert_eq!(Record::from_bytes(&damaged), None, "byte {at} of {record:?}");
            }
        }
    }

    #[test]
    fn the_bytes_of_a_record_stay_what_they_are() {
        let record = Record::Present { id: SegmentId(1), run: PageRun { start: 2, len: 3 } };
        let mut golden = [0; RECORD_BYTES];
        (golden[4], golden[8], golden[32], golden[36]) = (2, 1, 2, 3);
        assert_eq!(record.to_bytes()[4..], golden[4..]);
        assert_eq!(record.to_bytes()[..4], forebay_types::crc32c(&golden[4..]).to_le_bytes());
    }
}
