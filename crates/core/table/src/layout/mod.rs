//! Which columns stand together, and how a group keeps its rows.

mod grouping;
mod rows;
mod suggest;

pub use grouping::Grouping;
pub(crate) use rows::RowLayout;
pub use suggest::{Suggested, suggest};

use std::sync::Arc;

use forebay_types::{Error, Result};

use crate::schema::TableSchema;

/// How the values of a column group lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One column, as Arrow keeps it.
    Column,
    /// Rows with columns ordered by width, padded to 8 bytes: what is transposed at memory speed.
    Aligned,
    /// Rows in the order of the schema without a byte to spare, as in the paper.
    Packed,
}

/// A column group: its leaves and their layout.
#[derive(Clone, Debug)]
pub struct Group {
    layout: Layout,
    leaves: Arc<[usize]>,
    rows: Option<Arc<RowLayout>>,
}

impl Group {
    /// A group of these leaves; of one leaf it is a column whatever `layout` says.
    pub(crate) fn new(schema: &TableSchema, layout: Layout, leaves: Vec<usize>) -> Result<Self> {
        if leaves.len() == 1 {
            return Ok(Self { layout: Layout::Column, leaves: leaves.into(), rows: None });
        }
        let kinds = leaves.iter().map(|&leaf| schema.leaves()[leaf].kind()).collect::<Vec<_>>();
        if kinds.iter().any(|kind| kind.is_nested()) {
            return Err(Error::invalid("a column of lists or maps is in a group with others; it stands alone"));
        }
        let rows = match layout {
            Layout::Packed => RowLayout::packed(&kinds),
            Layout::Aligned => RowLayout::aligned(&kinds),
            Layout::Column => return Err(Error::invalid("a group of several columns can't have the layout of a column")),
        };
        Ok(Self { layout, leaves: leaves.into(), rows: Some(Arc::new(rows)) })
    }

    /// How the group's values lie.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The group's leaves, as indices of [`TableSchema::leaves`].
    pub fn leaves(&self) -> &[usize] {
        &self.leaves
    }

    /// The layout of the group's rows, unless it is of one column.
    pub(crate) fn rows(&self) -> Option<&RowLayout> {
        self.rows.as_deref()
    }

    /// How many buffers a cell of this group has; rows have at least this many.
    pub(crate) fn slots(&self, schema: &TableSchema) -> usize {
        if self.rows.is_some() { 1 } else { schema.leaves()[self.leaves[0]].kind().slots() }
    }
}
