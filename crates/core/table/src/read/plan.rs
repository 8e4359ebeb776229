//! From columns to byte ranges of a row group, and from their bytes to its rows: the two halves of a read without I/O.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use forebay_types::{Error, Result};

use super::Table;
use super::chunk::{Cell, Chunk};
use super::source::Source;
use super::verified::Verified;
use crate::cell::{ColumnCell, RowCell};
use crate::metadata::Block;
use crate::schema::Projection;

/// What is to be read of one row group: first the ranges, then, when their bytes are there, the row group itself.
#[derive(Clone, Debug)]
pub struct Plan {
    block: Arc<Block>,
    row_group: usize,
    projection: Projection,
    /// The column groups that have a wanted leaf, ascending.
    groups: Vec<usize>,
}

impl Plan {
    fn new(block: Arc<Block>, row_group: usize, projection: Projection) -> Result<Self> {
        if row_group >= block.row_groups.len() {
            return Err(Error::invalid(format!("row group {row_group} of a table that has {}", block.row_groups.len())));
        }
        if projection.leaves().iter().any(|&leaf| leaf >= block.schema.leaves().len()) {
            return Err(Error::invalid("the projection is of another table"));
        }
        let wanted = block.schema.flags(projection.leaves());
        let has_wanted = |&group: &usize| block.groups[group].leaves().iter().any(|&leaf| wanted[leaf]);
        let groups = (0..block.groups.len()).filter(has_wanted).collect();
        Ok(Self { block, row_group, projection, groups })
    }

    /// The ranges of the file that are needed, no two of which overlap; ascending where the cells are.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        self.groups.iter().flat_map(|&group| self.block.row_groups[self.row_group].cells[group].ranges()).collect()
    }

    /// Opens the row group from the bytes of [`Plan::ranges`], in that order, once the cells' checksums agree.
    /// `Invalid` if the bytes are not as many as asked for; `Corrupt` with the cell for bytes that do not verify, or can't be
    /// what was written.
    pub fn open(&self, bytes: Vec<Bytes>) -> Result<Chunk> {
        self.open_with(bytes, |_| true)
    }

    /// As [`Plan::open`], for a file that is opened again and again: cells that have verified are not verified once more.
    ///
    /// # Errors
    /// Those of [`Plan::open`].
    pub fn open_once(&self, bytes: Vec<Bytes>, verified: &Verified) -> Result<Chunk> {
        let chunk = self.open_with(bytes, |group| !verified.has(self.row_group, group))?;
        self.groups.iter().for_each(|&group| verified.note(self.row_group, group));
        Ok(chunk)
    }

    /// As [`Plan::open`], for bytes that have not left memory since they were written or verified: no checksum is compared.
    /// They are read with the same care.
    ///
    /// # Errors
    /// Those of [`Plan::open`], but for checksums.
    pub fn open_trusted(&self, bytes: Vec<Bytes>) -> Result<Chunk> {
        self.open_with(bytes, |_| false)
    }

    /// Opens the row group from a source.
    ///
    /// # Errors
    /// Those of [`Plan::open`], and the source's.
    pub fn read(&self, source: &impl Source) -> Result<Chunk> {
        self.open(self.bytes_of(source)?)
    }

    /// Opens the row group from a source as [`Plan::open_trusted`] does.
    ///
    /// # Errors
    /// Those of [`Plan::open_trusted`], and the source's.
    pub fn read_trusted(&self, source: &impl Source) -> Result<Chunk> {
        self.open_trusted(self.bytes_of(source)?)
    }

    fn bytes_of(&self, source: &impl Source) -> Result<Vec<Bytes>> {
        self.ranges().into_iter().map(|range| source.bytes(range)).collect()
    }

    /// Opens the row group; the cells of the groups that `verify` names have to verify.
    fn open_with(&self, bytes: Vec<Bytes>, verify: impl Fn(usize) -> bool) -> Result<Chunk> {
        let mut bytes = bytes.into_iter();
        let info = &self.block.row_groups[self.row_group];
        let mut cells = Vec::with_capacity(self.groups.len());
        for &index in &self.groups {
            let (group, cell) = (&self.block.groups[index], &info.cells[index]);
            let mut buffers = Vec::with_capacity(cell.buffers.len());
            for range in &cell.buffers {
                let length = range.end - range.start;
                let given = if length == 0 { Bytes::new() } else { bytes.next().unwrap_or_default() };
                if given.len() as u64 != length {
                    return Err(Error::invalid(format!("{} bytes were given for the range {range:?}", given.len())));
                }
                buffers.push(given);
            }
            let sum = || buffers.iter().fold(0, |sum, buffer| forebay_types::crc32c_append(sum, buffer));
            if verify(index) && sum() != cell.checksum {
                let column = self.block.schema.leaves()[group.leaves()[0]].path();
                let place = format!("row group {}, cell of column `{column}`", self.row_group);
                return Err(Error::corrupt(format!("{place}: the bytes do not verify; copy the file again")));
            }
            cells.push(match group.rows() {
                Some(_) => {
                    let cell = RowCell::open(&self.block.schema, group, info.rows, buffers);
                    Cell::Rows(cell.map_err(|error| error.context(format_args!("row group {}", self.row_group)))?)
                }
                None => Cell::Column(ColumnCell::new(info.rows, buffers)),
            });
        }
        if bytes.next().is_some() {
            return Err(Error::invalid("more bytes were given than the plan has ranges"));
        }
        Ok(Chunk::new(self.block.clone(), self.row_group, self.projection.clone(), &self.groups, cells))
    }
}

impl Table {
    /// What has to be read of a row group for a projection.
    /// `Invalid` if there is no such row group.
    pub fn plan(&self, row_group: usize, projection: &Projection) -> Result<Plan> {
        Plan::new(self.block().clone(), row_group, projection.clone())
    }
}
