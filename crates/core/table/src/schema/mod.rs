//! What a table's columns are: the Arrow schema, and the leaves it is flattened to.

mod codec;
mod leaf;
mod projection;
mod tree;

pub(crate) use codec::{decode_schema, encode_schema};
pub use codec::{schema_from_bytes, schema_to_bytes};
pub use leaf::Leaf;
pub(crate) use leaf::{Item, Kind};
pub use projection::Projection;
use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use forebay_types::{Error, Result};
use tree::Node;

/// The schema of a table: Arrow's, and its flattened form.
///
/// A struct becomes its leaves, named `a.b`; a struct that may be null gets one more leaf of its own name, a boolean that
/// says where it is there.
#[derive(Clone, Debug)]
pub struct TableSchema {
    arrow: SchemaRef,
    nodes: Arc<[Node]>,
    leaves: Arc<[Leaf]>,
}

impl TableSchema {
    /// Flattens an Arrow schema.
    /// `Invalid` with the column's name for types that a table can't hold (unions, dictionaries, run-end encoding, lists of a fixed
    /// size, list views), and for two columns of one name.
    pub fn new(arrow: SchemaRef) -> Result<Self> {
        let mut leaves = Vec::new();
        let nodes = tree::flatten_fields(arrow.fields(), "", &mut leaves)?;
        let mut names = HashSet::new();
        for leaf in &leaves {
            if !names.insert(leaf.path()) {
                return Err(Error::invalid(format!(
                    "column `{}` is there twice; give each column a name of its own",
                    leaf.path()
                )));
            }
        }
        Ok(Self { arrow, nodes: nodes.into(), leaves: leaves.into() })
    }

    /// The Arrow schema, as it was given.
    pub fn arrow(&self) -> &SchemaRef {
        &self.arrow
    }

    /// The leaves, in the order of the schema.
    pub fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// Whether some of its columns are lists of lists, strings or structs, or maps, which tables of version 1 do not have.
    pub(crate) fn has_nested(&self) -> bool {
        self.leaves.iter().any(|leaf| leaf.kind().is_nested())
    }

    /// The index of the leaf of that path (`a.b` for a struct's field).
    /// `NotFound` with the path.
    pub fn leaf(&self, path: &str) -> Result<usize> {
        let found = self.leaves.iter().position(|leaf| leaf.path() == path);
        found.ok_or_else(|| Error::not_found(format!("the table has no column `{path}`")))
    }

    /// All columns.
    pub fn projection(&self) -> Projection {
        Projection::new(self.arrow.clone(), self.nodes.clone())
    }

    /// Which leaves are among these.
    pub(crate) fn flags(&self, leaves: &[usize]) -> Vec<bool> {
        let mut flags = vec![false; self.leaves.len()];
        leaves.iter().for_each(|&leaf| flags[leaf] = true);
        flags
    }

    /// Some top-level columns, by their index in the Arrow schema and in the order given.
    /// `Invalid` for an index that is not there.
    pub fn project(&self, columns: &[usize]) -> Result<Projection> {
        Projection::of_columns(self, columns)
    }

    /// Some columns by path, in the order given; `a` means all of a struct, `a.b` a struct with this field only.
    /// `NotFound` with the path.
    pub fn project_paths(&self, paths: &[&str]) -> Result<Projection> {
        Projection::of_paths(self, paths)
    }

    /// The leaves' arrays of a batch, in the order of [`TableSchema::leaves`].
    pub(crate) fn flatten(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let fits = batch.num_columns() == self.arrow.fields().len()
            && batch.schema().fields().iter().zip(self.arrow.fields()).all(|(a, b)| a.data_type() == b.data_type());
        if !fits {
            let message = format!("the batch's schema is not the table's: {:?} instead of {:?}", batch.schema(), self.arrow);
            return Err(Error::invalid(message));
        }
        let mut out = Vec::with_capacity(self.leaves.len());
        for (node, column) in self.nodes.iter().zip(batch.columns()) {
            tree::flatten_array(node, column, &mut out);
        }
        Ok(out)
    }
}
