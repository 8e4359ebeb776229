//! The compressions of Avro's blocks, decoded to no more than is allowed.

use std::io::Read;

use bytes::Bytes;

use crate::paths::guard::fault::{Fault, Result, damage};

/// Bytes that a byte of Snappy can become: three can repeat 64.
const SNAPPY_RATIO: u64 = 64;

/// How the blocks of a file are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    None,
    Deflate,
    Snappy,
    Zstandard,
    Bzip2,
    Xz,
}

impl Codec {
    pub(super) fn of_name(name: Option<&[u8]>) -> Result<Self> {
        Ok(match name {
            None | Some(b"null") => Self::None,
            Some(b"deflate") => Self::Deflate,
            Some(b"snappy") => Self::Snappy,
            Some(b"zstandard") => Self::Zstandard,
            Some(b"bzip2") => Self::Bzip2,
            Some(b"xz") => Self::Xz,
            Some(name) => {
                let name = String::from_utf8_lossy(name);
                return Err(Fault::Unsupported(format!(
                    "its codec '{name}' is none of deflate, snappy, zstandard, bzip2 and xz"
                )));
            }
        })
    }

    /// What a block is decoded, which is at most so many bytes.
    pub(super) fn decoded(self, block: Bytes, most: u64) -> Result<Bytes> {
        match self {
            Self::None => Ok(block),
            Self::Deflate => all(flate2::bufread::DeflateDecoder::new(&block[..]), most),
            Self::Snappy => snappy(&block, most),
            Self::Zstandard => all(zstd::Decoder::with_buffer(&block[..]).map_err(undecodable)?, most),
            Self::Bzip2 => all(bzip2::bufread::BzDecoder::new(&block[..]), most),
            Self::Xz => {
                // Its header says how much memory it takes to decode.
                let decoder = liblzma::stream::Stream::new_stream_decoder(most, 0).map_err(|error| undecodable(error.into()))?;
                all(liblzma::bufread::XzDecoder::new_stream(&block[..], decoder), most)
            }
        }
    }
}

fn all(decoder: impl Read, most: u64) -> Result<Bytes> {
    let mut out = Vec::new();
    decoder.take(most.saturating_add(1)).read_to_end(&mut out).map_err(undecodable)?;
    if out.len() as u64 > most { Err(Fault::TooLarge { bytes: out.len() as u64, most }) } else { Ok(out.into()) }
}

/// A block of Snappy ends with the checksum of what it is decoded.
fn snappy(block: &[u8], most: u64) -> Result<Bytes> {
    let Some((compressed, checksum)) = block.split_last_chunk::<4>() else { return damage("a block lacks its checksum") };
    let undecodable = |error: snap::Error| Fault::Damage(format!("a block can't be decoded ({error})"));
    let bytes = snap::raw::decompress_len(compressed).map_err(undecodable)? as u64;
    if bytes > (compressed.len() as u64).saturating_mul(SNAPPY_RATIO) {
        return damage(format!("a block of {} bytes says that it takes {bytes} decoded", compressed.len()));
    }
    if bytes > most {
        return Err(Fault::TooLarge { bytes, most });
    }
    let out = snap::raw::Decoder::new().decompress_vec(compressed).map_err(undecodable)?;
    let mut found = flate2::Crc::new();
    found.update(&out);
    if found.sum() == u32::from_be_bytes(*checksum) { Ok(out.into()) } else { damage("a block differs from its checksum") }
}

fn undecodable(error: std::io::Error) -> Fault {
    Fault::Damage(format!("a block can't be decoded ({error})"))
}
