//! Records of CSV and TSV files, whose types are found by reading all of the file first.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::csv::ReaderBuilder;
use datafusion::arrow::csv::reader::Format;
use forebay_types::{Error, Result};

use super::arrow::{Rows, project};
use super::bounded::{Bounded, ROWS_TOGETHER};
use super::{Input, Piece, Wanted};

/// Opens a file of fields between delimiters, with the columns' names in the first line; the types are those that all
/// values of a column have.
pub(super) fn open(path: &Path, delimiter: u8, wanted: &Wanted<'_>) -> Result<Input> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let format = Format::default().with_header(true).with_delimiter(delimiter);
    let (schema, total) =
        format.infer_schema(BufReader::with_capacity(1 << 20, Bounded::new(&file, delimiter)), None).map_err(invalid)?;
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let places = wanted.places(&names)?;
    let kept = project(&schema, &places);
    // A field of no characters is text of no characters; for other types it is no value.
    let mut rows = Rows::new(&kept, &(0..places.len()).collect::<Vec<_>>(), wanted)?;
    rows.empty_text = true;
    let reader = ReaderBuilder::new(Arc::new(schema)).with_format(format).with_projection(places).with_batch_size(ROWS_TOGETHER);
    let batches = reader.build(Bounded::new(File::open(path)?, delimiter)).map_err(invalid)?;
    let columns = rows.columns.clone();
    let records = batches.map(move |batch| {
        let records = rows.records(&batch.map_err(invalid)?)?;
        Ok(Piece { bytes: bytes * records.len() as u64 / total.max(1) as u64, records })
    });
    Ok(Input { columns, bytes, records: Box::new(records) })
}

fn invalid(error: impl std::fmt::Display) -> Error {
    Error::invalid(format!("it can't be read as CSV: {error}"))
}
