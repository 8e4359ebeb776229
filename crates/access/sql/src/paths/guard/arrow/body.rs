//! Messages whose buffers are compressed, made into such as are not: the library would decode them into as much memory as they say.

use datafusion::arrow::ipc::CompressionType;

use super::codec::Codec;
use super::layout::{AS_IT_IS, LENGTH_BYTES, Piece};
use crate::paths::guard::fault::{Result, damage};

/// What the widest values of Arrow want addresses to be a multiple of, and more than that.
const ALIGNMENT: usize = 64;
/// Before the metadata: a mark, and its length.
const PREFIX_BYTES: usize = 8;
/// A buffer in the metadata: its offset and its length.
const ENTRY_BYTES: usize = 16;

/// A message as a file has it.
pub(super) struct Whole {
    pub(super) bytes: Vec<u8>,
    /// Bytes before its body.
    pub(super) head_bytes: usize,
}

/// The message with its wanted buffers decoded and its others empty. `entries` is where its buffers stand in the metadata.
pub(super) fn decoded(metadata: &[u8], entries: usize, pieces: &[Piece], body: &[u8], kind: CompressionType) -> Result<Whole> {
    let head_bytes = (PREFIX_BYTES + metadata.len()).next_multiple_of(ALIGNMENT);
    let wanted = || pieces.iter().filter(|piece| piece.wanted && piece.length > 0);
    let room = wanted().map(|piece| piece.decoded as usize + 2 * ALIGNMENT).sum::<usize>();
    let mut bytes = Vec::with_capacity(head_bytes + room);
    bytes.extend_from_slice(&[0xff; 4]);
    bytes.extend_from_slice(&((head_bytes - PREFIX_BYTES) as u32).to_le_bytes());
    bytes.extend_from_slice(metadata);
    bytes.resize(head_bytes, 0);
    let mut codec = Codec::of(kind)?;
    for (at, piece) in pieces.iter().enumerate() {
        let mut entry = [0; ENTRY_BYTES];
        if piece.wanted && piece.length > 0 {
            // The length before the values, so that these are where they can be read in place.
            let start = (bytes.len() + LENGTH_BYTES).next_multiple_of(ALIGNMENT) - LENGTH_BYTES;
            bytes.resize(start, 0);
            bytes.extend_from_slice(&AS_IT_IS.to_le_bytes());
            bytes = values(&mut codec, piece, body, bytes)?;
            entry[..8].copy_from_slice(&((start - head_bytes) as u64).to_le_bytes());
            entry[8..].copy_from_slice(&((bytes.len() - start) as u64).to_le_bytes());
        }
        let entry_at = PREFIX_BYTES + entries + at * ENTRY_BYTES;
        match bytes.get_mut(entry_at..entry_at + ENTRY_BYTES) {
            Some(place) => place.copy_from_slice(&entry),
            None => return damage("a message's buffers stand beyond its metadata"),
        }
    }
    Ok(Whole { bytes, head_bytes })
}

fn values(codec: &mut Codec, piece: &Piece, body: &[u8], mut out: Vec<u8>) -> Result<Vec<u8>> {
    let Some((length, compressed)) = body[piece.offset..piece.offset + piece.length].split_first_chunk::<LENGTH_BYTES>() else {
        return damage("a compressed buffer lacks its length");
    };
    match i64::from_le_bytes(*length) {
        AS_IT_IS => out.extend_from_slice(compressed),
        // What stands after an empty buffer's length is nobody's.
        0 => {}
        _ => out = codec.append(compressed, piece.decoded as usize, out)?,
    }
    Ok(out)
}
