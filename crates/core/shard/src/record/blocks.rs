//! Whole records in compressed blocks of 16: the layer that makes gets fast for few bytes.

use bytes::Bytes;
use forebay_types::{Error, Result};
use zstd::zstd_safe::{CCtx, CDict, CParameter, DCtx, DDict, DParameter, FrameFormat, compress_bound};

use super::codes::{Codes, Numbers};
use super::{Record, varint};
use crate::bits::word::{BitWriter, bits, load, width_of};
use crate::bits::{Packed, pack};
use crate::model::schema::ATTRIBUTES_MAX;
use crate::part::Part;

pub(crate) const BLOCK_RECORDS: u32 = 16;
/// A compromise: level 19 is a tenth smaller and fifty times slower to write; reading is the same.
const LEVEL: i32 = 9;
/// A block of records is never larger than this.
const BLOCK_BYTES_MAX: u64 = 1 << 30;
/// What zstd unpacks a block of its own to at most (RFC 8878, 3.1.1.2), and the bytes that one takes at least.
const UNPACKED_BYTES_MAX: u64 = 128 << 10;
const PACKED_BYTES_MIN: u64 = 3;

/// A slice of the record text: blocks of 16 records, of each attribute numbers, or text that zstd compresses with the
/// shard's dictionary.
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

    /// Appends a block, and empties it.
    pub(crate) fn compress(&mut self, block: &mut RawBlock, out: &mut Vec<u8>) -> Result<()> {
        let whole = block.finish();
        varint::write(whole.text.len() as u64, out);
        out.extend_from_slice(&whole.numbers);
        self.compress_text(&whole.text, out)
    }

    /// Appends the frame of a block's text.
    pub(crate) fn compress_text(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
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

/// A block on its way.
pub(crate) struct RawBlock {
    numbers: BitWriter,
    /// Bits of one record's numbers.
    bits: usize,
    /// By attribute that is text: the lengths of the records' values, and their bytes.
    texts: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A block before it is compressed.
pub(crate) struct Whole {
    pub(crate) numbers: Vec<u8>,
    pub(crate) text: Vec<u8>,
}

impl RawBlock {
    pub(crate) fn new(codes: &Codes) -> Self {
        let texts = codes.texts.iter().map(|_| (Vec::new(), Vec::new())).collect();
        Self { numbers: BitWriter::default(), bits: codes.bits, texts }
    }

    /// Adds a record, which has all attributes.
    pub(crate) fn push(&mut self, codes: &Codes, numbers: &Numbers, record: &Record) -> Result<()> {
        assert_eq!(numbers.len(), codes.attributes(), "each attribute has numbers, or is text");
        let mut texts = self.texts.iter_mut();
        for (attribute, numbers) in numbers.iter().enumerate() {
            let value = record.bytes(attribute);
            match codes.place(attribute) {
                Some(place) => {
                    let number = numbers.find(value);
                    let number = number.ok_or_else(|| Error::corrupt("a value of a shard has no number; build it again"))?;
                    self.numbers.push(number, place.width);
                }
                None => {
                    if let Some((lengths, bytes)) = texts.next() {
                        varint::write(value.map_or(0, |value| value.len() as u64 + 1), lengths);
                        bytes.extend_from_slice(value.unwrap_or_default());
                    }
                }
            }
        }
        assert!(texts.next().is_none(), "each attribute of text has its value");
        Ok(())
    }

    /// The block's bytes; it is empty then. Numbers take as much in every block.
    pub(crate) fn finish(&mut self) -> Whole {
        let mut numbers = std::mem::take(&mut self.numbers).finish();
        assert!(
            numbers.len() <= numbers_bytes(self.bits),
            "{} bytes are numbers of more records than a block has",
            numbers.len()
        );
        numbers.resize(numbers_bytes(self.bits), 0);
        let mut text = Vec::new();
        self.texts.iter_mut().for_each(|(lengths, _)| text.append(lengths));
        self.texts.iter_mut().for_each(|(_, bytes)| text.append(bytes));
        Whole { numbers, text }
    }
}

/// Bytes of a block's numbers.
fn numbers_bytes(bits: usize) -> usize {
    (bits * BLOCK_RECORDS as usize).div_ceil(8)
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

    /// Reads record `index` of the slice, whose last block has `count` records if it is the shard's last.
    pub(crate) fn read(
        &self,
        place: BlockPlace,
        codes: &Codes,
        columns: Option<&[usize]>,
        reader: &mut BlockReader<'_>,
        out: &mut Record,
    ) -> Result<()> {
        let corrupt = || Error::corrupt("a block of the record text does not unpack; drop the layer and build it again");
        let from = self.offsets.get(place.block) as usize;
        let to = self.offsets.get(place.block + 1) as usize;
        let frame = self.frames.get(from..to).ok_or_else(corrupt)?;
        let (length, at) = varint::read(frame, 0);
        let packed = at + numbers_bytes(codes.bits);
        let Some(packed_bytes) = frame.len().checked_sub(packed) else { return Err(corrupt()) };
        let unpacked_max = (packed_bytes as u64 / PACKED_BYTES_MIN + 1) * UNPACKED_BYTES_MAX;
        if length > BLOCK_BYTES_MAX.min(unpacked_max) {
            return Err(corrupt());
        }
        // What is numbered needs no unpacking.
        let mut texts = Texts::default();
        if !columns.is_some_and(|columns| codes.have_all(columns)) {
            reader.raw.resize(length as usize, 0);
            let dictionary = (reader.dictionary)();
            let written = reader.context.decompress_using_ddict(reader.raw.as_mut_slice(), &frame[packed..], dictionary);
            if written.map_err(|_| corrupt())? != length as usize {
                return Err(corrupt());
            }
            texts.find(reader.raw, &codes.texts, place);
        }
        out.clear();
        let numbers = at * 8 + place.record as usize * codes.bits;
        let mut push = |attribute: usize| -> Option<()> {
            let value = match codes.place(attribute) {
                Some(code) => codes.value(attribute, bits(frame, numbers + code.at, code.width) as usize)?,
                None => texts.value(reader.raw, attribute)?,
            };
            out.bytes.extend_from_slice(value.unwrap_or_default());
            out.end_value(value.is_none());
            Some(())
        };
        let pushed = match columns {
            None => (0..codes.attributes()).try_for_each(&mut push),
            Some(columns) => columns.iter().try_for_each(|column| push(*column)),
        };
        pushed.ok_or_else(corrupt)
    }
}

/// Where a record is: its block of the slice, its place in it, and how many records the block has.
#[derive(Clone, Copy)]
pub(crate) struct BlockPlace {
    pub(crate) block: usize,
    pub(crate) record: u32,
    pub(crate) count: u32,
}

/// What a thread needs to unpack blocks.
pub(crate) struct BlockReader<'r> {
    pub(crate) context: &'r mut DCtx<'static>,
    pub(crate) dictionary: &'r dyn Fn() -> &'r DDict<'static>,
    pub(crate) raw: &'r mut Vec<u8>,
}

/// Where the values of one record are in an unpacked block, by attribute: first byte, and length plus one.
struct Texts {
    places: [(usize, u64); ATTRIBUTES_MAX],
}

impl Default for Texts {
    fn default() -> Self {
        Self { places: [(0, 0); ATTRIBUTES_MAX] }
    }
}

impl Texts {
    /// Reads the lengths of all values of a block.
    #[inline]
    fn find(&mut self, raw: &[u8], attributes: &[usize], place: BlockPlace) {
        let (mut at, mut from) = (0, 0usize);
        for attribute in attributes {
            let mut mine = (0, 0);
            for record in 0..place.count {
                let (length, next) = varint::read(raw, at);
                at = next;
                if record == place.record {
                    mine = (from, length);
                }
                from = from.saturating_add(length.saturating_sub(1) as usize);
            }
            self.places[*attribute] = mine;
        }
        attributes.iter().for_each(|attribute| self.places[*attribute].0 = self.places[*attribute].0.saturating_add(at));
    }

    #[inline]
    #[expect(clippy::option_option, reason = "null is not the same as damage")]
    fn value<'r>(&self, raw: &'r [u8], attribute: usize) -> Option<Option<&'r [u8]>> {
        let (from, length) = self.places[attribute];
        match length.checked_sub(1) {
            Some(length) => Some(Some(raw.get(from..from.checked_add(length as usize)?)?)),
            None => Some(None),
        }
    }
}
