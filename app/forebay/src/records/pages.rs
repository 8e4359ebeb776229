//! Parquet files whose pages are looked at before they are unpacked: one says itself how much memory it takes, up to 2 GiB.

use std::fs::File;
use std::io::{BufReader, Error, ErrorKind, Read, Result};
use std::os::unix::fs::FileExt;

use bytes::Bytes;
use datafusion::parquet::errors::Result as ParquetResult;
use datafusion::parquet::file::reader::{ChunkReader, Length};
use forebay_types::format_bytes;

/// Bytes of a page at most, packed or not: writers make pages of one or a few MiB, and one value alone may have 64.
const PAGE_BYTES_MAX: u64 = 256 << 20;
/// The same of a file with many columns, each of which has one in memory at a time, and of all these together.
const PAGE_BYTES_MIN: u64 = 16 << 20;
const PAGES_BYTES_MAX: u64 = 1 << 30;
/// Structures in each other, and fields of one, at most: the head of a page has three, and nine.
const DEPTH_MAX: usize = 8;
const FIELDS_MAX: usize = 64;
/// Bytes that are read of a head together.
const PIECE: usize = 512;

/// A file of which no page is read that takes more than a limit.
pub(super) struct Paged {
    file: File,
    most: u64,
}

impl Paged {
    /// A file of which so many columns are read.
    pub(super) fn new(file: File, columns: usize) -> Self {
        Self { file, most: page_bytes_max(columns) }
    }
}

/// Bytes of a page at most where so many columns are read side by side.
fn page_bytes_max(columns: usize) -> u64 {
    (PAGES_BYTES_MAX / columns.max(1) as u64).clamp(PAGE_BYTES_MIN, PAGE_BYTES_MAX)
}

impl Length for Paged {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for Paged {
    type T = Headed;

    fn get_read(&self, start: u64) -> ParquetResult<Headed> {
        Ok(Headed { bytes: self.file.get_read(start)?, at: Some(start), most: self.most })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        self.file.get_bytes(start, length)
    }
}

/// What the head of a page is read from.
pub(super) struct Headed {
    bytes: BufReader<File>,
    /// Where it begins, until it was looked at.
    at: Option<u64>,
    most: u64,
}

impl Read for Headed {
    fn read(&mut self, to: &mut [u8]) -> Result<usize> {
        // Only when it is read: who knows a head already opens a reader behind it, and reads nothing of that.
        if let Some(at) = self.at.take() {
            Head { file: self.bytes.get_ref(), at, piece: Vec::new(), taken: 0, most: self.most }.structure(Of::Page, 0)?;
        }
        self.bytes.read(to)
    }
}

/// Which structure is read.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    Page,
    Data,
    Dictionary,
    DataV2,
    /// Of no interest, and passed over by whoever reads the file.
    Other,
}

/// The kinds of fields that a head has, in Thrift's compact form.
const BOOLS: [u8; 2] = [1, 2];
const INTEGERS: [u8; 3] = [4, 5, 6];
const INTEGER: u8 = 5;
const BINARY: u8 = 8;
const STRUCTURE: u8 = 12;

impl Of {
    /// Whether a field may be of this kind: readers of Parquet go by its number, and would read on at another place.
    fn has(self, field: i64, kind: u8) -> bool {
        match (self, field) {
            (Self::Page, 1..=4) | (Self::Data, 1..=4) | (Self::Dictionary, 1..=2) | (Self::DataV2, 1..=6) => kind == INTEGER,
            (Self::Page, 5..=8) | (Self::Data, 5) | (Self::DataV2, 8) => kind == STRUCTURE,
            (Self::Dictionary, 3) | (Self::DataV2, 7) => BOOLS.contains(&kind),
            _ => true,
        }
    }

    fn below(self, field: i64) -> Self {
        match (self, field) {
            (Self::Page, 5) => Self::Data,
            (Self::Page, 7) => Self::Dictionary,
            (Self::Page, 8) => Self::DataV2,
            _ => Self::Other,
        }
    }
}

struct Head<'a> {
    file: &'a File,
    /// Where the next piece is.
    at: u64,
    piece: Vec<u8>,
    taken: usize,
    most: u64,
}

impl Head<'_> {
    fn structure(&mut self, of: Of, depth: usize) -> Result<()> {
        if depth > DEPTH_MAX {
            return Err(wrong());
        }
        let mut field = 0i64;
        for _ in 0..FIELDS_MAX {
            let byte = self.byte()?;
            let (step, kind) = (i64::from(byte >> 4), byte & 0xf);
            if kind == 0 {
                return Ok(());
            }
            field = if step == 0 { self.integer()? } else { field + step };
            if !(0..=i64::from(i16::MAX)).contains(&field) || !of.has(field, kind) {
                return Err(wrong());
            }
            match kind {
                kind if BOOLS.contains(&kind) => {}
                kind if INTEGERS.contains(&kind) => {
                    let value = self.integer()?;
                    // Its bytes unpacked, and as they are.
                    if of == Of::Page && matches!(field, 2 | 3) && !u64::try_from(value).is_ok_and(|bytes| bytes <= self.most) {
                        return Err(too_large(self.most));
                    }
                }
                BINARY => {
                    let length = self.number()?;
                    self.pass(length)?;
                }
                STRUCTURE => self.structure(of.below(field), depth + 1)?,
                _ => return Err(wrong()),
            }
        }
        Err(wrong())
    }

    /// A number with a sign.
    fn integer(&mut self) -> Result<i64> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(wrong())
    }

    fn byte(&mut self) -> Result<u8> {
        if self.taken >= self.piece.len() {
            self.piece.resize(PIECE, 0);
            let length = self.file.read_at(&mut self.piece, self.at)?;
            self.piece.truncate(length);
            (self.taken, self.at) = (0, self.at.saturating_add(length as u64));
        }
        let byte = self.piece.get(self.taken).copied().ok_or(ErrorKind::UnexpectedEof)?;
        self.taken += 1;
        Ok(byte)
    }

    fn pass(&mut self, bytes: u64) -> Result<()> {
        let here = (self.piece.len() - self.taken) as u64;
        if bytes <= here {
            self.taken += bytes as usize;
            return Ok(());
        }
        self.at = self.at.checked_add(bytes - here).ok_or_else(wrong)?;
        self.piece.clear();
        self.taken = 0;
        Ok(())
    }
}

fn wrong() -> Error {
    Error::new(ErrorKind::InvalidData, "the head of a page is damaged")
}

fn too_large(most: u64) -> Error {
    let message = format!("a page of it has more than {} unpacked: write it with smaller pages", format_bytes(most));
    Error::new(ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};
    use datafusion::arrow::record_batch::RecordBatch;
    use datafusion::parquet::arrow::ArrowWriter;
    use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use datafusion::parquet::file::properties::{WriterProperties, WriterVersion};

    use super::*;

    fn look(head: &[u8], most: u64) -> Result<()> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"PAR1").unwrap();
        file.write_all(head).unwrap();
        Head { file: &file, at: 4, piece: Vec::new(), taken: 0, most }.structure(Of::Page, 0)
    }

    #[test]
    fn files_are_read_as_they_are_written_unless_a_page_is_too_large() {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let rows = 4096;
            let texts = (0..rows).map(|row| (row % 3 > 0).then(|| format!("line {row}")));
            let columns: [(&str, ArrayRef); 2] =
                [("id", Arc::new(Int64Array::from_iter_values(0..rows))), ("text", Arc::new(StringArray::from_iter(texts)))];
            let batch = RecordBatch::try_from_iter(columns).unwrap();
            let file = tempfile::tempfile().unwrap();
            let properties = WriterProperties::builder().set_writer_version(version).build();
            let mut writer = ArrowWriter::try_new(file.try_clone().unwrap(), batch.schema(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            let read = |most| -> std::result::Result<usize, String> {
                let paged = Paged { file: file.try_clone().unwrap(), most };
                let reader = ParquetRecordBatchReaderBuilder::try_new(paged).and_then(|builder| builder.build());
                let batches: std::result::Result<Vec<RecordBatch>, _> = reader.map_err(|error| error.to_string())?.collect();
                Ok(batches.map_err(|error| error.to_string())?.iter().map(RecordBatch::num_rows).sum())
            };
            assert_eq!(read(PAGE_BYTES_MAX).unwrap(), 4096);
            let error = read(1 << 10).unwrap_err();
            assert!(error.contains("unpacked: write it with smaller pages"), "{error}");
        }
    }

    #[test]
    fn pages_of_many_columns_have_less_room_each() {
        assert_eq!([0, 1, 4].map(page_bytes_max), [PAGE_BYTES_MAX; 3]);
        assert!(page_bytes_max(14) > 64 << 20, "as one value may have");
        for columns in 5..=64 {
            assert!(page_bytes_max(columns) * columns as u64 <= PAGES_BYTES_MAX, "{columns}");
        }
        assert_eq!(page_bytes_max(1000), PAGE_BYTES_MIN);
    }

    #[test]
    fn a_page_says_how_large_it_is_only_in_the_form_in_which_readers_read_that() {
        // A dictionary of 100 bytes, 50 as they are.
        let head = [0x15, 4, 0x15, 200, 1, 0x15, 100, 0x4c, 0x15, 2, 0x15, 0, 0, 0];
        look(&head, 100).unwrap();
        assert!(look(&head, 99).unwrap_err().to_string().contains("99 B unpacked"));
        let again = [&head[..head.len() - 1], &[0x05, 4, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0]].concat();
        assert!(look(&again, 100).unwrap_err().to_string().contains("unpacked"), "its last word counts");
        for (place, byte) in [(0, 0x11), (2, 0x18), (7, 0x45), (8, 0x11), (8, 0x19)] {
            let mut other = head;
            other[place] = byte;
            assert_eq!(look(&other, 100).unwrap_err().kind(), ErrorKind::InvalidData, "{byte:x} at {place}");
        }
        for end in 0..head.len() {
            assert!(look(&head[..end], 100).is_err(), "cut at {end}");
        }
        assert!(look(&[0x1c; 1000], 100).is_err(), "structures without an end");
        assert!(look(&[0xff; 1000], 100).is_err(), "numbers without an end");
    }
}
