//! What a decoded column is written as.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use arrow_schema::{DataType, Field, Schema};
use forebay_table::{Options, Writer};
use forebay_types::{Result, SEGMENT_BYTES};

/// Rows of a batch, and of a row group of the cell: what an engine takes at a time, with buffers of its own, so that a batch
/// in an engine's hands is counted as what it is.
pub(super) const BATCH_ROWS: usize = 8192;

/// Decoded columns, a table of one column each by docs/specs/table.md.
pub(super) struct Made {
    pub(super) cells: Vec<Vec<u8>>,
    pub(super) took: Duration,
    /// How long reading so many bytes from the tier took.
    pub(super) read: (usize, Duration),
}

impl Made {
    /// Bytes of all cells.
    pub(super) fn bytes(&self) -> usize {
        self.cells.iter().map(Vec::len).sum()
    }
}

/// A writer of one column.
/// `Invalid` for a type that a table can't hold; its pushes fail beyond a segment's size.
pub(super) fn cell_writer(data_type: &DataType, nullable: bool) -> Result<Writer<Limited>> {
    let schema = Arc::new(Schema::new(vec![Field::new("v", data_type.clone(), nullable)]));
    Writer::new(Limited(Vec::new()), schema, Options { row_group_rows: BATCH_ROWS, ..Options::default() })
}

/// What a writer has written.
pub(super) fn finish(writer: Writer<Limited>) -> Result<Vec<u8>> {
    let (Limited(bytes), _) = writer.finish()?;
    Ok(bytes)
}

/// A vector that does not grow beyond a segment.
pub(super) struct Limited(Vec<u8>);

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.0.len() + bytes.len()) as u64 > SEGMENT_BYTES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "a decoded column larger than a segment"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
