//! Results as CSV, with a line of titles even where there are no rows.

use std::io;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::csv::{Writer, WriterBuilder};
use datafusion::arrow::datatypes::SchemaRef;
use forebay_types::Result;

use super::from_arrow;

/// Comma-separated values; the header is there without rows, too.
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
        self.begun = true;
        self.writer.write(batch).map_err(from_arrow)
    }

    pub(super) fn finish(mut self) -> Result<W> {
        if !self.begun && !self.schema.fields().is_empty() {
            self.write(&RecordBatch::new_empty(self.schema.clone()))?;
        }
        Ok(self.writer.into_inner())
    }
}
