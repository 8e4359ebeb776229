//! What values take that stand in a dictionary, or begin as the one before them, where a decoder copies each for every row that has it: a
//! few bytes of a page may be as many GiB of a batch.

use std::collections::VecDeque;

use super::deltas::ParquetText;
use super::runs::{BITS_MAX, runs};
use super::thrift::Reader;
use super::{PageFault, ParquetColumn, ParquetPage, damage};

/// How the format numbers text, and bytes of one length.
const BYTES: i32 = 6;
const FIXED_BYTES: i32 = 7;

/// Counts what the rows that are decoded together take of a column, page by page in the order of the file.
#[derive(Debug)]
pub struct ParquetCopies {
    column: ParquetColumn,
    rows_together: u64,
    bytes_max: u64,
    /// Whether values of a dictionary are not copied.
    in_views: bool,
    /// Of the dictionary's values, where they differ.
    lengths: Vec<u32>,
    longest: u32,
    /// The last pages that rows which are decoded together may be of.
    pages: VecDeque<Taken>,
    all: Taken,
}

/// What a page has.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    rows: u64,
    bytes: u64,
}

impl ParquetCopies {
    /// Of a column of which so many rows are decoded together, and may take so many bytes; `in_views` says that what stands in its
    /// dictionary is not copied.
    pub fn new(column: ParquetColumn, rows_together: u64, bytes_max: u64, in_views: bool) -> Self {
        let (lengths, pages) = (Vec::new(), VecDeque::new());
        let longest = if column.physical_type == FIXED_BYTES { u32::try_from(column.type_length).unwrap_or(0) } else { 0 };
        Self { column, rows_together, bytes_max, in_views, lengths, longest, pages, all: Taken::default() }
    }

    /// Checks what values of one length take, which nulls and those of a dictionary take as well.
    ///
    /// # Errors
    /// Rows that are decoded together take more than they may.
    pub fn check_fixed(&self) -> Result<(), PageFault> {
        let [repetition_level, _] = self.column.levels;
        if self.column.physical_type != FIXED_BYTES || repetition_level > 0 {
            return Ok(());
        }
        let rows = self.rows_together.min(u64::try_from(self.column.values).unwrap_or(0));
        let bytes = u64::from(self.longest).saturating_mul(rows);
        match bytes > self.bytes_max {
            true => Err(PageFault::TooLarge { bytes, most: self.bytes_max }),
            false => Ok(()),
        }
    }

    /// Whether a page is to be counted.
    pub fn wants(&self, page: &ParquetPage) -> bool {
        let is_text = self.column.physical_type == BYTES && !self.in_views;
        let is_copied = is_text || self.column.physical_type == FIXED_BYTES;
        page.text.is_some()
            || (is_text && page.dictionary.is_some())
            || (is_copied && page.indices.is_some() && self.may_be_too_many())
    }

    /// Counts a page, which is its bytes behind the header, no longer compressed.
    ///
    /// # Errors
    /// Rows that are decoded together take more than they may, or the page is at odds with itself.
    pub fn count(&mut self, page: &ParquetPage, bytes: &[u8]) -> Result<(), PageFault> {
        if let Some(values) = page.dictionary.filter(|_| self.column.physical_type == BYTES) {
            return self.take_dictionary(values, bytes);
        }
        let taken = match (page.text, page.indices) {
            (Some(text), _) => Taken { rows: text.rows(bytes)?, bytes: text.text_bytes(bytes, self.bytes_max)? },
            (None, Some(indices)) => Taken { rows: indices.rows(bytes)?, bytes: self.copied(&indices, bytes)? },
            (None, None) => return Ok(()),
        };
        self.pages.push_back(taken);
        self.all.rows += taken.rows;
        self.all.bytes += taken.bytes;
        // What begins in the first of them and ends in the last has all rows of those between.
        while self.pages.len() > 2 {
            let (first, last) = (self.pages[0], self.pages[self.pages.len() - 1]);
            if self.all.rows - first.rows - last.rows < self.rows_together {
                break;
            }
            self.pages.pop_front();
            self.all = Taken { rows: self.all.rows - first.rows, bytes: self.all.bytes - first.bytes };
        }
        debug_assert_eq!(self.all.rows, self.pages.iter().map(|page| page.rows).sum::<u64>(), "what goes is taken off again");
        match self.all.bytes > self.bytes_max {
            true => Err(PageFault::TooLarge { bytes: self.all.bytes, most: self.bytes_max }),
            false => Ok(()),
        }
    }

    /// Whether the longest value, in all rows that are decoded together, is more than there may be.
    fn may_be_too_many(&self) -> bool {
        let values = u64::try_from(self.column.values).unwrap_or(0);
        let [repetition_level, _] = self.column.levels;
        let together = if repetition_level > 0 { values } else { values.min(self.rows_together) };
        u64::from(self.longest).saturating_mul(together) > self.bytes_max
    }

    fn take_dictionary(&mut self, values: u32, bytes: &[u8]) -> Result<(), PageFault> {
        let mut reader = Reader::new(bytes);
        self.lengths.clear();
        for _ in 0..values {
            let length = reader.take(4)?.iter().rev().fold(0, |length, byte| (length << 8) | u32::from(*byte));
            reader.pass(u64::from(length))?;
            self.lengths.push(length);
        }
        assert_eq!(self.lengths.len(), values as usize, "each value has a length");
        self.longest = self.lengths.iter().copied().max().unwrap_or(0);
        Ok(())
    }

    /// Bytes of a page's values, each copied out of the dictionary.
    fn copied(&self, indices: &ParquetText, page: &[u8]) -> Result<u64, PageFault> {
        let mut reader = Reader::new(page);
        let present = indices.present(&mut reader)?;
        if self.column.physical_type == FIXED_BYTES {
            return Ok(u64::from(self.longest) * present);
        }
        debug_assert_eq!(self.column.physical_type, BYTES, "values of other types are as long as these");
        // Where all are null there may be nothing.
        if reader.left() == 0 {
            return Ok(0);
        }
        let bits = u32::from(reader.take(1)?[0]);
        if bits > BITS_MAX {
            return damage(format!("a page says that its indices have {bits} bits"));
        }
        let mut bytes = 0;
        runs(&mut reader, bits, present, |index, times| {
            let length = usize::try_from(index).ok().and_then(|index| self.lengths.get(index));
            let Some(length) = length else {
                return damage(format!("a page has value {index} of a dictionary of {}", self.lengths.len()));
            };
            bytes += u64::from(*length) * times;
            Ok(())
        })?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::header::Deltas;
    use super::super::tests::{signed, varint};
    use super::*;

    const MOST: u64 = 1 << 20;

    fn column(levels: [i16; 2]) -> ParquetColumn {
        ParquetColumn { physical_type: BYTES, type_length: 0, values: 100_000, is_compressed: false, levels }
    }

    /// A page of the first version, whose lengths stand so many times before text.
    fn page(column: ParquetColumn, values: u32, streams: u64) -> ParquetPage {
        let said = column.text(values, Deltas { streams, repetition: 3, definition: 3, are_bytes: false });
        let (text, indices) = if streams > 0 { (Some(said), None) } else { (None, Some(said)) };
        ParquetPage { bytes: 1, compressed: None, text, dictionary: None, indices }
    }

    fn dictionary(lengths: &[u32]) -> (ParquetPage, Vec<u8>) {
        let page = ParquetPage { bytes: 1, compressed: None, text: None, dictionary: Some(lengths.len() as u32), indices: None };
        (page, lengths.iter().flat_map(|length| [&length.to_le_bytes()[..], &vec![7; *length as usize]].concat()).collect())
    }

    /// Numbers of one byte, and how often each stands there.
    fn runs_of(runs: &[(u8, u64)]) -> Vec<u8> {
        runs.iter().flat_map(|(value, times)| [varint(times << 1), vec![*value]].concat()).collect()
    }

    /// Levels as pages of the first version have them.
    fn levels(runs: &[(u8, u64)]) -> Vec<u8> {
        let runs = runs_of(runs);
        [&(runs.len() as u32).to_le_bytes()[..], &runs].concat()
    }

    fn indices(runs: &[(u8, u64)]) -> Vec<u8> {
        [vec![1], runs_of(runs)].concat()
    }

    /// What is counted of a column with a dictionary of a long and a short value.
    fn copies(column: ParquetColumn, rows_together: u64) -> ParquetCopies {
        let mut copies = ParquetCopies::new(column, rows_together, MOST, false);
        let (page, bytes) = dictionary(&[10_000, 3]);
        assert!(copies.wants(&page));
        copies.count(&page, &bytes).unwrap();
        copies
    }

    fn too_large(bytes: u64) -> Result<(), PageFault> {
        Err(PageFault::TooLarge { bytes, most: MOST })
    }

    #[test]
    fn a_long_value_counts_for_each_row_that_has_it() {
        let column = column([0, 0]);
        let mut counted = copies(column, 1_000);
        let hundred = page(column, 100, 0);
        assert!(counted.wants(&hundred));
        assert_eq!(counted.count(&hundred, &indices(&[(0, 100)])), Ok(()));
        assert_eq!(counted.count(&hundred, &indices(&[(0, 4), (1, 96)])), Ok(()));
        assert_eq!(counted.count(&hundred, &indices(&[(0, 9)])), too_large(1_000_000 + 40_000 + 288 + 90_000));
        // No more than the page has values.
        assert_eq!(copies(column, 1_000).count(&hundred, &indices(&[(0, 1 << 31)])), Ok(()));
        let beyond = copies(column, 1_000).count(&hundred, &[8, 2, 2]);
        assert!(matches!(beyond, Err(PageFault::Damage(why)) if why.contains("value 2 of a dictionary of 2")));
        let wide = copies(column, 1_000).count(&hundred, &[33, 2, 0]);
        assert!(matches!(wide, Err(PageFault::Damage(why)) if why.contains("33 bits")));
    }

    #[test]
    fn what_decoders_read_in_two_ways_is_damage() {
        let told = |column: ParquetColumn, bytes: &[u8]| match copies(column, 1_000).count(&page(column, 100, 0), bytes) {
            Err(PageFault::Damage(why)) => why,
            other => panic!("{other:?}"),
        };
        let plain = column([0, 0]);
        // Of which a decoder takes 5 short ones, and long ones then.
        for times in [5 | 1 << 32, 1 << 40, 1 << 62] {
            assert!(told(plain, &indices(&[(1, times), (0, 95)])).contains(&format!("a run of {times} numbers")));
        }
        assert!(told(plain, &[vec![1], varint(1 << 31 | 1), vec![0; 40]].concat()).contains("a run of 1073741824 numbers"));
        // The number behind it may be what comes next.
        assert!(told(plain, &indices(&[(1, 0), (0, 100)])).contains("a run of 0 numbers"));
        // What is neither 0 nor 1 may be there.
        let nullable = column([0, 1]);
        let why = told(nullable, &[levels(&[(2, 100)]), indices(&[(0, 100)])].concat());
        assert_eq!(why, "a page has a level of 2, and its column has 1 at most");
    }

    #[test]
    fn rows_that_are_not_decoded_together_do_not_count_together() {
        let column = column([0, 0]);
        let mut counted = copies(column, 1_000);
        for _ in 0..50 {
            assert_eq!(counted.count(&page(column, 1_000, 0), &indices(&[(0, 40), (1, 960)])), Ok(()));
            assert!(counted.pages.len() <= 2);
        }
        let mut counted = copies(column, 4_000);
        let told: Vec<_> = (0..3).map(|_| counted.count(&page(column, 1_000, 0), &indices(&[(0, 40), (1, 960)]))).collect();
        assert_eq!(told, [Ok(()), Ok(()), too_large(3 * (400_000 + 2_880))]);
    }

    #[test]
    fn nulls_take_nothing_and_values_of_a_list_are_of_one_row() {
        let nullable = column([0, 1]);
        let half = levels(&[(0, 50), (1, 50)]);
        let mut counted = copies(nullable, 1_000);
        assert_eq!(counted.count(&page(nullable, 100, 0), &[half, indices(&[(0, 100)])].concat()), Ok(()));
        assert_eq!(counted.all.bytes, 500_000);
        let nothing = levels(&[(0, 100)]);
        assert_eq!(counted.count(&page(nullable, 100, 0), &nothing), Ok(()), "all are null");
        // Each page is a row of a hundred values.
        let list = column([1, 0]);
        let one = [levels(&[(0, 1), (1, 99)]), indices(&[(0, 20), (1, 80)])].concat();
        let mut counted = copies(list, 10);
        let told: Vec<_> = (0..6).map(|_| counted.count(&page(list, 100, 0), &one)).collect();
        assert!(told[..5].iter().all(Result::is_ok), "{told:?}");
        assert_eq!(told[5], too_large(6 * 200_240));
        let mut counted = copies(list, 3);
        assert!((0..90).all(|_| counted.count(&page(list, 100, 0), &one) == Ok(())));
    }

    #[test]
    fn what_is_short_or_not_copied_is_not_counted() {
        let column = column([0, 0]);
        let indices = page(column, 100, 0);
        for (lengths, rows_together, is_counted) in
            [([1_000, 3], 1_000, false), ([1_100, 3], 1_000, true), ([20, 3], 100_000, true)]
        {
            let mut counted = ParquetCopies::new(column, rows_together, MOST, false);
            assert!(!counted.wants(&indices), "there is no dictionary");
            let (dictionary, bytes) = dictionary(&lengths);
            counted.count(&dictionary, &bytes).unwrap();
            assert_eq!(counted.wants(&indices), is_counted, "{lengths:?}");
            let in_views = ParquetCopies::new(column, rows_together, MOST, true);
            assert!(!in_views.wants(&dictionary) && !in_views.wants(&indices));
        }
        let numbers = ParquetCopies::new(ParquetColumn { physical_type: 2, ..column }, 1_000, MOST, false);
        assert!(!numbers.wants(&dictionary(&[9]).0));
        let fixed = ParquetColumn { physical_type: FIXED_BYTES, type_length: 10_000, ..column };
        let mut counted = ParquetCopies::new(fixed, 1_000, MOST, false);
        let runs_of_fixed = |times| [vec![1], runs_of(&[(0, times)])].concat();
        assert!(counted.wants(&indices) && !counted.wants(&dictionary(&[9_996]).0), "its length is known");
        assert_eq!(counted.count(&dictionary(&[9_996]).0, &[7; 10_000]), Ok(()));
        assert_eq!(counted.count(&indices, &runs_of_fixed(100)), Ok(()));
        assert_eq!(counted.count(&page(fixed, 5, 0), &runs_of_fixed(5)), too_large(1_050_000));
        assert_eq!(counted.check_fixed(), Err(PageFault::TooLarge { bytes: 10_000_000, most: MOST }));
        for few in [ParquetColumn { values: 104, ..fixed }, ParquetColumn { type_length: 1_048, ..fixed }, column] {
            assert_eq!(ParquetCopies::new(few, 1_000, MOST, false).check_fixed(), Ok(()), "{few:?}");
        }
        let cut = ParquetCopies::new(column, 1_000, MOST, false).count(&dictionary(&[9]).0, &[9, 0, 0, 0, 1]);
        assert!(matches!(cut, Err(PageFault::Damage(_))));
    }

    #[test]
    fn text_that_begins_as_the_one_before_it_counts_in_full() {
        let column = column([0, 0]);
        let stream = |length: i64| [varint(128), varint(4), varint(64), signed(length), signed(0), vec![0; 4]].concat();
        let bytes = [stream(10_000), stream(1)].concat();
        for in_views in [false, true] {
            let mut counted = ParquetCopies::new(column, 1_000, MOST, in_views);
            assert!(counted.wants(&page(column, 64, 2)));
            assert_eq!(counted.count(&page(column, 64, 2), &bytes), Ok(()));
            assert_eq!(counted.count(&page(column, 64, 2), &bytes), too_large(2 * 64 * 10_001));
        }
    }

    /// In packs of eight.
    fn packs(values: &[u64], bits: u32) -> Vec<u8> {
        let count = values.len().div_ceil(8);
        let mut packed = vec![0_u8; count * bits as usize];
        for (place, value) in values.iter().enumerate() {
            for bit in (0..bits as usize).filter(|bit| (value >> bit) & 1 == 1) {
                let at = place * bits as usize + bit;
                packed[at / 8] |= 1 << (at % 8);
            }
        }
        [varint((count as u64) << 1 | 1), packed].concat()
    }

    proptest! {
        #[test]
        fn numbers_are_read_from_runs_and_packs(
            bits in 0_u32..=32,
            parts in proptest::collection::vec((any::<u32>(), 1_usize..60, any::<bool>()), 0..9),
            fewer in 0_u64..9,
        ) {
            let (mut bytes, mut values) = (Vec::new(), Vec::new());
            for (seed, count, in_packs) in parts {
                let number = |place: usize| u64::from(seed.rotate_left(place as u32)) & ((1 << bits) - 1);
                if in_packs {
                    let count = count.next_multiple_of(8);
                    let part: Vec<u64> = (0..count).map(number).collect();
                    bytes.extend(packs(&part, bits));
                    values.extend(part);
                } else {
                    bytes.extend(varint((count as u64) << 1));
                    bytes.extend(&number(0).to_le_bytes()[..bits.div_ceil(8) as usize]);
                    values.extend(std::iter::repeat_n(number(0), count));
                }
            }
            let count = (values.len() as u64).saturating_sub(fewer);
            let mut read = Vec::new();
            let told = runs(&mut Reader::new(&bytes), bits, count, |value, times| {
                read.extend(std::iter::repeat_n(value, times as usize));
                Ok(())
            });
            prop_assert_eq!(told, Ok(()));
            prop_assert_eq!(&read[..], &values[..count as usize]);
        }

        #[test]
        fn any_bytes_are_pages_or_a_fault(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            levels in (0_i16..3, 0_i16..3),
        ) {
            let column = column([levels.0, levels.1]);
            for streams in 0..3 {
                let _ = copies(column, 100).count(&page(column, 1_000, streams), &bytes);
            }
            let (dictionary, _) = dictionary(&[3, 5]);
            let _ = copies(column, 100).count(&dictionary, &bytes);
        }
    }
}
