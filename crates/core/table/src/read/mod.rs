//! Bytes to Arrow: what a query touches, and the batches that come of it.

mod chunk;
mod plan;
mod selection;
mod source;
mod statistics;
mod take;
mod verified;

use std::sync::Arc;

use forebay_types::{Error, Result};

use crate::layout::Group;
use crate::metadata::{Block, BloomInfo, CellInfo, Footer};
use crate::schema::TableSchema;

pub use chunk::{Batches, Chunk};
pub use plan::Plan;
pub use selection::Selection;
pub use source::Source;
pub use statistics::ColumnStatistics;
pub use take::take;
pub use verified::Verified;

/// A table's metadata: all that is needed to know which bytes a query will touch. Cheap to clone.
///
/// ```
/// use arrow_array::{Int64Array, RecordBatch};
/// use forebay_table::{Options, Table, Writer};
///
/// let numbers = std::sync::Arc::new(Int64Array::from(vec![7, 8, 9]));
/// let batch = RecordBatch::try_from_iter([("n", numbers as _)]).unwrap();
/// let mut writer = Writer::new(Vec::new(), batch.schema(), Options::default())?;
/// writer.push(&batch)?;
/// let file = bytes::Bytes::from(writer.finish()?.0);
/// let table = Table::open(&file)?;
/// let plan = table.plan(0, &table.schema().project_paths(&["n"])?)?;
/// assert_eq!(plan.read(&file)?.batch()?, batch);
/// # Ok::<(), forebay_types::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Table {
    block: Arc<Block>,
}

impl Table {
    /// Opens a table whose bytes can be had by a call.
    ///
    /// # Errors
    /// Those of [`Footer::parse`] and [`Table::parse`], and the source's.
    pub fn open(source: &impl Source) -> Result<Self> {
        let length = source.length()?;
        let footer = Footer::parse(length, &source.bytes(Footer::range(length)?)?)?;
        Self::parse(&footer, &source.bytes(footer.metadata())?)
    }

    /// Reads the metadata, the bytes at [`Footer::metadata`].
    /// `Corrupt` with the place if they do not verify or say what can't be.
    pub fn parse(footer: &Footer, metadata: &[u8]) -> Result<Self> {
        Ok(Self { block: Arc::new(Block::decode(footer, metadata)?) })
    }

    /// As [`Table::parse`], for metadata whose checksum has been compared already. It is read with the same care.
    /// `Corrupt` with the place if it says what can't be.
    pub fn parse_verified(footer: &Footer, metadata: &[u8]) -> Result<Self> {
        Ok(Self { block: Arc::new(Block::decode_verified(footer, metadata)?) })
    }

    /// The schema.
    pub fn schema(&self) -> &TableSchema {
        &self.block.schema
    }

    /// The column groups.
    pub fn groups(&self) -> &[Group] {
        &self.block.groups
    }

    /// Number of row groups.
    pub fn row_groups(&self) -> usize {
        self.block.row_groups.len()
    }

    /// Rows of a row group; none for one that is not there.
    pub fn row_group_rows(&self, row_group: usize) -> usize {
        self.block.row_groups.get(row_group).map_or(0, |info| info.rows)
    }

    /// The number in the table of a row group's first row; of what is no row group the rows of all.
    pub fn first_row(&self, row_group: usize) -> u64 {
        self.block.row_groups.iter().take(row_group).map(|info| info.rows as u64).sum()
    }

    /// Rows of the table.
    pub fn rows(&self) -> u64 {
        self.block.row_groups.iter().map(|info| info.rows as u64).sum()
    }

    /// Where the cell of a row group and a column group is.
    /// `Invalid` if there is no such cell.
    pub fn cell(&self, row_group: usize, group: usize) -> Result<&CellInfo> {
        let cell = self.block.row_groups.get(row_group).and_then(|info| info.cells.get(group));
        cell.ok_or_else(|| Error::invalid(format!("the table has no cell of row group {row_group} and column group {group}")))
    }

    /// Where the bloom filter of a leaf is, by its index in the schema's leaves, if it has one in a row group.
    pub fn bloom(&self, row_group: usize, leaf: usize) -> Option<&BloomInfo> {
        self.block.row_groups.get(row_group)?.blooms.get(leaf)?.as_ref()
    }

    fn block(&self) -> &Arc<Block> {
        &self.block
    }
}
