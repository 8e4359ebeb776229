//! Cuts an Avro file into blocks.

use bytes::Bytes;

use super::header::{Header, SYNC_BYTES};
use super::varint::{BYTES_MAX, take_count};
use crate::paths::guard::fault::{Result, damage};
use crate::paths::guard::input::Input;

/// A block of rows, decoded.
#[derive(Default)]
pub(super) struct Block {
    pub(super) rows: u64,
    pub(super) bytes: Bytes,
}

/// Takes the next block of a file; none at its end.
pub(super) async fn next(input: &mut Input, header: &Header, decoded_bytes_max: u64) -> Result<Option<Block>> {
    const CUT: &str = "it ends within a block";
    let left = input.left;
    if left == 0 {
        return Ok(None);
    }
    input.fill(left.min(2 * BYTES_MAX as u64)).await?;
    let mut said = input.peek();
    let held = said.len();
    let (Some(rows), Some(bytes)) = (take_count(&mut said), take_count(&mut said)) else {
        return damage("a block doesn't say how long it is");
    };
    let head_bytes = held - said.len();
    input.take(head_bytes);
    let Some(all) = bytes.checked_add(SYNC_BYTES as u64) else { return damage(CUT) };
    if !input.fill(all).await? {
        return damage(CUT);
    }
    let bytes = input.take(bytes as usize);
    if input.take(SYNC_BYTES)[..] != header.sync {
        return damage("a block doesn't end where it says");
    }
    let bytes = if bytes.is_empty() { bytes } else { header.codec.decoded(bytes, decoded_bytes_max)? };
    Ok(Some(Block { rows, bytes }))
}
