//! Text of a data page in a delta encoding, looked at before it is decoded: lengths stand before it, each as what it differs by from the
//! one before it, and a decoder makes room for as many as a number of 64 bits says.

use super::header::Deltas;
use super::runs::{packed, runs};
use super::thrift::{Broken, Reader};
use super::{PageFault, damage};

/// Lengths of a block at most. Writers take 128 to 2,048; those that do not differ take no bytes, however many a block has.
const BLOCK_LENGTHS_MAX: u64 = 1 << 16;
/// Bits of a difference at most: that of two lengths has 32.
const BITS_MAX: u8 = 32;
/// Bytes of a length once it is decoded.
const LENGTH_BYTES: u64 = 4;

/// How the format numbers the encodings that levels have.
const RLE: i32 = 3;
const BIT_PACKED: i32 = 4;

/// What a header says of a page of text that is to be looked at before it is decoded; or of one whose values stand in a dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParquetText {
    pub(super) deltas: Deltas,
    pub(super) values: u32,
    pub(super) repetition_level: i16,
    pub(super) definition_level: i16,
}

impl ParquetText {
    /// Checks the page, which is its bytes behind the header, no longer compressed.
    ///
    /// # Errors
    /// It says that it has more lengths than values or than bytes for them, or they take more than `page_bytes_max` bytes of memory.
    pub fn check(&self, page: &[u8], page_bytes_max: u64) -> Result<(), PageFault> {
        self.text_bytes(page, page_bytes_max).map(drop)
    }

    /// The same; tells how many bytes the page's text takes, where each value stands in full.
    pub(super) fn text_bytes(&self, page: &[u8], page_bytes_max: u64) -> Result<u64, PageFault> {
        let lengths = self.lengths(page)?;
        let bytes = lengths.count * LENGTH_BYTES * self.deltas.streams;
        if bytes > page_bytes_max {
            return Err(PageFault::TooLarge { bytes, most: page_bytes_max });
        }
        Ok(lengths.bytes)
    }

    /// Rows that begin in the page: none where that can't be seen.
    pub(super) fn rows(&self, page: &[u8]) -> Result<u64, PageFault> {
        let [repetition, _] = self.levels(&mut Reader::new(page))?;
        match repetition {
            Levels::Same => Ok(u64::from(self.values)),
            Levels::Runs(levels) => self.count(levels, self.repetition_level, 0),
            Levels::Backwards => Ok(0),
        }
    }

    /// Tells the repetition levels of the page's values, each with how often it stands there: none where that can't be seen.
    pub(super) fn repetitions(&self, page: &[u8], each: impl FnMut(u64, u64) -> Result<(), PageFault>) -> Result<(), PageFault> {
        let [repetition, _] = self.levels(&mut Reader::new(page))?;
        match repetition {
            Levels::Runs(levels) => {
                let bits = i16::BITS - self.repetition_level.leading_zeros();
                runs(&mut Reader::new(levels), bits, u64::from(self.values), each)
            }
            Levels::Same | Levels::Backwards => Ok(()),
        }
    }

    /// Passes over the levels of the page, and tells how many of its values are not null: all where that can't be seen.
    pub(super) fn present(&self, reader: &mut Reader<'_>) -> Result<u64, PageFault> {
        let [_, definition] = self.levels(reader)?;
        match definition {
            Levels::Runs(levels) => self.count(levels, self.definition_level, self.definition_level),
            Levels::Same | Levels::Backwards => Ok(u64::from(self.values)),
        }
    }

    /// How many values have a level.
    fn count(&self, levels: &[u8], greatest: i16, wanted: i16) -> Result<u64, PageFault> {
        let bits = i16::BITS - greatest.leading_zeros();
        let mut found = 0;
        runs(&mut Reader::new(levels), bits, u64::from(self.values), |level, times| {
            // Decoders don't agree on whether a value is there then.
            if u64::try_from(greatest).is_ok_and(|greatest| level > greatest) {
                return damage(format!("a page has a level of {level}, and its column has {greatest} at most"));
            }
            if u64::try_from(wanted).is_ok_and(|wanted| wanted == level) {
                found += times;
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn lengths(&self, page: &[u8]) -> Result<Lengths, PageFault> {
        assert!((1..=2).contains(&self.deltas.streams), "lengths stand {} times before text", self.deltas.streams);
        let mut reader = Reader::new(page);
        self.levels(&mut reader)?;
        // Where all are null there may be nothing.
        if reader.left() == 0 {
            return Ok(Lengths::default());
        }
        let mut all = self.pass_lengths(&mut reader)?;
        for _ in 1..self.deltas.streams {
            let other = self.pass_lengths(&mut reader)?;
            if other.count != all.count {
                return damage(format!("a page says that its text has {} lengths, and that it has {}", all.count, other.count));
            }
            all.bytes += other.bytes;
        }
        Ok(all)
    }

    fn levels<'a>(&self, reader: &mut Reader<'a>) -> Result<[Levels<'a>; 2], PageFault> {
        let repetition = self.pass_level(reader, self.repetition_level, self.deltas.repetition)?;
        let definition = self.pass_level(reader, self.definition_level, self.deltas.definition)?;
        Ok([repetition, definition])
    }

    fn pass_level<'a>(&self, reader: &mut Reader<'a>, level: i16, said: i32) -> Result<Levels<'a>, PageFault> {
        let bytes = match (self.deltas.are_bytes, said) {
            (true, bytes) => u64::try_from(bytes).or_else(|_| damage(format!("a page says that levels have {bytes} bytes")))?,
            (false, _) if level <= 0 => 0,
            (false, RLE) => reader.take(4)?.iter().rev().fold(0_u64, |length, byte| (length << 8) | u64::from(*byte)),
            (false, BIT_PACKED) => (u64::from(self.values) * u64::from(i16::BITS - level.leading_zeros())).div_ceil(8),
            (false, other) => return damage(format!("levels of a page can't have the encoding {other}")),
        };
        let levels = reader.take(bytes)?;
        Ok(match (level, said) {
            (..=0, _) => Levels::Same,
            (_, BIT_PACKED) if !self.deltas.are_bytes => Levels::Backwards,
            _ => Levels::Runs(levels),
        })
    }

    /// Passes over lengths.
    fn pass_lengths(&self, reader: &mut Reader<'_>) -> Result<Lengths, PageFault> {
        let (block, parts, lengths) = (reader.unsigned()?, reader.unsigned()?, reader.unsigned()?);
        let is_block = (128..=BLOCK_LENGTHS_MAX).contains(&block) && block.is_multiple_of(128);
        // No number but zero is a multiple of zero.
        if !is_block || !block.is_multiple_of(parts) || !(block / parts).is_multiple_of(32) {
            return damage(format!("a page says that its text has blocks of {block} lengths in {parts} parts"));
        }
        if lengths > u64::from(self.values) {
            return damage(format!("a page says that its text has {lengths} lengths, and has {} values", self.values));
        }
        let part = block / parts;
        // Numbers of 64 bits that are more than lengths can be wrap, as decoders have it.
        let mut length = reader.signed()? as i32;
        let mut bytes = if lengths > 0 { text_of(length)? } else { 0 };
        let mut left = lengths.saturating_sub(1);
        while left > 0 {
            // What all of a block differ by at least.
            let least = reader.signed()? as i32;
            for bits in reader.take(parts)? {
                // What stands of parts that are not there may be anything.
                if left == 0 {
                    break;
                }
                if *bits > BITS_MAX {
                    return damage(format!("lengths of a page's text differ by {bits} bits"));
                }
                let above = reader.take(u64::from(*bits) * part / 8)?;
                let there = part.min(left);
                left -= there;
                if *bits == 0 {
                    // Each differs by the same from the one before: they are as many times what the first and the last are on average.
                    let first = i64::from(length) + i64::from(least);
                    let last = i64::from(length) + i64::from(least) * there as i64;
                    length = i32::try_from(last).or_else(|_| damage("a length of a page's text is none"))?;
                    bytes += (text_of(length)? as i64 + first) as u64 * there / 2;
                    continue;
                }
                for place in 0..there {
                    let differs = least.wrapping_add(packed(above, u32::from(*bits), place) as u32 as i32);
                    length = length.wrapping_add(differs);
                    bytes += text_of(length)?;
                }
            }
        }
        Ok(Lengths { count: lengths, bytes })
    }
}

/// Lengths that stand before text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lengths {
    count: u64,
    /// All of them together.
    bytes: u64,
}

/// Levels of a page's values.
enum Levels<'a> {
    /// There is one level, which is not written.
    Same,
    Runs(&'a [u8]),
    /// Packed with the highest bit first, as writers did long ago.
    Backwards,
}

fn text_of(length: i32) -> Result<u64, PageFault> {
    u64::try_from(length).or_else(|_| damage(format!("text of a page has {length} bytes")))
}

impl From<Broken> for PageFault {
    fn from(broken: Broken) -> Self {
        Self::Damage(match broken {
            Broken::Cut => "a page ends before its text begins".to_string(),
            Broken::Odd(why) => format!("the lengths of a page's text can't be read: {why}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{signed, varint};
    use super::*;

    const MOST: u64 = 1 << 20;

    fn text(streams: u64, values: u32) -> ParquetText {
        let deltas = Deltas { streams, repetition: RLE, definition: RLE, are_bytes: false };
        ParquetText { deltas, values, repetition_level: 0, definition_level: 0 }
    }

    fn damage_of(text: ParquetText, page: &[u8]) -> String {
        match text.check(page, MOST) {
            Err(PageFault::Damage(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    fn head(block: u64, parts: u64, lengths: u64) -> Vec<u8> {
        [varint(block), varint(parts), varint(lengths), signed(0)].concat()
    }

    /// Lengths as writers have them. What stands of parts that are not there is more than any length has.
    fn encoded(lengths: &[i32], block: usize, parts: usize) -> Vec<u8> {
        let part = block / parts;
        let first = lengths.first().copied().unwrap_or(0);
        let mut out =
            [varint(block as u64), varint(parts as u64), varint(lengths.len() as u64), signed(i64::from(first))].concat();
        let differences: Vec<i64> = lengths.windows(2).map(|two| i64::from(two[1]) - i64::from(two[0])).collect();
        for block in differences.chunks(block) {
            let least = *block.iter().min().unwrap();
            let above: Vec<u64> = block.iter().map(|difference| (difference - least) as u64).collect();
            let bits = |part: &[u64]| 64 - part.iter().max().unwrap().leading_zeros();
            out.extend(signed(least));
            let mut widths: Vec<u8> = above.chunks(part).map(|part| bits(part) as u8).collect();
            widths.resize(parts, 0xff);
            out.extend(widths);
            for values in above.chunks(part) {
                let bits = bits(values) as usize;
                let mut packed = vec![0_u8; bits * part / 8];
                for (place, value) in values.iter().enumerate() {
                    for bit in 0..bits {
                        let at = place * bits + bit;
                        packed[at / 8] |= (((value >> bit) & 1) as u8) << (at % 8);
                    }
                }
                out.extend(packed);
            }
        }
        out
    }

    #[test]
    fn lengths_are_no_more_than_values() {
        assert_eq!(text(1, 1).check(&head(128, 4, 1), MOST), Ok(()));
        for lie in [2, 1 << 40, 1 << 63, u64::MAX] {
            let says = format!("{lie} lengths, and has 1 values");
            assert!(damage_of(text(1, 1), &head(128, 4, lie)).contains(&says));
            let second = [head(128, 4, 1), head(128, 4, lie)].concat();
            assert!(damage_of(text(2, 1), &second).contains(&says));
            assert_eq!(text(1, 1).check(&second, MOST), Ok(()), "text may be anything");
        }
        let other = [head(128, 4, 1), head(128, 4, 0)].concat();
        assert!(damage_of(text(2, 1), &other).contains("has 1 lengths, and that it has 0"));
    }

    #[test]
    fn lengths_are_no_more_than_bytes_for_them() {
        // A block of lengths that do not differ takes five bytes.
        let blocks = |count: usize| [head(128, 4, 1_000), vec![0; 5 * count]].concat();
        assert_eq!(text(1, 1_000).check(&blocks(8), MOST), Ok(()));
        assert!(damage_of(text(1, 1_000), &blocks(7)).contains("before its text begins"));
        let large = [head(BLOCK_LENGTHS_MAX, 1, 1 << 20), vec![0; 2 << 4]].concat();
        assert_eq!(text(1, 1 << 20).check(&large, 4 << 20), Ok(()));
        assert_eq!(text(1, 1 << 20).check(&large, MOST), Err(PageFault::TooLarge { bytes: 4 << 20, most: MOST }));
        let twice = large.repeat(2);
        assert_eq!(text(2, 1 << 20).check(&twice, 8 << 20), Ok(()));
        assert_eq!(text(2, 1 << 20).check(&twice, 4 << 20), Err(PageFault::TooLarge { bytes: 8 << 20, most: 4 << 20 }));
    }

    #[test]
    fn blocks_are_those_of_the_format() {
        let odd = [(0, 1), (0, 0), (64, 1), (130, 1), (128, 0), (128, 3), (128, 8), (1 << 17, 4), (u64::MAX, 1), (128, u64::MAX)];
        for (block, parts) in odd {
            let why = damage_of(text(1, 9), &head(block, parts, 1));
            assert!(why.contains(&format!("blocks of {block} lengths in {parts} parts")), "{why}");
        }
        let wide = |bits: u8, bytes: usize| [head(128, 4, 3), vec![0, bits, 0xff, 0xff, 0xff], vec![0; bytes]].concat();
        assert_eq!(text(1, 9).check(&wide(32, 128), MOST), Ok(()));
        assert!(damage_of(text(1, 9), &wide(32, 127)).contains("before its text begins"));
        assert!(damage_of(text(1, 9), &wide(33, 1_000)).contains("33 bits"));
        assert!(damage_of(text(1, 9), &[0xff; 12]).contains("no end"));
    }

    #[test]
    fn levels_stand_before_lengths() {
        let lengths = encoded(&[1, 2, 3], 128, 4);
        let with = |repetition, definition, are_bytes| ParquetText {
            deltas: Deltas { streams: 1, repetition, definition, are_bytes },
            values: 9,
            repetition_level: 1,
            definition_level: 3,
        };
        let rle = |bytes: usize| [&(bytes as u32).to_le_bytes()[..], &vec![0xff; bytes][..]].concat();
        let page = [rle(5), rle(300), lengths.clone()].concat();
        assert_eq!(with(RLE, RLE, false).check(&page, MOST), Ok(()));
        assert_eq!(with(RLE, RLE, false).check(&page[..309 + 4], MOST), Ok(()), "all are null");
        assert!(damage_of(with(RLE, RLE, false), &page[..300]).contains("before its text begins"));
        assert!(damage_of(with(RLE, RLE, false), &[0xff; 90]).contains("before its text begins"));
        assert!(damage_of(with(RLE, 0, false), &page).contains("the encoding 0"));
        // Nine values of one bit, and of two.
        let packed = [vec![0xff; 2 + 3], lengths.clone()].concat();
        assert_eq!(with(BIT_PACKED, BIT_PACKED, false).check(&packed, MOST), Ok(()));
        assert!(with(BIT_PACKED, BIT_PACKED, false).check(&packed[1..], MOST).is_err());
        let long = [vec![0xff; 5 + 7], lengths].concat();
        assert_eq!(with(5, 7, true).check(&long, MOST), Ok(()));
        assert!(with(5, 6, true).check(&long, MOST).is_err());
        assert!(damage_of(with(-1, 7, true), &long).contains("-1 bytes"));
        assert!(damage_of(with(i32::MAX, i32::MAX, true), &long).contains("before its text begins"));
    }

    const BLOCKS: [(usize, usize); 5] = [(128, 4), (128, 1), (256, 4), (2_048, 8), (BLOCK_LENGTHS_MAX as usize, 2)];

    proptest! {
        #[test]
        fn lengths_of_honest_writers_are_found(
            lengths in prop_oneof![
                proptest::collection::vec(0..40, 0..600),
                proptest::collection::vec(0..=i32::MAX, 0..600),
                (0..40, 0_usize..3_000).prop_map(|(length, count)| vec![length; count]),
            ],
            (block, parts) in proptest::sample::select(BLOCKS.to_vec()),
            nulls in 0_u32..9,
            behind in proptest::collection::vec(any::<u8>(), 0..20),
            cut in any::<prop::sample::Index>(),
        ) {
            let stream = encoded(&lengths, block, parts);
            let values = lengths.len() as u32 + nulls;
            let once = [&stream[..], &behind[..]].concat();
            prop_assert_eq!(text(1, values).check(&once, MOST), Ok(()));
            let twice = [&stream[..], &stream[..], &behind[..]].concat();
            prop_assert_eq!(text(2, values).check(&twice, MOST), Ok(()));
            let mut reader = Reader::new(&twice);
            let (count, bytes) = (lengths.len() as u64, lengths.iter().map(|length| *length as u64).sum::<u64>());
            prop_assert_eq!(text(2, values).pass_lengths(&mut reader), Ok(Lengths { count, bytes }));
            prop_assert_eq!(text(1, values).text_bytes(&once, MOST), Ok(bytes));
            prop_assert_eq!(text(2, values).text_bytes(&twice, MOST), Ok(2 * bytes));
            prop_assert_eq!(reader.at, stream.len());
            if let Some(fewer) = (lengths.len() as u32).checked_sub(1) {
                prop_assert!(text(1, fewer).check(&once, MOST).is_err());
            }
            let end = 1 + cut.index(stream.len() - 1);
            prop_assert!(text(1, values).check(&stream[..end], MOST).is_err());
            prop_assert!(text(2, values).check(&twice[..stream.len() + end], MOST).is_err());
        }

        #[test]
        fn any_bytes_are_lengths_or_a_fault(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            streams in 1_u64..3,
            levels in (any::<i16>(), any::<i16>()),
            said in (-9..400, -9..400),
            are_bytes in any::<bool>(),
        ) {
            let deltas = Deltas { streams, repetition: said.0, definition: said.1, are_bytes };
            let text = ParquetText { deltas, values: 1_000, repetition_level: levels.0, definition_level: levels.1 };
            let _ = text.check(&bytes, MOST);
            let _ = text.check(&[head(128, 4, 900), bytes].concat(), MOST);
        }
    }
}
