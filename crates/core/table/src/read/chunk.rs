//! A row group whose bytes are at hand, in whatever shape the reader wants it: batches, picked rows, rows in place.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_select::concat::concat;
use forebay_types::{Error, Result, ResultExt};

use super::selection::Selection;
use crate::cell::{ColumnCell, RowCell};
use crate::metadata::Block;
use crate::schema::Projection;

/// A row group whose bytes are there: batches of it, some of its rows, or its rows in place.
#[derive(Clone, Debug)]
pub struct Chunk {
    block: Arc<Block>,
    row_group: usize,
    projection: Projection,
    cells: Vec<Wanted>,
}

/// A cell, and which of its columns are wanted.
#[derive(Clone, Debug)]
struct Wanted {
    cell: Cell,
    leaves: Vec<usize>,
    /// The leaves' numbers in the group.
    columns: Vec<usize>,
}

#[derive(Clone, Debug)]
pub(super) enum Cell {
    Column(ColumnCell),
    Rows(RowCell),
}

impl Chunk {
    pub(super) fn new(block: Arc<Block>, row_group: usize, projection: Projection, groups: &[usize], cells: Vec<Cell>) -> Self {
        assert_eq!(groups.len(), cells.len(), "each column group has a cell");
        let asked = block.schema.flags(projection.leaves());
        let cells = groups.iter().zip(cells).map(|(&group, cell)| {
            let members = block.groups[group].leaves().iter().enumerate();
            let wanted = members.filter(|(_, leaf)| asked[**leaf]);
            let (columns, leaves) = wanted.unzip();
            Wanted { cell, leaves, columns }
        });
        let cells = cells.collect();
        Self { block, row_group, projection, cells }
    }

    /// Rows of the row group.
    pub fn rows(&self) -> usize {
        self.block.row_groups[self.row_group].rows
    }

    /// The cell that has the column of that path, if it keeps rows and was asked for.
    pub fn row_cell(&self, path: &str) -> Option<&RowCell> {
        let leaf = self.block.schema.leaf(path).ok()?;
        self.cells.iter().find_map(|wanted| match &wanted.cell {
            Cell::Rows(cell) if wanted.leaves.contains(&leaf) => Some(cell),
            _ => None,
        })
    }

    /// The whole row group as one batch. Columns that stand alone point into the bytes that were given.
    /// `Corrupt` with the column if the bytes can't be what was written.
    pub fn batch(&self) -> Result<RecordBatch> {
        let columns = self.columns()?;
        self.range(&columns, 0..self.rows())
    }

    /// The row group in batches of at most `rows`: for cells that keep rows, about 2,000 at a time stay in a cache.
    ///
    /// # Errors
    /// As [`Chunk::batch`], here and for each batch.
    pub fn batches(&self, rows: usize) -> Result<Batches> {
        Ok(Batches { chunk: self.clone(), columns: self.columns()?, next: 0, rows: rows.max(1) })
    }

    /// Those rows that have passed a filter, copied; other rows of what has fixed width are not looked at.
    ///
    /// # Errors
    /// As [`Chunk::batch`]; `Invalid` for a row that is not there.
    pub fn gather(&self, selection: &Selection) -> Result<RecordBatch> {
        let picked = selection.rows();
        let mut arrays = Vec::with_capacity(self.projection.leaves().len());
        for wanted in &self.cells {
            match &wanted.cell {
                Cell::Column(cell) => {
                    let leaf = &self.block.schema.leaves()[wanted.leaves[0]];
                    arrays.push((wanted.leaves[0], cell.gather(leaf, picked).context(|| self.place())?));
                }
                Cell::Rows(cell) => {
                    let runs = cell.gather(picked, &wanted.columns).context(|| self.place())?;
                    arrays.extend(wanted.leaves.iter().copied().zip(self.joined(runs, wanted)?));
                }
            }
        }
        self.assemble(picked.len(), &arrays)
    }

    fn place(&self) -> String {
        format!("row group {}", self.row_group)
    }

    /// The arrays of the cells of one column; they need no further work for any range of rows.
    fn columns(&self) -> Result<Vec<(usize, ArrayRef)>> {
        let columns = self.cells.iter().filter_map(|wanted| match &wanted.cell {
            Cell::Column(cell) => Some((wanted.leaves[0], cell)),
            Cell::Rows(_) => None,
        });
        columns.map(|(leaf, cell)| Ok((leaf, cell.decode(&self.block.schema.leaves()[leaf]).context(|| self.place())?))).collect()
    }

    fn range(&self, columns: &[(usize, ArrayRef)], range: Range<usize>) -> Result<RecordBatch> {
        let whole = range.len() == self.rows();
        let slice = |array: &ArrayRef| if whole { array.clone() } else { array.slice(range.start, range.len()) };
        let mut arrays = columns.iter().map(|(leaf, array)| (*leaf, slice(array))).collect::<Vec<_>>();
        for wanted in &self.cells {
            if let Cell::Rows(cell) = &wanted.cell {
                let runs = cell.decode(range.clone(), &wanted.columns).context(|| self.place())?;
                arrays.extend(wanted.leaves.iter().copied().zip(self.joined(runs, wanted)?));
            }
        }
        self.assemble(range.len(), &arrays)
    }

    /// One array a column; rows that lie in two segments come as two runs.
    fn joined(&self, mut runs: Vec<Vec<ArrayRef>>, wanted: &Wanted) -> Result<Vec<ArrayRef>> {
        if runs.len() == 1 {
            return Ok(runs.remove(0));
        }
        let column = |at: usize, leaf: usize| {
            let pieces = runs.iter().map(|run| run[at].as_ref()).collect::<Vec<_>>();
            let leaf = &self.block.schema.leaves()[leaf];
            if pieces.is_empty() {
                return Ok(arrow_array::new_empty_array(leaf.data_type()));
            }
            concat(&pieces).map_err(|error| Error::invalid(format!("column `{}`: {error}; read fewer rows at once", leaf.path())))
        };
        wanted.leaves.iter().enumerate().map(|(at, &leaf)| column(at, leaf)).collect()
    }

    fn assemble(&self, rows: usize, arrays: &[(usize, ArrayRef)]) -> Result<RecordBatch> {
        let mut by_leaf = vec![None; self.block.schema.leaves().len()];
        arrays.iter().for_each(|(leaf, array)| by_leaf[*leaf] = Some(array));
        let leaves = self.projection.leaves().iter().filter_map(|&leaf| by_leaf[leaf].cloned()).collect();
        self.projection.batch(rows, leaves).context(|| self.place())
    }
}

/// Batches of a row group, see [`Chunk::batches`].
pub struct Batches {
    chunk: Chunk,
    columns: Vec<(usize, ArrayRef)>,
    next: usize,
    rows: usize,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.next;
        if start == self.chunk.rows() {
            return None;
        }
        self.next = self.chunk.rows().min(start + self.rows);
        Some(self.chunk.range(&self.columns, start..self.next))
    }
}
