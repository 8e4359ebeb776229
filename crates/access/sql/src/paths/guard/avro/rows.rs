//! An Avro file's rows, walked block by block and cut into parts that a decoder can't run past.

use bytes::Bytes;

use super::blocks::{self, Block};
use super::header::Header;
use super::shape::Shape;
use crate::paths::guard::WITHOUT_BYTES_MAX;
use crate::paths::guard::fault::{Result, damage};
use crate::paths::guard::input::Input;

/// Bytes of rows that are decoded at once, where one isn't longer.
const TOGETHER_BYTES: usize = 8 << 20;

/// The rows of a file, in parts that are known to be whole.
pub(super) struct Rows {
    input: Input,
    pub(super) header: Header,
    pub(super) shape: Shape,
    decoded_bytes_max: u64,
    block: Block,
    /// Values without bytes that the file may have yet.
    without_bytes: u64,
}

/// Some rows, as they are in a block.
pub(super) struct Part {
    pub(super) rows: usize,
    pub(super) bytes: Vec<u8>,
}

impl Rows {
    pub(super) fn new(input: Input, header: Header, shape: Shape, decoded_bytes_max: u64) -> Self {
        Self { input, header, shape, decoded_bytes_max, block: Block::default(), without_bytes: WITHOUT_BYTES_MAX }
    }

    /// The next rows, at most so many; none at the end.
    pub(super) async fn next(&mut self, rows_max: usize) -> Result<Option<Part>> {
        let mut part = Part { rows: 0, bytes: Vec::new() };
        while part.rows < rows_max && part.bytes.len() < TOGETHER_BYTES {
            if self.block.rows > 0 {
                self.take(rows_max, &mut part)?;
                continue;
            }
            if !self.block.bytes.is_empty() {
                return damage("a block has more bytes than its rows take");
            }
            match blocks::next(&mut self.input, &self.header, self.decoded_bytes_max).await? {
                Some(block) => self.block = block,
                None => break,
            }
        }
        Ok((part.rows > 0).then_some(part))
    }

    /// Adds rows of the block.
    fn take(&mut self, rows_max: usize, part: &mut Part) -> Result<()> {
        let wanted = self.block.rows.min((rows_max - part.rows) as u64);
        let mut left = &self.block.bytes[..];
        let mut taken = 0;
        if self.shape.is_without_bytes() {
            taken = wanted;
            self.without_bytes = match self.without_bytes.checked_sub(taken) {
                Some(left) => left,
                None => return damage("too many rows stand in it without any bytes"),
            };
        }
        while taken < wanted && part.bytes.len() + (self.block.bytes.len() - left.len()) < TOGETHER_BYTES {
            if let Err(why) = self.shape.take(&mut left, &mut self.without_bytes) {
                return damage(why);
            }
            taken += 1;
        }
        let bytes = self.block.bytes.len() - left.len();
        part.bytes.extend_from_slice(&self.block.bytes[..bytes]);
        assert!(taken > 0 && taken <= wanted, "{taken} rows of {wanted} were taken");
        part.rows += taken as usize;
        self.block.rows -= taken;
        self.block.bytes = rest(&self.block.bytes, bytes);
        Ok(())
    }
}

/// What is left of a block's bytes; its memory goes with the last of them.
fn rest(bytes: &Bytes, taken: usize) -> Bytes {
    if taken == bytes.len() { Bytes::new() } else { bytes.slice(taken..) }
}
