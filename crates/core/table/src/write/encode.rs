//! From batches to the cells of one row group, with no need to know where in a file they will go.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_select::concat::concat;
use forebay_types::{Error, Result};

use super::blooms::{Wish, bloom};
use super::measure::statistics;
use super::nested::Level;
use super::rows::{RowEnds, encode_rows};
use super::values::{Values, bitmap, validity, view};
use crate::layout::Group;
use crate::metadata::{LeafStatistics, ROWS_MAX};
use crate::schema::{Kind, TableSchema};

/// Turns rows into the cells of one row group. Cheap to clone; row groups do not depend on each other.
#[derive(Clone)]
pub struct Encoder {
    pub(super) shape: Arc<Shape>,
}

/// What all row groups of a table have in common.
pub(super) struct Shape {
    pub schema: TableSchema,
    pub groups: Vec<Group>,
    /// Of each leaf, whether it is to have bloom filters.
    pub blooms: Vec<Wish>,
}

impl Shape {
    /// Whether some row group may have a bloom filter.
    pub fn has_blooms(&self) -> bool {
        self.blooms.iter().any(|wish| *wish != Wish::No)
    }
}

/// A row group whose place in a file is not known yet.
pub struct RowGroup {
    pub(super) rows: usize,
    pub(super) cells: Vec<EncodedCell>,
    pub(super) leaves: Vec<LeafStatistics>,
    /// One a leaf, where it has one.
    pub(super) blooms: Vec<Option<Vec<u8>>>,
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
    /// `Invalid` if they are not of the table's schema, hold no row or more than 1,048,576, or if a column of them, or one
    /// row, is larger than a segment.
    pub fn encode(&self, batches: &[RecordBatch]) -> Result<RowGroup> {
        let leaves = batches.iter().map(|batch| self.shape.schema.flatten(batch)).collect::<Result<Vec<_>>>()?;
        self.encode_leaves(batches.iter().map(RecordBatch::num_rows).sum(), &leaves, &mut Spares::default())
    }

    /// Encodes the leaves' arrays of one or several batches.
    pub(super) fn encode_leaves(&self, rows: usize, batches: &[Vec<ArrayRef>], spares: &mut Spares) -> Result<RowGroup> {
        let Shape { schema, groups, blooms: wishes } = &*self.shape;
        if rows == 0 || rows > ROWS_MAX {
            return Err(Error::invalid(format!("a row group of {rows} rows; it can have 1 to {ROWS_MAX}")));
        }
        let mut arrays = Vec::with_capacity(schema.leaves().len());
        let mut leaves = Vec::with_capacity(schema.leaves().len());
        let mut blooms = Vec::with_capacity(schema.leaves().len());
        for (index, leaf) in schema.leaves().iter().enumerate() {
            let array = match batches {
                [one] => one[index].clone(),
                several => {
                    let pieces = several.iter().map(|batch| batch[index].as_ref()).collect::<Vec<_>>();
                    concat(&pieces).map_err(|error| Error::invalid(format!("column `{}`: {error}", leaf.path())))?
                }
            };
            assert_eq!(array.len(), rows, "column `{}` has a value for each row", leaf.path());
            let known = statistics(&array);
            assert!(known.nulls <= rows, "column `{}` has {} nulls in {rows} rows", leaf.path(), known.nulls);
            blooms.push(bloom(wishes[index], &array, &known));
            leaves.push(known);
            arrays.push(array);
        }
        spares.0.resize_with(groups.len(), Vec::new);
        let cells = groups.iter().zip(&mut spares.0);
        let cells = cells.map(|(group, spare)| encode_cell(schema, group, rows, &arrays, std::mem::take(spare)));
        let cells = cells.collect::<Result<_>>()?;
        Ok(RowGroup { rows, cells, leaves, blooms })
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
        None => match kind(group.leaves()[0]) {
            Kind::Nested { buffers } => {
                let mut levels = Vec::with_capacity(buffers);
                encode_levels(&arrays[group.leaves()[0]], &mut levels);
                (levels, None)
            }
            plain => (encode_column(&arrays[group.leaves()[0]], plain), None),
        },
        Some(layout) => {
            let columns = group.leaves().iter().map(|&leaf| (&arrays[leaf], kind(leaf))).collect::<Vec<_>>();
            let (buffers, ends) = encode_rows(layout, rows, &columns, spare)?;
            (buffers, Some(ends))
        }
    };
    let slots = group.slots(schema);
    assert!(buffers.len() == slots || rows.is_some(), "{} buffers of a column that has {slots}", buffers.len());
    let checksum = buffers.iter().fold(0, |sum, buffer| forebay_types::crc32c_append(sum, buffer));
    Ok(EncodedCell { buffers, rows, checksum })
}

/// A column's buffers: validity, then what its kind has.
fn encode_column(array: &ArrayRef, kind: Kind) -> Vec<Buffer> {
    let validity = validity_buffer(array);
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

/// The buffers of a level, and then of what is below it.
fn encode_levels(array: &ArrayRef, out: &mut Vec<Buffer>) {
    match Level::of(array) {
        Some(Level { starts, below }) => {
            out.push(validity_buffer(array));
            out.extend(starts.map(|starts| starts.rebased()));
            below.iter().for_each(|array| encode_levels(array, out));
        }
        None => out.extend(encode_column(array, Kind::of_plain(array.data_type()))),
    }
}

/// The bits of a column's validity; none where all values are there.
fn validity_buffer(array: &ArrayRef) -> Buffer {
    validity(array).map_or_else(|| Buffer::from(Vec::<u8>::new()), Buffer::from_vec)
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

#[cfg(test)]
mod tests {
    use arrow_array::builder::{Int32Builder, ListBuilder};

    use super::*;

    #[test]
    fn a_slice_of_lists_has_its_own_values_only() {
        let mut lists = ListBuilder::new(ListBuilder::new(Int32Builder::new()));
        for row in 0..6 {
            for item in 0..row {
                lists.values().values().append_value(10 * row + item);
                lists.values().append(true);
            }
            lists.append(row != 2);
        }
        let array = Arc::new(lists.finish().slice(2, 2)) as ArrayRef;
        let mut buffers = Vec::new();
        encode_levels(&array, &mut buffers);
        assert_eq!(buffers.len(), 6);
        assert_eq!(buffers[0].as_slice(), [0b10], "the first one is null");
        assert_eq!(buffers[1].typed_data::<i32>(), [0, 2, 5]);
        assert!(buffers[2].is_empty() && buffers[4].is_empty(), "all of these are there");
        assert_eq!(buffers[3].typed_data::<i32>(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(buffers[5].typed_data::<i32>(), [20, 21, 30, 31, 32]);
    }
}
