//! Results as CSV, with a line of titles even where there are no rows.

use std::io;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::csv::{Writer, WriterBuilder};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use forebay_types::Result;

use super::from_arrow;
use super::json::JsonWriter;

/// Comma-separated values; the header is there without rows, too. Lists, maps and structs are written as their JSON.
pub(super) struct CsvWriter<W: io::Write> {
    schema: SchemaRef,
    writer: Writer<W>,
    begun: bool,
}

impl<W: io::Write> CsvWriter<W> {
    pub(super) fn new(schema: SchemaRef, out: W) -> Self {
        Self { schema, writer: WriterBuilder::new().with_header(true).build(out), begun: false }
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let batch = flat(batch)?;
        self.begun = true;
        self.writer.write(&batch).map_err(from_arrow)
    }

    pub(super) fn finish(mut self) -> Result<W> {
        if !self.begun && !self.schema.fields().is_empty() {
            self.write(&RecordBatch::new_empty(self.schema.clone()))?;
        }
        Ok(self.writer.into_inner())
    }
}

/// The batch with text in place of what CSV has no form for.
fn flat(batch: &RecordBatch) -> Result<RecordBatch> {
    let fields = batch.schema_ref().fields();
    if !fields.iter().any(|field| field.data_type().is_nested()) {
        return Ok(batch.clone());
    }
    let fields = fields.iter().map(|field| match field.data_type().is_nested() {
        true => Arc::new(Field::new(field.name(), DataType::Utf8, true)),
        false => Arc::clone(field),
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<FieldRef>>()));
    let columns = batch.columns().iter().map(|column| match column.data_type().is_nested() {
        true => json_of(column),
        false => Ok(Arc::clone(column)),
    });
    RecordBatch::try_new(schema, columns.collect::<Result<Vec<ArrayRef>>>()?).map_err(from_arrow)
}

/// A column's values as JSON.
fn json_of(column: &ArrayRef) -> Result<ArrayRef> {
    const NAME: &str = "{\"v\":";
    let batch = RecordBatch::try_from_iter_with_nullable([("v", Arc::clone(column), true)]).map_err(from_arrow)?;
    let mut writer = JsonWriter::lines(Vec::new());
    writer.write(&batch)?;
    let lines = String::from_utf8_lossy(&writer.finish()?).into_owned();
    let value = |line| str::strip_prefix(line, NAME).and_then(|rest| rest.strip_suffix('}')).filter(|value| *value != "null");
    Ok(Arc::new(lines.lines().map(value).collect::<StringArray>()))
}
