//! How wide rows may be of which a batch has as many as it may have.

use datafusion::arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use forebay_types::format_bytes;

use crate::functions::widest;

/// A batch, or the parts that it is cut into, made when they are asked for.
pub(super) type Parts = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// What an error of too wide a row says, and what stands before the rows that fit where fewer of them do.
const TOO_WIDE: &str = "of them at once are more than";
const FEWER: &str = "SET datafusion.execution.batch_size = ";

/// By how much batches become smaller at least where a row is too wide for them: others may be wider still, and each is come upon in an attempt.
const SMALLER: usize = 8;

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

    /// An error where a batch of rows of a width is more, with how many would fit.
    pub(super) fn check(&self, width: u64) -> Result<()> {
        let rows = self.rows as u64;
        if self.fits(width, rows) {
            return Ok(());
        }
        let fewer = (self.bytes / width).max(1);
        Err(self.refused(width, rows, &format!("have fewer rows made at once (`{FEWER}{fewer}`), ")))
    }

    /// An error where so many rows are more that are made at once, however few a batch has.
    pub(super) fn check_made(&self, width: u64, made: u64) -> Result<()> {
        if self.fits(width, made) { Ok(()) } else { Err(self.refused(width, made, "")) }
    }

    fn refused(&self, width: u64, rows: u64, remedy: &str) -> DataFusionError {
        let (wide, most) = (format_bytes(width), format_bytes(self.bytes));
        DataFusionError::Execution(format!(
            "a row of {wide} stands in as many rows as a join or `unnest` makes of it, and {rows} {TOO_WIDE} {most}: select fewer or \
             narrower columns beside it, {remedy}or allow SQL more (`sql-memory`)"
        ))
    }
}

/// How many rows a batch is to have instead of so many, after an error that says that a row is too wide for them; none where it says something
/// else, or fewer don't help. It is looked for in the text: errors of executors come as such.
pub(crate) fn fewer_rows(error: &str, rows: usize) -> Option<usize> {
    let remedy = error.split_once(TOO_WIDE)?.1.split_once(FEWER)?.1;
    let fits: usize = remedy.split(|sign: char| !sign.is_ascii_digit()).next()?.parse().ok()?;
    if rows <= 1 {
        return None;
    }
    let fewer = fits.min(rows / SMALLER).max(1);
    assert!(fewer < rows, "a statement runs again with {fewer} rows in a batch instead of {rows}, and without an end");
    Some(fewer)
}

/// What whoever asked is to know of a statement that runs again so.
pub(crate) fn ran_again(rows: usize) -> String {
    format!(
        "the statement ran again in batches of {rows} rows, since a join or `unnest` repeats a row that is too wide for larger ones: \
         `{FEWER}{rows}` spares the first attempt"
    )
}
