//! Where a row group ends: at its rows, or before a buffer outgrows a segment.

use arrow_array::{Array, ArrayRef};

use super::nested::Level;
use super::values::{Values, view};
use crate::metadata::SEGMENT_BYTES;
use crate::schema::{Kind, TableSchema};

/// Bytes of the leaves' values in a row group that is being gathered.
#[derive(Clone)]
pub(super) struct Load {
    /// Of each leaf the largest buffer, and all of them.
    leaves: Vec<(u64, u64)>,
}

impl Load {
    pub fn none(schema: &TableSchema) -> Self {
        Self { leaves: vec![(0, 0); schema.leaves().len()] }
    }

    /// This with the arrays' rows added.
    pub fn with(&self, schema: &TableSchema, arrays: &[ArrayRef]) -> Self {
        assert_eq!(arrays.len(), self.leaves.len(), "each leaf has an array");
        let more = schema.leaves().iter().zip(arrays).map(|(leaf, array)| bytes(array, leaf.kind()));
        Self { leaves: self.leaves.iter().zip(more).map(|(have, more)| (have.0 + more.0, have.1 + more.1)).collect() }
    }

    /// Whether every buffer fits into a segment, and all of them into `bytes_max`.
    pub fn fits(&self, bytes_max: u64) -> bool {
        self.too_large().is_none() && self.leaves.iter().map(|(_, all)| all).sum::<u64>() <= bytes_max
    }

    /// The first leaf that does not fit into a segment, with its bytes.
    pub fn too_large(&self) -> Option<(usize, u64)> {
        let largest = self.leaves.iter().map(|(largest, _)| *largest);
        largest.enumerate().find(|(_, bytes)| *bytes > SEGMENT_BYTES)
    }
}

/// Bytes of the largest buffer of all levels, and of all buffers, or a little more.
fn level_bytes(array: &ArrayRef) -> (u64, u64) {
    match Level::of(array) {
        Some(Level { starts, below }) => {
            // Offsets have at most 8 bytes, and one more than there are values.
            let own = if starts.is_some() { 8 * (array.len() as u64 + 1) } else { 0 };
            let add = |(largest, all): (u64, u64), below: (u64, u64)| (largest.max(below.0), all + below.1);
            below.iter().map(level_bytes).fold((own, own), add)
        }
        None => match Kind::of_plain(array.data_type()) {
            Kind::Bit => ((array.len() as u64).div_ceil(8), (array.len() as u64).div_ceil(8)),
            Kind::Nothing => (0, 0),
            kind => bytes(array, kind),
        },
    }
}

/// Bytes of a column's largest buffer, and of all of them, or a little more.
pub(super) fn bytes(array: &ArrayRef, kind: Kind) -> (u64, u64) {
    if kind.is_nested() {
        return level_bytes(array);
    }
    let rows = array.len() as u64;
    let values = match Values::of(array, kind) {
        Values::Nothing => 0,
        Values::Bit(_) => rows,
        Values::Fixed { width, .. } => return (rows * width as u64, rows * width as u64),
        Values::Bytes { starts, .. } => starts.span().len() as u64,
        Values::View(array) => {
            (0..array.len()).filter(|&row| array.is_valid(row)).map(|row| view(&array, row).len() as u64).sum()
        }
        Values::List { starts, item, .. } => (starts.span().len() * item.row_width()) as u64,
    };
    // Offsets have at most 8 bytes, and one more than rows; views have 16.
    (values.max(16 * rows), values.max(16 * rows))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{ListBuilder, StringBuilder};

    use super::*;

    #[test]
    fn the_largest_buffer_of_all_levels_counts() {
        let mut texts = ListBuilder::new(StringBuilder::new());
        texts.values().append_value("x".repeat(1000));
        texts.append(true);
        texts.append(true);
        // 24 of the offsets of two lists beside the text.
        assert_eq!(level_bytes(&(Arc::new(texts.finish()) as ArrayRef)), (1000, 1024));
        let mut texts = ListBuilder::new(StringBuilder::new());
        (0..100).for_each(|_| texts.append(true));
        assert_eq!(level_bytes(&(Arc::new(texts.finish()) as ArrayRef)), (808, 808));
    }
}
