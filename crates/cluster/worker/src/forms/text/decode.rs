//! Columns of lines, decoded.

use std::fmt::Display;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_csv::ReaderBuilder as Csv;
use arrow_json::ReaderBuilder as Json;
use arrow_schema::{ArrowError, SchemaRef};
use bytes::Bytes;
use forebay_table::schema_from_bytes;
use forebay_types::{CsvLines, Error, Result, SEGMENT_BYTES, TextForm, TextLines};

use super::lines::lines_are_rows;
use crate::forms::cell::{BATCH_ROWS, Made, cell_writer, finish};
use crate::forms::clock::{Clock, read_time};

/// The three bytes that a reader of CSV leaves out at the start of what it reads.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Columns of one chunk: what its lines are taken for, and its rows' bytes in the file.
pub(in crate::forms) struct Rows {
    pub(in crate::forms) form: Arc<TextForm>,
    pub(in crate::forms) schema: SchemaRef,
    /// Ascending.
    pub(in crate::forms) columns: Vec<usize>,
    /// They are the file's first.
    pub(in crate::forms) first: bool,
    pub(in crate::forms) raw: Bytes,
}

/// The schema that a form names.
/// `Corrupt` when it names none, `Invalid` when it does not have these columns, or when they are nested.
pub(in crate::forms) fn schema_with(form: &TextForm, columns: &[usize]) -> Result<SchemaRef> {
    let schema = schema_from_bytes(&form.schema)?;
    for column in columns {
        match schema.fields().get(*column) {
            Some(field) if !field.data_type().is_nested() => {}
            Some(_) => return Err(Error::invalid(format!("column {column} is nested: it stays raw"))),
            None => return Err(Error::invalid(format!("there is no column {column}"))),
        }
    }
    Ok(Arc::new(schema))
}

/// Decodes columns, all in one reading of the lines, as the engine's own readers do.
/// `Corrupt` when the lines can't be what the form says, or values have lines of their own; `Invalid` for types that a table
/// can't hold.
pub(in crate::forms) fn decode(rows: &Rows) -> Result<Made> {
    let read = read_time(&rows.raw);
    let clock = Clock::start();
    let cells = match &rows.form.lines {
        TextLines::Csv(csv) => write(rows, of_csv(rows, csv)?)?,
        TextLines::Json => write(rows, of_json(rows)?)?,
    };
    Ok(Made { cells, took: clock.elapsed(), read })
}

fn of_csv<'a>(rows: &'a Rows, csv: &CsvLines) -> Result<impl Iterator<Item = Result<RecordBatch, ArrowError>> + use<'a>> {
    if !lines_are_rows(&rows.raw, csv) {
        return Err(corrupt(&"values go on in the next line"));
    }
    if !rows.first && rows.raw.starts_with(BYTE_ORDER_MARK) {
        return Err(corrupt(&"a byte order mark within the file"));
    }
    let mut builder = Csv::new(Arc::clone(&rows.schema))
        .with_header(csv.header && rows.first)
        .with_delimiter(csv.delimiter)
        .with_quote(csv.quote)
        .with_truncated_rows(csv.truncated_rows)
        .with_projection(rows.columns.clone())
        .with_batch_size(BATCH_ROWS);
    if let Some(terminator) = csv.terminator {
        builder = builder.with_terminator(terminator);
    }
    if let Some(escape) = csv.escape {
        builder = builder.with_escape(escape);
    }
    if let Some(comment) = csv.comment {
        builder = builder.with_comment(comment);
    }
    builder.build_buffered(rows.raw.as_ref()).map_err(|error| corrupt(&error))
}

fn of_json(rows: &Rows) -> Result<impl Iterator<Item = Result<RecordBatch, ArrowError>> + use<'_>> {
    let schema = rows.schema.project(&rows.columns).map_err(|error| corrupt(&error))?;
    let builder = Json::new(Arc::new(schema)).with_batch_size(BATCH_ROWS);
    builder.build(rows.raw.as_ref()).map_err(|error| corrupt(&error))
}

fn write(rows: &Rows, batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>) -> Result<Vec<Vec<u8>>> {
    let fields = rows.columns.iter().map(|column| rows.schema.field(*column));
    let mut writers = fields.map(|field| cell_writer(field.data_type(), field.is_nullable())).collect::<Result<Vec<_>>>()?;
    let mut decoded = 0;
    for batch in batches {
        let batch = batch.map_err(|error| corrupt(&error))?;
        // Nulls take the room of values: short lines of many columns would grow without a bound.
        decoded += batch.get_array_memory_size() as u64;
        if decoded > SEGMENT_BYTES {
            return Err(Error::invalid(format!("more than {SEGMENT_BYTES} bytes when they are decoded")));
        }
        for (at, writer) in writers.iter_mut().enumerate() {
            writer.push(&batch.project(&[at]).map_err(|error| corrupt(&error))?)?;
        }
    }
    writers.into_iter().map(finish).collect()
}

fn corrupt(error: &dyn Display) -> Error {
    Error::corrupt(format!("the lines are not what the form says: {error}"))
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field, Schema};
    use forebay_types::ErrorKind;

    use super::*;

    #[test]
    fn many_columns_of_nothing_are_bounded() {
        let decoded = |columns: usize| {
            let fields: Vec<_> = (0..columns).map(|at| Field::new(format!("f{at}"), DataType::Int64, true)).collect();
            let schema = Arc::new(Schema::new(fields));
            let form = TextForm { lines: TextLines::Json, schema: forebay_table::schema_to_bytes(&schema).expect("a schema") };
            let raw = Bytes::from(b"{}\n".repeat(200_000));
            decode(&Rows { form: Arc::new(form), schema, columns: (0..columns).collect(), first: true, raw })
        };
        assert_eq!(decoded(2).expect("it fits").cells.len(), 2);
        assert_eq!(decoded(100).err().expect("200,000 rows of 800 bytes").kind(), ErrorKind::Invalid);
    }
}
