//! Where a row group ends: at its rows, or before a buffer outgrows a segment.

use arrow_array::{Array, ArrayRef};

use super::values::{Values, view};
use crate::metadata::SEGMENT_BYTES;
use crate::schema::{Kind, TableSchema};

/// Bytes of the leaves' values in a row group that is being gathered.
#[derive(Clone)]
pub(super) struct Load {
    leaves: Vec<u64>,
}

impl Load {
    pub fn none(schema: &TableSchema) -> Self {
        Self { leaves: vec![0; schema.leaves().len()] }
    }

    /// This with the arrays' rows added.
    pub fn with(&self, schema: &TableSchema, arrays: &[ArrayRef]) -> Self {
        let more = schema.leaves().iter().zip(arrays).map(|(leaf, array)| bytes(array, leaf.kind()));
        Self { leaves: self.leaves.iter().zip(more).map(|(have, more)| have + more).collect() }
    }

    /// Whether every buffer fits into a segment, and all of them into `bytes_max`.
    pub fn fits(&self, bytes_max: u64) -> bool {
        self.too_large().is_none() && self.leaves.iter().sum::<u64>() <= bytes_max
    }

    /// The first leaf that does not fit into a segment, with its bytes.
    pub fn too_large(&self) -> Option<(usize, u64)> {
        self.leaves.iter().copied().enumerate().find(|(_, bytes)| *bytes > SEGMENT_BYTES)
    }
}

/// Bytes of a column's largest buffer, or a little more.
fn bytes(array: &ArrayRef, kind: Kind) -> u64 {
    let rows = array.len() as u64;
    let values = match Values::of(array, kind) {
        Values::Nothing => 0,
        Values::Bit(_) => rows,
        Values::Fixed { width, .. } => return rows * width as u64,
        Values::Bytes { starts, .. } => starts.span().len() as u64,
        Values::View(array) => {
            (0..array.len()).filter(|&row| array.is_valid(row)).map(|row| view(&array, row).len() as u64).sum()
        }
        Values::List { starts, item, .. } => (starts.span().len() * item.row_width()) as u64,
    };
    // Offsets have at most 8 bytes, and one more than rows; views have 16.
    values.max(16 * rows)
}
