//! Reading a part of the log from front to back: what is whole, where it is torn, and what is damage.

use std::path::Path;

use forebay_types::{Error, Result};

use super::frame::{Frame, HEADER_BYTES};

/// Bytes at the start of each part: a magic word, the version, and the number of the first entry.
pub(super) const PART_HEADER_BYTES: usize = 24;
const MAGIC: &[u8; 8] = b"FBSHDLOG";
const VERSION: u32 = 1;

pub(super) fn part_header(first: u64) -> [u8; PART_HEADER_BYTES] {
    let mut header = [0; PART_HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..20].copy_from_slice(&first.to_le_bytes());
    let checksum = forebay_types::crc32c(&header[..20]);
    header[20..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// What a part holds.
pub(super) struct Scanned {
    /// The number after the last entry.
    pub(super) next: u64,
    /// Where the last good frame ends; what is behind it is the torn end of a write that nobody was told of.
    pub(super) good_bytes: usize,
}

/// Reads a part whose first entry has the number `first`; `last` says that no part follows, so that its end may be torn.
pub(super) fn scan(
    path: &Path,
    bytes: &[u8],
    first: u64,
    last: bool,
    each: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<Scanned> {
    let damaged = |at: usize| {
        Error::corrupt(format!(
            "{}: the log is damaged at byte {at}: restore the file from a copy, or remove it and lose the updates in it",
            path.display()
        ))
    };
    if bytes.len() < PART_HEADER_BYTES && last {
        // The process ended while it made the file: nothing was acknowledged from it.
        return Ok(Scanned { next: first, good_bytes: 0 });
    }
    match bytes.get(..PART_HEADER_BYTES) {
        Some(header) if header == part_header(first) => {}
        Some(header) if header[..8] == MAGIC[..] && header[8..12] != VERSION.to_le_bytes() => {
            let message = format!("{}: the log is of a newer version of Forebay: use that one", path.display());
            return Err(Error::invalid(message));
        }
        _ => return Err(damaged(0)),
    }
    let (mut at, mut next) = (PART_HEADER_BYTES, first);
    while at < bytes.len() {
        let Some(frame) = Frame::decode(&bytes[at..]).filter(|frame| frame.first == next) else {
            if !last || good_frame_after(&bytes[at..], next) {
                return Err(damaged(at));
            }
            break;
        };
        for (number, entry) in frame.entries() {
            each(number, entry)?;
        }
        next = frame.first + u64::from(frame.count);
        at += frame.bytes;
    }
    Ok(Scanned { next, good_bytes: at })
}

/// Whether a frame that verifies follows one that doesn't: then that one was durable once.
fn good_frame_after(bytes: &[u8], next: u64) -> bool {
    (1..bytes.len().saturating_sub(HEADER_BYTES)).any(|at| {
        let number = u64::from_le_bytes(bytes[at + 8..at + 16].try_into().expect("eight bytes"));
        (next..next + (1 << 40)).contains(&number) && Frame::decode(&bytes[at..]).is_some()
    })
}
