//! Structs to leaves and back.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, StructArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field, Fields};
use forebay_types::{Error, Result};

use super::leaf::{DEPTH_MAX, Leaf};

/// One field of the schema: a leaf, or a struct with the leaf that says where it is there.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Leaf(usize),
    Struct { presence: Option<usize>, children: Vec<Node> },
}

impl Node {
    /// The leaves below, in the order in which [`restore`] takes them.
    pub fn leaves(&self, out: &mut Vec<usize>) {
        match self {
            Self::Leaf(leaf) => out.push(*leaf),
            Self::Struct { presence, children } => {
                out.extend(presence);
                children.iter().for_each(|child| child.leaves(out));
            }
        }
    }
}

pub(super) fn flatten_fields(fields: &Fields, above: &str, leaves: &mut Vec<Leaf>) -> Result<Vec<Node>> {
    fields.iter().map(|field| flatten_field(field, above, leaves)).collect()
}

fn flatten_field(field: &Field, above: &str, leaves: &mut Vec<Leaf>) -> Result<Node> {
    let path = if above.is_empty() { field.name().clone() } else { format!("{above}.{}", field.name()) };
    let DataType::Struct(fields) = field.data_type() else {
        leaves.push(Leaf::new(path, field.data_type())?);
        return Ok(Node::Leaf(leaves.len() - 1));
    };
    if path.split('.').count() > DEPTH_MAX {
        return Err(Error::invalid(format!("column `{path}`: structs are nested deeper than {DEPTH_MAX}")));
    }
    let presence = if field.is_nullable() {
        leaves.push(Leaf::new(path.clone(), &DataType::Boolean)?);
        Some(leaves.len() - 1)
    } else {
        None
    };
    Ok(Node::Struct { presence, children: flatten_fields(fields, &path, leaves)? })
}

pub(super) fn flatten_array(node: &Node, array: &ArrayRef, out: &mut Vec<ArrayRef>) {
    match node {
        Node::Leaf(_) => out.push(array.clone()),
        Node::Struct { presence, children } => {
            let array = array.as_struct();
            if presence.is_some() {
                let there = array.nulls().map_or_else(|| BooleanBuffer::new_set(array.len()), |nulls| nulls.inner().clone());
                out.push(Arc::new(BooleanArray::new(there, None)));
            }
            for (child, column) in children.iter().zip(array.columns()) {
                flatten_array(child, column, out);
            }
        }
    }
}

/// Builds the arrays of `fields` from the leaves' arrays.
pub(super) fn restore(
    nodes: &[Node],
    fields: &Fields,
    rows: usize,
    leaves: &mut dyn Iterator<Item = ArrayRef>,
) -> Result<Vec<ArrayRef>> {
    nodes.iter().zip(fields).map(|(node, field)| restore_one(node, field, rows, leaves)).collect()
}

fn restore_one(node: &Node, field: &Field, rows: usize, leaves: &mut dyn Iterator<Item = ArrayRef>) -> Result<ArrayRef> {
    let missing = || Error::internal(format!("column `{}` was not decoded", field.name()));
    match (node, field.data_type()) {
        (Node::Struct { presence, children }, DataType::Struct(fields)) => {
            let nulls = match presence {
                Some(_) => Some(leaves.next().ok_or_else(missing)?.as_boolean().values().clone()),
                None => None,
            };
            let nulls = nulls.map(NullBuffer::new).filter(|nulls| nulls.null_count() > 0);
            let columns = restore(children, fields, rows, leaves)?;
            let array = if columns.is_empty() {
                StructArray::new_empty_fields(rows, nulls)
            } else {
                StructArray::try_new(fields.clone(), columns, nulls)
                    .map_err(|error| Error::corrupt(format!("column `{}`: {error}", field.name())))?
            };
            Ok(Arc::new(array))
        }
        _ => leaves.next().ok_or_else(missing),
    }
}
