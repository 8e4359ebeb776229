//! The columns of a reader, down to fields of structs: which leaves that takes, and a batch from their arrays.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use forebay_types::{Error, Result};

use super::TableSchema;
use super::tree::{self, Node};

/// Which columns a reader wants, and the schema of what it will get.
#[derive(Clone, Debug)]
pub struct Projection {
    schema: SchemaRef,
    nodes: Arc<[Node]>,
    leaves: Arc<[usize]>,
}

impl Projection {
    pub(super) fn new(schema: SchemaRef, nodes: impl Into<Arc<[Node]>>) -> Self {
        let nodes = nodes.into();
        let mut leaves = Vec::new();
        nodes.iter().for_each(|node| node.leaves(&mut leaves));
        Self { schema, nodes, leaves: leaves.into() }
    }

    pub(super) fn of_columns(table: &TableSchema, columns: &[usize]) -> Result<Self> {
        let nodes = columns.iter().map(|&column| table.nodes.get(column).cloned()).collect::<Option<Vec<_>>>();
        let count = table.nodes.len();
        let nodes = nodes.ok_or_else(|| Error::invalid(format!("columns {columns:?} of a table of {count} columns")))?;
        let fields = columns.iter().map(|&column| table.arrow.fields()[column].clone()).collect::<Vec<_>>();
        let schema = Schema::new_with_metadata(fields, table.arrow.metadata().clone());
        Ok(Self::new(Arc::new(schema), nodes))
    }

    pub(super) fn of_paths(table: &TableSchema, paths: &[&str]) -> Result<Self> {
        let mut order = Vec::new();
        let all = table.arrow.fields();
        for path in paths {
            let found = all.iter().position(|field| covers(field.name(), path) || field.name() == path);
            let column = found.ok_or_else(|| Error::not_found(format!("the table has no column `{path}`")))?;
            if !order.contains(&column) {
                order.push(column);
            }
        }
        let mut used = vec![false; paths.len()];
        let (mut fields, mut nodes) = (Vec::new(), Vec::new());
        for column in order {
            if let Some((field, node)) = prune(&all[column], &table.nodes[column], "", paths, &mut used) {
                fields.push(field);
                nodes.push(node);
            }
        }
        match used.iter().position(|used| !used) {
            Some(missing) => Err(Error::not_found(format!("the table has no column `{}`", paths[missing]))),
            None => {
                let schema = Schema::new_with_metadata(fields, table.arrow.metadata().clone());
                Ok(Self::new(Arc::new(schema), nodes))
            }
        }
    }

    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The leaves that are read, as indices of [`TableSchema::leaves`].
    pub fn leaves(&self) -> &[usize] {
        &self.leaves
    }

    /// A batch from the arrays of [`Projection::leaves`], in that order.
    pub(crate) fn batch(&self, rows: usize, leaves: Vec<ArrayRef>) -> Result<RecordBatch> {
        assert_eq!(leaves.len(), self.leaves.len(), "each leaf that is wanted has an array");
        let columns = tree::restore(&self.nodes, self.schema.fields(), rows, &mut leaves.into_iter())?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
            .map_err(|error| Error::corrupt(format!("the columns do not make a batch: {error}")))
    }
}

/// Whether `path` names something below `name`.
fn covers(name: &str, path: &str) -> bool {
    path.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
}

/// What of a field is asked for: all of it, or a struct of those of its fields that are.
fn prune(field: &FieldRef, node: &Node, above: &str, paths: &[&str], used: &mut [bool]) -> Option<(FieldRef, Node)> {
    let path = if above.is_empty() { field.name().clone() } else { format!("{above}.{}", field.name()) };
    let mut whole = false;
    for (asked, used) in paths.iter().zip(used.iter_mut()) {
        if *asked == path {
            whole = true;
            *used = true;
        }
    }
    if whole {
        return Some((field.clone(), node.clone()));
    }
    let (Node::Struct { presence, children }, DataType::Struct(below)) = (node, field.data_type()) else { return None };
    if !paths.iter().any(|asked| covers(&path, asked)) {
        return None;
    }
    let (fields, nodes): (Vec<_>, Vec<_>) =
        below.iter().zip(children).filter_map(|(field, node)| prune(field, node, &path, paths, used)).unzip();
    if nodes.is_empty() {
        return None;
    }
    let pruned = Field::clone(field).with_data_type(DataType::Struct(Fields::from(fields)));
    Some((Arc::new(pruned), Node::Struct { presence: *presence, children: nodes }))
}
