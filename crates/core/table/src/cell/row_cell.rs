//! Cells that keep rows: opened with their offsets checked, read in place, or turned into columns.

use std::ops::Range;

use arrow_array::ArrayRef;
use bytes::Bytes;
use forebay_types::{Error, Result};

use super::row::Row;
use super::rows::columns;
use super::starts::{Offset, Picked, Strided};
use crate::layout::{Group, RowLayout};
use crate::schema::TableSchema;

/// A cell of several columns, which keeps rows.
///
/// Rows are read in place by [`RowCell::row`], or become Arrow's columns through a [`crate::Chunk`].
#[derive(Clone, Debug)]
pub struct RowCell {
    schema: TableSchema,
    group: Group,
    rows: usize,
    /// One more than rows, or none where all rows have the same size.
    offsets: Vec<u32>,
    parts: Vec<Part>,
}

/// Rows that lie side by side; a new part begins where a segment does.
#[derive(Clone, Debug)]
struct Part {
    rows: Range<usize>,
    base: usize,
    bytes: Bytes,
}

impl RowCell {
    /// A cell from its buffers, whose number and lengths have been checked against the rows: the offsets, then the parts.
    pub(crate) fn open(schema: &TableSchema, group: &Group, rows: usize, mut buffers: Vec<Bytes>) -> Result<Self> {
        let parts = buffers.split_off(1);
        let offsets = buffers[0].as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect::<Vec<_>>();
        let mut cell =
            Self { schema: schema.clone(), group: group.clone(), rows, offsets, parts: Vec::with_capacity(parts.len()) };
        cell.check_offsets(parts.iter().map(Bytes::len).sum())?;
        let mut base = 0;
        let mut first = 0;
        for bytes in parts {
            let end = base + bytes.len();
            let last = match cell.layout().stride() {
                Some(stride) => end / stride,
                None => cell.offsets.binary_search(&(end as u32)).map_err(|_| cell.corrupt(first, "it is cut in two"))?,
            };
            cell.parts.push(Part { rows: first..last, base, bytes });
            (first, base) = (last, end);
        }
        if first == rows { Ok(cell) } else { Err(cell.corrupt(first, "it is not there")) }
    }

    fn check_offsets(&self, bytes: usize) -> Result<()> {
        let Some((&last, _)) = self.offsets.split_last() else { return Ok(()) };
        if self.offsets[0] != 0 || last as usize != bytes {
            return Err(self.corrupt(0, "the rows' offsets do not span the cell"));
        }
        let fixed = self.layout().fixed_bytes as u64;
        let short = self.offsets.windows(2).position(|pair| u64::from(pair[0]) + fixed > u64::from(pair[1]));
        short.map_or(Ok(()), |row| Err(self.corrupt(row, "it is shorter than its fixed area")))
    }

    fn corrupt(&self, row: usize, what: &str) -> Error {
        let column = self.schema.leaves()[self.group.leaves()[0]].path();
        Error::corrupt(format!("cell of column `{column}` and others, row {row}: {what}"))
    }

    pub(crate) fn layout(&self) -> &RowLayout {
        self.group.rows().expect("a cell of rows has a layout of rows")
    }

    /// Rows in the cell.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The column's number in the group, for [`Row`]'s getters, by its path.
    /// `NotFound` if it is not in this group.
    pub fn column(&self, path: &str) -> Result<usize> {
        let leaf = self.schema.leaf(path)?;
        let found = self.group.leaves().iter().position(|&member| member == leaf);
        found.ok_or_else(|| Error::not_found(format!("the column `{path}` is in another column group")))
    }

    /// A row, in place.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> Row<'_> {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        let part = &self.parts[self.parts.partition_point(|part| part.rows.end <= row)];
        let range = match self.layout().stride() {
            Some(stride) => row * stride..(row + 1) * stride,
            None => self.offsets[row] as usize..self.offsets[row + 1] as usize,
        };
        Row::new(self.layout(), &part.bytes[range.start - part.base..range.end - part.base])
    }

    /// The columns `wanted` (numbers in the group) of consecutive rows, one list a run that lies side by side.
    pub(crate) fn decode(&self, range: Range<usize>, wanted: &[usize]) -> Result<Vec<Vec<ArrayRef>>> {
        let mut out = Vec::with_capacity(1);
        for part in &self.parts {
            let (start, end) = (range.start.max(part.rows.start), range.end.min(part.rows.end));
            if start >= end {
                continue;
            }
            out.push(match self.layout().stride() {
                Some(stride) => {
                    let bytes = &part.bytes[start * stride - part.base..end * stride - part.base];
                    columns(&self.schema, &self.group, bytes, Strided { first: start, rows: end - start, stride }, wanted)?
                }
                None => {
                    let run = Offset { first: start, base: part.base, offsets: &self.offsets[start..=end] };
                    columns(&self.schema, &self.group, &part.bytes, run, wanted)?
                }
            });
        }
        Ok(out)
    }

    /// The columns `wanted` of some rows in ascending order, one list a part that has any.
    pub(crate) fn gather(&self, picked: &[u32], wanted: &[usize]) -> Result<Vec<Vec<ArrayRef>>> {
        if picked.last().is_some_and(|&row| row as usize >= self.rows) {
            return Err(Error::invalid(format!("a row beyond the {} of its row group is asked for", self.rows)));
        }
        let mut out = Vec::with_capacity(1);
        for part in &self.parts {
            let Range { start, end } = part.rows;
            let begin = picked.partition_point(|&row| (row as usize) < start);
            let rows = &picked[begin..picked.partition_point(|&row| (row as usize) < end)];
            if rows.is_empty() {
                continue;
            }
            out.push(match self.layout().stride() {
                Some(stride) => {
                    let run = Strided { first: start, rows: end - start, stride };
                    columns(&self.schema, &self.group, &part.bytes, Picked { run, first: start, rows }, wanted)?
                }
                None => {
                    let run = Offset { first: start, base: part.base, offsets: &self.offsets[start..=end] };
                    columns(&self.schema, &self.group, &part.bytes, Picked { run, first: start, rows }, wanted)?
                }
            });
        }
        Ok(out)
    }
}
