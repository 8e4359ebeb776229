//! What files and values have in common: the bytes of blocks, and behind them bytes that lie with the metadata.

use xxhash_rust::xxh3::Xxh3;

use crate::terms::{BlockRef, NodeError, NodeErrorKind, NodeResult};

/// A number that is another one when the bytes of a file or value are: blocks have numbers that are never given twice. `tail` are
/// the bytes behind the blocks. Two values of one tag can be made: by who may write the name, and so may replace its value anyhow.
pub fn tag(blocks: &[BlockRef], tail: &[u8], len: u64) -> u128 {
    let mut hash = Xxh3::new();
    for block in blocks {
        hash.update(&block.worker.to_le_bytes());
        hash.update(&block.number.to_le_bytes());
        hash.update(&block.len.to_le_bytes());
    }
    hash.update(tail);
    hash.update(&len.to_le_bytes());
    hash.digest128()
}

/// `Invalid` when a range begins behind the end.
pub(super) fn check_offset(name: &str, offset: u64, len: u64) -> NodeResult<()> {
    if offset > len {
        return Err(NodeError::new(
            NodeErrorKind::Invalid,
            format!("{name:?}: offset {offset} is behind its end: it has {len} bytes"),
        ));
    }
    Ok(())
}
