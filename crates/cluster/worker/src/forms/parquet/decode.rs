//! A column chunk of Parquet, decoded.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use forebay_parquet_pages::{column_of, look};
use forebay_table::ParquetCopies;
use forebay_types::{Error, Result, SEGMENT_BYTES, format_bytes};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::Type;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::{ChunkReader, Length};

use crate::forms::cell::{BATCH_ROWS, Made, cell_writer, finish};
use crate::forms::clock::{Clock, read_time};

/// A column of one row group: where it is, and its bytes in the file.
pub(in crate::forms) struct Column {
    pub(in crate::forms) footer: Arc<ParquetMetaData>,
    pub(in crate::forms) row_group: usize,
    pub(in crate::forms) column: usize,
    pub(in crate::forms) start: u64,
    pub(in crate::forms) raw: Bytes,
}

/// Bytes of a column once it is decoded, about; strings that repeat may take more.
pub(in crate::forms) fn decoded_bytes(chunk: &ColumnChunkMetaData) -> u64 {
    let values = u64::try_from(chunk.num_values()).unwrap_or(0);
    let encoded = u64::try_from(chunk.uncompressed_size()).unwrap_or(0);
    match chunk.column_type() {
        Type::BOOLEAN => values.div_ceil(8),
        Type::INT32 | Type::FLOAT => values * 4,
        Type::INT64 | Type::DOUBLE | Type::INT96 => values * 8,
        Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => values * 16 + encoded,
    }
}

/// Decodes a column.
/// `Invalid` for nested columns and types that a table can't hold, or when it or a page of it is larger than a segment; `Corrupt` when
/// the bytes can't be what the footer says.
pub(in crate::forms) fn decode(column: &Column) -> Result<Made> {
    let read = read_time(&column.raw);
    let clock = Clock::start();
    let corrupt = |error: &dyn std::fmt::Display| Error::corrupt(format!("column {}: {error}", column.column));
    let metadata = ArrowReaderMetadata::try_new(Arc::clone(&column.footer), ArrowReaderOptions::new());
    let plain = metadata.map_err(|error| corrupt(&error))?;
    let descriptor = column.footer.file_metadata().schema_descr();
    let root = descriptor.get_column_root_idx(column.column);
    let field = plain.schema().fields().get(root).ok_or_else(|| corrupt(&"it is not in the schema"))?;
    if field.data_type().is_nested() {
        return Err(Error::invalid(format!("column {} is nested: it stays raw", column.column)));
    }
    let chunk = column.footer.row_group(column.row_group).column(column.column);
    let schema = with_views(plain.schema());
    let in_views = matches!(schema.field(root).data_type(), DataType::Utf8View | DataType::BinaryView);
    let mut copies = ParquetCopies::new(column_of(chunk), BATCH_ROWS as u64, SEGMENT_BYTES, in_views);
    column_of(chunk)
        .check(&column.raw, SEGMENT_BYTES, |page, place| look(chunk, page, column.raw.slice(place), &mut copies))
        .map_err(|fault| Error::from(fault).context(format!("column {}", column.column)))?;
    let mut writer = cell_writer(schema.field(root).data_type(), field.is_nullable())?;
    let options = ArrowReaderOptions::new().with_schema(schema);
    let metadata = ArrowReaderMetadata::try_new(Arc::clone(&column.footer), options).map_err(|error| corrupt(&error))?;
    let file = Part { bytes: column.raw.clone(), start: column.start };
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
        .with_projection(ProjectionMask::leaves(descriptor, [column.column]))
        .with_row_groups(vec![column.row_group])
        .with_batch_size(BATCH_ROWS)
        .build()
        .map_err(|error| corrupt(&error))?;
    let mut rows = 0;
    for batch in reader {
        let batch = batch.map_err(|error| corrupt(&error))?;
        rows += batch.num_rows() as i64;
        let bytes = text_bytes(batch.column(0));
        if bytes > SEGMENT_BYTES {
            let (rows, bytes) = (batch.num_rows(), format_bytes(bytes));
            return Err(Error::invalid(format!("column {}: text of {rows} rows takes {bytes}: it stays raw", column.column)));
        }
        writer.push(&batch)?;
    }
    let said = column.footer.row_group(column.row_group).num_rows();
    if rows != said {
        return Err(corrupt(&format_args!("{rows} rows where the footer says {said}")));
    }
    Ok(Made { cells: vec![finish(writer)?], took: clock.elapsed(), read })
}

/// Bytes of a column's text in full, of which a batch may have one for many rows, but a cell has one for each.
fn text_bytes(column: &ArrayRef) -> u64 {
    match column.data_type() {
        DataType::Utf8View => column.as_string_view().lengths().map(u64::from).sum(),
        DataType::BinaryView => column.as_binary_view().lengths().map(u64::from).sum(),
        _ => 0,
    }
}

/// The schema as engines ask for it: strings and binary as views.
fn with_views(schema: &SchemaRef) -> SchemaRef {
    let fields: Vec<_> = schema
        .fields()
        .iter()
        .map(|field| match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 => Arc::new(Field::clone(field).with_data_type(DataType::Utf8View)),
            DataType::Binary | DataType::LargeBinary => Arc::new(Field::clone(field).with_data_type(DataType::BinaryView)),
            _ => Arc::clone(field),
        })
        .collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The part of a file that holds one column's pages.
struct Part {
    bytes: Bytes,
    start: u64,
}

impl Part {
    fn after(&self, at: u64) -> Result<Bytes, ParquetError> {
        let skip = at.checked_sub(self.start).and_then(|skip| usize::try_from(skip).ok());
        let skip = skip.filter(|skip| *skip <= self.bytes.len());
        skip.map(|skip| self.bytes.slice(skip..)).ok_or_else(|| outside(at))
    }
}

fn outside(at: u64) -> ParquetError {
    ParquetError::EOF(format!("byte {at} is none of the column's"))
}

impl Length for Part {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Part {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(bytes::Buf::reader(self.after(start)?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let bytes = self.after(start)?;
        if length > bytes.len() { Err(outside(start + length as u64)) } else { Ok(bytes.slice(..length)) }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{FixedSizeBinaryArray, Int64Array, RecordBatch, StringArray};
    use forebay_table::check_parquet_footer;
    use forebay_types::ErrorKind;
    use parquet::arrow::ArrowWriter;
    use parquet::basic::{Compression, Encoding};
    use parquet::file::FOOTER_SIZE;
    use parquet::file::metadata::ParquetMetaDataReader;
    use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};

    use super::*;

    const ROWS: i64 = 10_000;

    /// A column of a file of numbers, all of them in its dictionary, and one of text that repeats.
    fn column(compression: Compression, column: usize) -> Column {
        written(WriterProperties::builder().set_compression(compression), column)
    }

    fn written(properties: WriterPropertiesBuilder, column: usize) -> Column {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS));
        let words: ArrayRef = Arc::new(StringArray::from_iter_values((0..ROWS).map(|row| format!("word {}", row % 7))));
        of([("number", numbers), ("word", words)], properties, column)
    }

    fn of<const N: usize>(columns: [(&str, ArrayRef); N], properties: WriterPropertiesBuilder, column: usize) -> Column {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties.build())).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let file = Bytes::from(file);
        let tail = file.len() - FOOTER_SIZE;
        let length = u32::from_le_bytes(file[tail..tail + 4].try_into().unwrap()) as usize;
        check_parquet_footer(&file[tail - length..tail]).unwrap();
        let footer = Arc::new(ParquetMetaDataReader::new().parse_and_finish(&file).unwrap());
        let (start, length) = footer.row_group(0).column(column).byte_range();
        let raw = file.slice(start as usize..(start + length) as usize);
        Column { footer, row_group: 0, column, start, raw }
    }

    #[test]
    fn pages_that_agree_with_their_footer_are_decoded() {
        for compression in codecs() {
            for place in 0..2 {
                assert_eq!(decode(&column(compression, place)).unwrap().cells.len(), 1);
            }
        }
    }

    fn codecs() -> [Compression; 7] {
        [
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::ZSTD(Default::default()),
            Compression::GZIP(Default::default()),
            Compression::BROTLI(Default::default()),
            Compression::LZ4,
            Compression::LZ4_RAW,
        ]
    }

    #[test]
    fn a_page_that_becomes_more_or_less_than_it_says_is_refused() {
        for compression in codecs().into_iter().skip(1) {
            let honest = column(compression, 1);
            // The dictionary of seven words of ten bytes: that it is one, and that it becomes 70 bytes, as Thrift writes it.
            assert_eq!(honest.raw[..5], *b"\x15\x04\x15\x8c\x01", "{compression}");
            for says in [69_u8, 71] {
                let mut raw = honest.raw.to_vec();
                raw[3] = 0x80 | ((says << 1) & 0x7f);
                let lies = Column { footer: Arc::clone(&honest.footer), raw: Bytes::from(raw), ..honest };
                let error = decode(&lies).err().unwrap();
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{compression}: {error}");
                if !matches!(compression, Compression::ZSTD(_) | Compression::LZ4 | Compression::LZ4_RAW) {
                    let becomes = if says < 70 { "more" } else { "70" };
                    let told = format!(
                        "column 1: a page says that what is compressed of it becomes {says} bytes, and it becomes {becomes}"
                    );
                    assert!(error.message().contains(&told), "{error}");
                }
            }
        }
    }

    #[test]
    fn a_dictionary_of_more_values_than_it_has_bytes_for_is_refused() {
        for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY] {
            let mut lies = column(compression, 0);
            // How many values there are, 10,000, as Thrift writes it; and 1,048,575, which takes as many bytes.
            let says = b"\x15\xa0\x9c\x01";
            let at = lies.raw.windows(4).position(|bytes| bytes == says).unwrap();
            let mut raw = lies.raw.to_vec();
            raw[at..at + 4].copy_from_slice(b"\x15\xfe\xff\x7f");
            lies.raw = Bytes::from(raw);
            let error = decode(&lies).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            assert!(error.message().contains("column 0: a dictionary says that it has 1048575 values"), "{error}");
        }
    }

    #[test]
    fn long_values_that_repeat_are_not_copied_for_each_row() {
        let rows = 1_000;
        let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|_| "x".repeat(100_000))));
        let lengths = vec![vec![7_u8; 100_000]; rows];
        let fixed: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter(lengths.iter()).unwrap());
        for (column, told) in [(text, "takes 95.4 MiB"), (fixed, "takes 95.4 MiB of memory")] {
            // Values of one length stand in a dictionary since the second version.
            let properties = WriterProperties::builder().set_writer_version(WriterVersion::PARQUET_2_0);
            let column = of([("v", column)], properties, 0);
            assert!(column.raw.len() < 1 << 20, "it stands in a dictionary");
            let error = decode(&column).err().unwrap();
            assert!(error.kind() == ErrorKind::Invalid && error.message().contains(told), "{error}");
        }
    }

    #[test]
    fn text_that_begins_as_the_one_before_it_is_counted_in_full() {
        let text: ArrayRef =
            Arc::new(StringArray::from_iter_values((0..1_000).map(|row| "x".repeat(100_000) + &row.to_string())));
        let properties = WriterProperties::builder().set_dictionary_enabled(false).set_encoding(Encoding::DELTA_BYTE_ARRAY);
        let column = of([("v", text)], properties, 0);
        assert!(column.raw.len() < 1 << 20);
        let error = decode(&column).err().unwrap();
        assert!(error.kind() == ErrorKind::Invalid && error.message().contains("takes 95.4 MiB of memory"), "{error}");
    }

    #[test]
    fn text_in_delta_encodings_is_decoded_if_it_has_no_more_lengths_than_values() {
        for encoding in [Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY] {
            for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
                let with = |compression| {
                    let properties = WriterProperties::builder().set_compression(compression).set_writer_version(version);
                    let properties = properties.set_dictionary_enabled(false);
                    written(properties.set_column_encoding("word".into(), encoding), 1)
                };
                for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(Default::default())] {
                    assert_eq!(decode(&with(compression)).unwrap().cells.len(), 1);
                }
                let mut lies = with(Compression::UNCOMPRESSED);
                // Blocks of 128 in 4 parts, and 10,000 lengths; and 2^40, over what stands behind that.
                let at = lies.raw.windows(5).position(|bytes| bytes == b"\x80\x01\x04\x90\x4e").unwrap();
                let mut raw = lies.raw.to_vec();
                raw[at + 3..at + 9].copy_from_slice(b"\x80\x80\x80\x80\x80\x20");
                lies.raw = Bytes::from(raw);
                let error = decode(&lies).err().unwrap();
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                let says = "column 1: a page says that its text has 1099511627776 lengths, and has 10000 values";
                assert!(error.message().contains(says), "{error}");
            }
        }
    }
}
