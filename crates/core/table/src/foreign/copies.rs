//! What the rows of a batch take of a column, where a few bytes of its pages may be as many GiB: values that stand in a dictionary, or begin
//! as the one before them, and are copied for every row that has them; long ones that were compressed; and those of nested columns, of
//! which a row may have any number, without bytes for a null.

use std::collections::VecDeque;

use super::deltas::ParquetText;
use super::rows::Rows;
use super::runs::{BITS_MAX, runs};
use super::thrift::Reader;
use super::{PageFault, ParquetColumn, ParquetPage, damage};

/// How the format numbers text, and bytes of one length.
const BYTES: i32 = 6;
const FIXED_BYTES: i32 = 7;
/// Bytes of both levels of a value of a nested column, and of each list that it is in.
const LEVELS_BYTES: u64 = 4;
const LIST_BYTES: u64 = 8;

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
    /// Whether rows that are decoded together may be any of those that are counted, and not only such as follow each other.
    is_scattered: bool,
    /// The last pages that rows which are decoded together may be of.
    pages: VecDeque<Taken>,
    all: Taken,
    /// Values of all pages so far.
    seen: u64,
    /// Of a nested column, how many values its rows have.
    rows: Rows,
}

/// What a page has.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// Rows that begin in it; none where that wasn't looked at.
    rows: u64,
    /// What is copied of it for its rows.
    copied: u64,
    /// What stands in it in full, and is there once it is no longer compressed.
    full: u64,
}

impl Taken {
    fn with(self, other: Self) -> Self {
        Self { rows: self.rows + other.rows, copied: self.copied + other.copied, full: self.full + other.full }
    }

    fn without(self, other: Self) -> Self {
        Self { rows: self.rows - other.rows, copied: self.copied - other.copied, full: self.full - other.full }
    }
}

impl ParquetCopies {
    /// Of a column of which so many rows are decoded together, and may take so many bytes; `in_views` says that what stands in its
    /// dictionary is not copied.
    pub fn new(column: ParquetColumn, rows_together: u64, bytes_max: u64, in_views: bool) -> Self {
        let (lengths, pages) = (Vec::new(), VecDeque::new());
        let longest = if column.physical_type == FIXED_BYTES { u32::try_from(column.type_length).unwrap_or(0) } else { 0 };
        // Each row has a value, and so many of these are too many: where more rows begin is nothing to keep.
        let rows = Rows::new(rows_together.min(bytes_max / (LEVELS_BYTES + LIST_BYTES) + 1));
        let all = Taken::default();
        Self { column, rows_together, bytes_max, in_views, lengths, longest, is_scattered: false, pages, all, seen: 0, rows }
    }

    /// The same where rows are left out while the column is read, so that those which are decoded together may be from anywhere in it.
    pub fn scattered(self) -> Self {
        Self { is_scattered: true, ..self }
    }

    /// Whether all of the column, which becomes so many bytes when it is no longer compressed, may be decoded together as far as the file's footer
    /// says it. Text counts where it is compressed, or `in_deltas`.
    pub fn fits_whole(&self, becomes: i64, in_deltas: bool) -> bool {
        let values = u64::try_from(self.column.values).unwrap_or(0);
        let is_counted = self.column.physical_type == BYTES && (self.column.is_compressed || in_deltas);
        let is_long = is_counted && u64::try_from(becomes).is_ok_and(|becomes| becomes > self.bytes_max);
        !is_long && (!self.is_nested() || self.check_values(values).is_ok())
    }

    /// Checks what values of one length take, which nulls and those of a dictionary take as well.
    ///
    /// # Errors
    /// Rows that are decoded together take more than they may.
    pub fn check_fixed(&self) -> Result<(), PageFault> {
        if self.column.physical_type != FIXED_BYTES || self.is_nested() {
            return Ok(());
        }
        let rows = self.rows_together.min(u64::try_from(self.column.values).unwrap_or(0));
        self.check(u64::from(self.longest).saturating_mul(rows))
    }

    /// Whether a page is to be looked into. Others are [passed](Self::pass).
    pub fn wants(&self, page: &ParquetPage) -> bool {
        page.text.is_some()
            || (self.is_text_copied() && page.dictionary.is_some())
            || (page.indices.is_some() && self.counts_indices())
            || (page.data().is_some() && self.wants_rows(page))
    }

    /// Counts a page that is not looked into, by its header alone.
    ///
    /// # Errors
    /// Rows that are decoded together take more than they may, or the page is at odds with its column.
    pub fn pass(&mut self, page: &ParquetPage) -> Result<(), PageFault> {
        let Some(data) = self.begin(page)? else { return Ok(()) };
        let rows = if self.is_nested() { 0 } else { u64::from(data.values) };
        self.take(Taken { rows, copied: 0, full: self.full(page) })
    }

    /// Counts a page, which is its bytes behind the header, no longer compressed.
    ///
    /// # Errors
    /// Rows that are decoded together take more than they may, or the page is at odds with itself.
    pub fn count(&mut self, page: &ParquetPage, bytes: &[u8]) -> Result<(), PageFault> {
        if let Some(values) = page.dictionary.filter(|_| self.column.physical_type == BYTES) {
            return self.take_dictionary(values, bytes);
        }
        let Some(data) = self.begin(page)? else { return Ok(()) };
        let copied = match (page.text, page.indices) {
            (Some(text), _) => text.text_bytes(bytes, self.bytes_max)?,
            (None, Some(indices)) if self.counts_indices() => self.copied(&indices, bytes)?,
            _ => 0,
        };
        let rows = data.rows(bytes)?;
        if self.is_nested() && !self.is_scattered {
            self.count_values(&data, bytes)?;
        }
        self.take(Taken { rows, copied, full: self.full(page) })
    }

    /// Takes a page's values in, if it has any: it is the next one.
    fn begin(&mut self, page: &ParquetPage) -> Result<Option<ParquetText>, PageFault> {
        let Some(data) = page.data() else { return Ok(None) };
        self.seen += u64::from(data.values);
        let values = u64::try_from(self.column.values).unwrap_or(0);
        if self.seen > values {
            return damage(format!("its pages have {} values, and its column has {values}", self.seen));
        }
        if self.is_nested() && self.is_scattered {
            self.check_values(self.seen)?;
        }
        Ok(Some(data))
    }

    fn take(&mut self, taken: Taken) -> Result<(), PageFault> {
        self.pages.push_back(taken);
        self.all = self.all.with(taken);
        // What begins in the first of them and ends in the last has all rows of those between.
        while !self.is_scattered && self.pages.len() > 2 {
            let (first, last) = (self.pages[0], self.pages[self.pages.len() - 1]);
            if self.all.rows - first.rows - last.rows < self.rows_together {
                break;
            }
            self.pages.pop_front();
            self.all = self.all.without(first);
        }
        debug_assert_eq!(self.all.rows, self.pages.iter().map(|page| page.rows).sum::<u64>(), "what goes is taken off again");
        // Each page alone takes no more than it may, and a batch has two wherever they are longer than it.
        let full = if self.pages.len() > 2 { self.all.full } else { 0 };
        self.check(self.all.copied + full)
    }

    fn check(&self, bytes: u64) -> Result<(), PageFault> {
        if bytes > self.bytes_max { Err(PageFault::TooLarge { bytes, most: self.bytes_max }) } else { Ok(()) }
    }

    fn is_nested(&self) -> bool {
        self.column.levels[0] > 0
    }

    fn is_text_copied(&self) -> bool {
        self.column.physical_type == BYTES && !self.in_views
    }

    /// Whether what stands in a dictionary is copied, and may be too much.
    fn counts_indices(&self) -> bool {
        (self.is_text_copied() || self.column.physical_type == FIXED_BYTES) && self.may_be_too_many()
    }

    /// Whether it is to be seen where a nested column's rows begin: only where all its values, or what stands in full, may be too much.
    fn wants_rows(&self, page: &ParquetPage) -> bool {
        let values = u64::try_from(self.column.values).unwrap_or(0);
        let may_be_long = || self.all.full + self.full(page) > self.bytes_max / 2;
        self.is_nested() && !self.is_scattered && (self.check_values(values).is_err() || may_be_long())
    }

    /// Bytes of text that stands in a page in full. What is not compressed takes no more than the file has.
    fn full(&self, page: &ParquetPage) -> u64 {
        let is_full = page.plain.is_some() && self.column.physical_type == BYTES;
        page.compressed.filter(|_| is_full).map_or(0, |compressed| compressed.becomes)
    }

    /// Counts the values of a nested column's rows.
    fn count_values(&mut self, data: &ParquetText, bytes: &[u8]) -> Result<(), PageFault> {
        let (rows, mut left) = (&mut self.rows, u64::from(data.values));
        data.repetitions(bytes, |level, times| {
            left -= times;
            if level == 0 {
                rows.begin(times)
            } else {
                rows.go_on(times)
            }
            Ok(())
        })?;
        self.rows.go_on(left);
        self.check_values(self.rows.most)
    }

    /// Checks what so many values of a nested column take in a batch, nulls as well.
    fn check_values(&self, values: u64) -> Result<(), PageFault> {
        let lists = u64::try_from(self.column.levels[0]).unwrap_or(0);
        let value = match self.column.physical_type {
            0 => 1,
            1 | 4 => 4,
            2 | 5 => 8,
            FIXED_BYTES => u64::from(self.longest),
            _ => 16,
        };
        self.check((LEVELS_BYTES + lists * LIST_BYTES + value).saturating_mul(values))
    }

    /// Whether the longest value, in all rows that are decoded together, is more than there may be.
    fn may_be_too_many(&self) -> bool {
        let values = u64::try_from(self.column.values).unwrap_or(0);
        let together = if self.is_nested() { values } else { values.min(self.rows_together) };
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
mod tests;
