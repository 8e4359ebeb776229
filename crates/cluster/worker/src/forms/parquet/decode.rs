//! A column chunk of Parquet, decoded.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use forebay_types::{Error, Result};
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
///
/// # Errors
/// `Invalid` for nested columns and types that a table can't hold, or when it is larger than a segment; `Corrupt` when the
/// bytes can't be what the footer says.
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
    let schema = with_views(plain.schema());
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
        writer.push(&batch)?;
    }
    let said = column.footer.row_group(column.row_group).num_rows();
    if rows != said {
        return Err(corrupt(&format_args!("{rows} rows where the footer says {said}")));
    }
    Ok(Made { cells: vec![finish(writer)?], took: clock.elapsed(), read })
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
        if length > bytes.len() {
            return Err(outside(start + length as u64));
        }
        Ok(bytes.slice(..length))
    }
}
