//! Results as tables with borders, of some thousand rows each so that memory stays bounded.

use std::io;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::util::display::FormatOptions;
use datafusion::arrow::util::pretty::pretty_format_batches_with_options;
use forebay_types::Result;

use super::from_arrow;

/// Rows that are laid out together: the widths of a table's columns come from its first rows.
const ROWS_TOGETHER: usize = 10_000;

/// A table with borders. Rows are held until a few thousand are there, so that memory stays bounded; a longer result is
/// several tables one below the other.
pub(super) struct TableWriter<W: io::Write> {
    schema: SchemaRef,
    held: Vec<RecordBatch>,
    rows: usize,
    begun: bool,
    out: W,
}

impl<W: io::Write> TableWriter<W> {
    pub(super) fn new(schema: SchemaRef, out: W) -> Self {
        Self { schema, held: Vec::new(), rows: 0, begun: false, out }
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows();
        self.held.push(batch.clone());
        if self.rows >= ROWS_TOGETHER {
            self.lay_out()?;
        }
        Ok(())
    }

    fn lay_out(&mut self) -> Result<()> {
        debug_assert_eq!(
            self.held.iter().map(RecordBatch::num_rows).sum::<usize>(),
            self.rows,
            "rows are counted as they are held"
        );
        if self.held.is_empty() {
            self.held.push(RecordBatch::new_empty(self.schema.clone()));
        }
        let options = FormatOptions::default().with_display_error(true);
        let table = pretty_format_batches_with_options(&self.held, &options).map_err(from_arrow)?;
        writeln!(self.out, "{table}")?;
        self.begun = true;
        self.held.clear();
        self.rows = 0;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<W> {
        if !self.schema.fields().is_empty() && (self.rows > 0 || !self.begun) {
            self.lay_out()?;
        }
        Ok(self.out)
    }
}
