//! LZ4 and Zstandard as Arrow's buffers have them, decoded to no more than is expected.

use std::io::{BufRead, Cursor};

use datafusion::arrow::ipc::CompressionType;
use lz4_flex::frame::FrameDecoder;
use zstd::bulk::Decompressor;

use crate::paths::guard::fault::{Fault, Result, damage};

/// Decodes buffers, none of them to more than is asked for.
pub(super) enum Codec {
    Lz4,
    Zstd(Decompressor<'static>),
}

impl Codec {
    pub(super) fn of(kind: CompressionType) -> Result<Self> {
        match kind {
            CompressionType::ZSTD => Decompressor::new().map(Self::Zstd).map_err(undecodable),
            _ => Ok(Self::Lz4),
        }
    }

    /// Appends what a buffer is decoded, which is so many bytes. `out` has room for them.
    pub(super) fn append(&mut self, compressed: &[u8], decoded: usize, out: Vec<u8>) -> Result<Vec<u8>> {
        let end = out.len() + decoded;
        let out = match self {
            Self::Lz4 => lz4(compressed, end, out)?,
            Self::Zstd(decompressor) => {
                let from = out.len() as u64;
                let mut at = Cursor::new(out);
                at.set_position(from);
                decompressor.decompress_to_buffer(compressed, &mut at).map_err(undecodable)?;
                at.into_inner()
            }
        };
        if out.len() == end { Ok(out) } else { damage("a compressed buffer has another length than it says") }
    }
}

/// Decodes block by block, and no further once there is more than expected.
fn lz4(compressed: &[u8], end: usize, mut out: Vec<u8>) -> Result<Vec<u8>> {
    let mut frames = FrameDecoder::new(compressed);
    loop {
        let block = frames.fill_buf().map_err(undecodable)?;
        let length = block.len();
        if length == 0 {
            return Ok(out);
        }
        if out.len() + length > end {
            return damage("a compressed buffer has more bytes than it says");
        }
        out.extend_from_slice(block);
        frames.consume(length);
    }
}

fn undecodable(error: std::io::Error) -> Fault {
    Fault::Damage(format!("a compressed buffer can't be decoded ({error})"))
}
