use bytes::Bytes;
use forebay_types::{Error, Result};
use zstd::zstd_safe::{CCtx, CDict, CParameter, DCtx, DDict, DParameter, FrameFormat, compress_bound};

use super::varint;
use crate::bits::packed::{Packed, pack};
use crate::bits::word::{load, width_of};
use crate::part::Part;

/// Records of a block.
pub(crate) const BLOCK_RECORDS: u32 = 16;
/// A compromise: level 19 is a tenth smaller and fifty times slower to write; reading is the same.
const LEVEL: i32 = 9;
/// A block of records is never larger than this.
const BLOCK_BYTES_MAX: u64 = 1 << 30;

/// A slice of the record text: blocks of 16 records compressed by zstd with the shard's dictionary.
#[derive(Clone, Debug)]
pub(crate) struct BlockSlice {
    offsets: Packed,
    frames: Bytes,
}

/// The dictionary, prepared for those who compress.
pub(crate) fn packer(dictionary: &[u8]) -> CDict<'static> {
    CDict::create(dictionary, LEVEL)
}

/// Compresses blocks.
pub(crate) struct BlockWriter<'d> {
    context: CCtx<'d>,
}

impl<'d> BlockWriter<'d> {
    pub(crate) fn new(packer: &'d CDict<'static>) -> Result<Self> {
        let mut context = CCtx::create();
        // What every frame would repeat is left out.
        let mut begin = || {
            context.set_parameter(CParameter::Format(FrameFormat::Magicless))?;
            context.set_parameter(CParameter::ContentSizeFlag(false))?;
            context.set_parameter(CParameter::ChecksumFlag(false))?;
            context.set_parameter(CParameter::DictIdFlag(false))?;
            context.ref_cdict(packer)
        };
        begin().map_err(|code| Error::internal(format!("zstd can't begin: {}", zstd::zstd_safe::get_error_name(code))))?;
        Ok(Self { context })
    }

    /// Appends the frame of `raw`.
    pub(crate) fn compress(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
        varint::write(raw.len() as u64, out);
        let from = out.len();
        out.resize(from + compress_bound(raw.len()), 0);
        let length = self
            .context
            .compress2(&mut out[from..], raw)
            .map_err(|_| Error::internal(format!("zstd can't compress a block of {} bytes", raw.len())))?;
        out.truncate(from + length);
        Ok(())
    }
}

/// A context that unpacks such blocks.
pub(crate) fn unpacking() -> DCtx<'static> {
    let mut context = DCtx::create();
    // Known to every zstd that has the parameter; a context without it unpacks nothing, and says so.
    let _ = context.set_parameter(DParameter::Format(FrameFormat::Magicless));
    context
}

/// The sections of compressed blocks.
pub(crate) fn encode(frames: &[u8], offsets: &[u64]) -> [Vec<u8>; 3] {
    let end = frames.len() as u64;
    [end.to_le_bytes().to_vec(), pack(offsets.iter().copied().chain([end]), end), frames.to_vec()]
}

impl BlockSlice {
    pub(crate) fn open(part: &Part) -> Self {
        let end = load(&part.section(0), 0);
        Self { offsets: Packed::new(part.section(1), width_of(end)), frames: part.section(2) }
    }

    /// Unpacks block `index` of the slice into `raw`.
    pub(crate) fn unpack(&self, index: usize, dictionary: &DDict<'_>, context: &mut DCtx<'_>, raw: &mut Vec<u8>) -> Result<()> {
        let corrupt = || Error::corrupt("a block of the record text does not unpack; drop the layer and build it again");
        let from = self.offsets.get(index) as usize;
        let to = self.offsets.get(index + 1) as usize;
        let frame = self.frames.get(from..to).ok_or_else(corrupt)?;
        let (length, at) = varint::read(frame, 0);
        if length > BLOCK_BYTES_MAX {
            return Err(corrupt());
        }
        raw.resize(length as usize, 0);
        let written = context.decompress_using_ddict(raw.as_mut_slice(), &frame[at..], dictionary).map_err(|_| corrupt())?;
        if written == length as usize { Ok(()) } else { Err(corrupt()) }
    }
}

/// The body of record `index` of an unpacked block.
#[inline]
pub(crate) fn body(raw: &[u8], index: u32) -> &[u8] {
    let mut at = 0;
    for _ in 0..index {
        let (length, next) = varint::read(raw, at);
        at = next.saturating_add(length as usize);
    }
    let (length, at) = varint::read(raw, at);
    raw.get(at..at.saturating_add(length as usize)).unwrap_or_default()
}
