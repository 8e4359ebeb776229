//! From batches to the cells of one row group, with no need to know where in a file they will go.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_select::concat::concat;
use forebay_types::{Error, Result};

use super::measure::statistics;
use super::rows::{RowEnds, encode_rows};
use super::values::{Values, bitmap, validity, view};
use crate::layout::Group;
use crate::metadata::{LeafStatistics, ROWS_MAX};
use crate::schema::{Kind, TableSchema};

/// Turns rows into the cells of one row group. Cheap to clone; row groups do not depend on each other.
#[derive(Clone)]
pub struct Encoder {
    pub(super) shape: Arc<(TableSchema, Vec<Group>)>,
}

/// A row group whose place in a file is not known yet.
pub struct RowGroup {
    pub(super) rows: usize,
    pub(super) cells: Vec<EncodedCell>,
    pub(super) leaves: Vec<LeafStatistics>,
}

/// A cell's buffers, and where rows end if it has rows (in the last buffer then).
pub(super) struct EncodedCell {
    pub buffers: Vec<Buffer>,
    pub rows: Option<RowEnds>,
    pub checksum: u32,
}

impl RowGroup {
    /// Rows in the group.
    pub fn rows(&self) -> usize {
        self.rows
    }
}

impl Encoder {
    /// Encodes batches as one row group.
    ///
    /// # Errors
    /// `Invalid` if they are not of the table's schema, hold no row or more than 1,048,576, or if a column of them, or one
    /// row, is larger than a segment.
    pub fn encode(&self, batches: &[RecordBatch]) -> Result<RowGroup> {
        let leaves = batches.iter().map(|batch| self.shape.0.flatten(batch)).collect::<Result<Vec<_>>>()?;
        self.encode_leaves(batches.iter().map(RecordBatch::num_rows).sum(), &leaves, &mut Spares::default())
    }

    /// Encodes the leaves' arrays of one or several batches.
    pub(super) fn encode_leaves(&self, rows: usize, batches: &[Vec<ArrayRef>], spares: &mut Spares) -> Result<RowGroup> {
        let (schema, groups) = &*self.shape;
        if rows == 0 || rows > ROWS_MAX {
            return Err(Error::invalid(format!("a row group of {rows} rows; it can have 1 to {ROWS_MAX}")));
        }
        let mut arrays = Vec::with_capacity(schema.leaves().len());
        let mut leaves = Vec::with_capacity(schema.leaves().len());
        for (index, leaf) in schema.leaves().iter().enumerate() {
            let array = match batches {
                [one] => one[index].clone(),
                several => {
                    let pieces = several.iter().map(|batch| batch[index].as_ref()).collect::<Vec<_>>();
                    concat(&pieces).map_err(|error| Error::invalid(format!("column `{}`: {error}", leaf.path())))?
                }
            };
            leaves.push(statistics(&array));
            arrays.push(array);
        }
        spares.0.resize_with(groups.len(), Vec::new);
        let cells = groups.iter().zip(&mut spares.0);
        let cells = cells.map(|(group, spare)| encode_cell(schema, group, rows, &arrays, std::mem::take(spare)));
        let cells = cells.collect::<Result<_>>()?;
        Ok(RowGroup { rows, cells, leaves })
    }
}

/// Memory of row groups that are written, for the next one: a piece a column group, empty for those of one column.
#[derive(Default)]
pub(super) struct Spares(Vec<Vec<u8>>);

impl Spares {
    /// Takes the memory of a row group back.
    pub fn reclaim(&mut self, row_group: RowGroup) {
        let rows = |mut cell: EncodedCell| cell.rows.and_then(|_| cell.buffers.pop()?.into_vec().ok()).unwrap_or_default();
        self.0 = row_group.cells.into_iter().map(rows).collect();
    }
}

fn encode_cell(schema: &TableSchema, group: &Group, rows: usize, arrays: &[ArrayRef], spare: Vec<u8>) -> Result<EncodedCell> {
    let kind = |leaf: usize| schema.leaves()[leaf].kind();
    let (buffers, rows) = match group.rows() {
        None => (encode_column(&arrays[group.leaves()[0]], kind(group.leaves()[0])), None),
        Some(layout) => {
            let columns = group.leaves().iter().map(|&leaf| (&arrays[leaf], kind(leaf))).collect::<Vec<_>>();
            let (buffers, ends) = encode_rows(layout, rows, &columns, spare)?;
            (buffers, Some(ends))
        }
    };
    let checksum = buffers.iter().fold(0, |sum, buffer| crc32c::crc32c_append(sum, buffer));
    Ok(EncodedCell { buffers, rows, checksum })
}

/// A column's buffers: validity, then what its kind has.
fn encode_column(array: &ArrayRef, kind: Kind) -> Vec<Buffer> {
    let validity = validity(array).map_or_else(|| Buffer::from(Vec::<u8>::new()), Buffer::from_vec);
    match Values::of(array, kind) {
        Values::Nothing => Vec::new(),
        Values::Bit(bits) => vec![validity, Buffer::from_vec(bitmap(&bits))],
        Values::Fixed { bytes, .. } => vec![validity, bytes],
        Values::Bytes { starts, data } => {
            let span = starts.span();
            vec![validity, starts.rebased(), data.slice_with_length(span.start, span.len())]
        }
        Values::View(array) => {
            let (views, data) = compact_views(&array);
            vec![validity, views, data]
        }
        Values::List { starts, items, nulls, .. } => {
            let span = starts.span();
            let nulls = nulls.map(|nulls| nulls.slice(span.start, span.len())).filter(|nulls| nulls.null_count() > 0);
            let nulls = nulls.map_or_else(Vec::new, |nulls| bitmap(nulls.inner()));
            let items = match *items {
                Values::Bit(bits) => Buffer::from_vec(bitmap(&bits.slice(span.start, span.len()))),
                Values::Fixed { bytes, width } => bytes.slice_with_length(span.start * width, span.len() * width),
                _ => unreachable!("lists are of fixed-width values"),
            };
            vec![validity, starts.rebased(), Buffer::from_vec(nulls), items]
        }
    }
}

/// Views into one buffer that holds the long values and nothing else; a view of a null is zero.
fn compact_views(array: &ArrayRef) -> (Buffer, Buffer) {
    let mut data = Vec::new();
    let views = (0..array.len()).map(|row| {
        if array.is_null(row) {
            return 0;
        }
        let value = view(array, row);
        let made = arrow_array::builder::make_view(value, 0, data.len() as u32);
        if value.len() > 12 {
            data.extend_from_slice(value);
        }
        made
    });
    let views = views.collect::<Vec<u128>>();
    (Buffer::from_vec(views), Buffer::from_vec(data))
}
