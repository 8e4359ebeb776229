//! How wide rows may be of which a batch has as many as it may have.

use datafusion::arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use forebay_types::format_bytes;

use crate::functions::widest;

/// A batch, or the parts that it is cut into, made when they are asked for.
pub(super) type Parts = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Rows of a batch, and what they may come to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) rows: usize,
    pub(super) bytes: u64,
}

impl Bound {
    /// Bytes of the widest row of some columns, or a little more.
    pub(super) fn width(&self, batch: &RecordBatch, columns: &[usize]) -> u64 {
        let enough = self.bytes / (self.rows * columns.len().max(1)) as u64;
        columns.iter().map(|column| widest(batch.column(*column).as_ref(), enough)).fold(0, u64::saturating_add)
    }

    /// Whether so many rows of a width are no more than there may be.
    pub(super) fn fits(&self, width: u64, rows: u64) -> bool {
        rows <= 1 || width.saturating_mul(rows) <= self.bytes
    }

    /// An error where they are more.
    pub(super) fn check(&self, width: u64, rows: u64) -> Result<()> {
        if self.fits(width, rows) {
            return Ok(());
        }
        let (wide, most, fewer) = (format_bytes(width), format_bytes(self.bytes), (self.bytes / width).max(1));
        Err(DataFusionError::Execution(format!(
            "a row of {wide} stands in as many rows as a join or `unnest` makes of it, and {rows} of them at once are more than {most}: \
             select fewer or narrower columns beside it, have fewer rows made at once (`SET datafusion.execution.batch_size = {fewer}`), \
             or allow SQL more (`sql-memory`)"
        )))
    }
}
