//! Writing of results.

mod csv;
mod json;
mod plain;
mod stream;
mod table;

use std::io;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use forebay_types::{Error, Result};

use crate::error::check_distinct;

pub use stream::{ArrowStream, plain_rows, plain_schema};

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A table with borders, for people.
    Table,
    /// One JSON array of objects.
    Json,
    /// A JSON object a line.
    NdJson,
    /// Comma-separated values with a header.
    Csv,
}

/// Writes the rows of one query as they come. What is written is whole only after [`Writer::finish`].
pub struct Writer<W: io::Write> {
    inner: Inner<W>,
}

enum Inner<W: io::Write> {
    Table(table::TableWriter<W>),
    Json(json::JsonWriter<W>),
    Csv(Box<csv::CsvWriter<W>>),
}

impl<W: io::Write> Writer<W> {
    /// A writer of rows with these columns.
    pub fn new(form: Form, schema: SchemaRef, out: W) -> Self {
        let inner = match form {
            Form::Table => Inner::Table(table::TableWriter::new(schema, out)),
            Form::Json => Inner::Json(json::JsonWriter::array(out)),
            Form::NdJson => Inner::Json(json::JsonWriter::lines(out)),
            Form::Csv => Inner::Csv(Box::new(csv::CsvWriter::new(schema, out))),
        };
        Self { inner }
    }

    /// Writes some rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match &mut self.inner {
            Inner::Table(table) => table.write(batch),
            Inner::Json(json) => {
                check_distinct(batch.schema_ref().fields())?;
                json.write(batch)
            }
            Inner::Csv(csv) => csv.write(batch),
        }
    }

    /// Writes what belongs after the last row, and gives the target back.
    pub fn finish(self) -> Result<W> {
        match self.inner {
            Inner::Table(table) => table.finish(),
            Inner::Json(json) => json.finish(),
            Inner::Csv(csv) => csv.finish(),
        }
    }
}

fn from_arrow(error: datafusion::arrow::error::ArrowError) -> Error {
    match error {
        datafusion::arrow::error::ArrowError::IoError(_, error) => Error::from(error),
        other => Error::invalid(format!("these values can't be written: {other}")),
    }
}
