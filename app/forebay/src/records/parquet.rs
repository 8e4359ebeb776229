//! Records of Parquet files, with only the wanted columns read.

use std::fs::File;
use std::path::Path;

use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use forebay_types::{Error, Result};

use super::arrow::Rows;
use super::{Input, Piece, Wanted};

const ROWS_A_PIECE: usize = 8192;

/// Opens a Parquet file.
pub(super) fn open(path: &Path, wanted: &Wanted<'_>) -> Result<Input> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).map_err(invalid)?;
    let schema = reader.schema().clone();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let places = wanted.places(&names)?;
    let mut rows = Rows::new(&schema, &places, wanted)?;
    let total = reader.metadata().file_metadata().num_rows().max(1) as u64;
    let mask = ProjectionMask::roots(reader.parquet_schema(), places);
    let batches = reader.with_projection(mask).with_batch_size(ROWS_A_PIECE).build().map_err(invalid)?;
    let columns = rows.columns().clone();
    let records = batches.map(move |batch| {
        let records = rows.records(&batch.map_err(invalid)?)?;
        Ok(Piece { bytes: bytes * records.len() as u64 / total, records })
    });
    Ok(Input { columns, bytes, records: Box::new(records) })
}

fn invalid(error: impl std::fmt::Display) -> Error {
    Error::invalid(format!("it can't be read as Parquet: {error}"))
}
