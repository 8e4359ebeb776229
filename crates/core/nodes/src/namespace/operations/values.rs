//! What is asked of a key-value: putting its value as a whole, and getting it.

use crate::namespace::{Namespace, Table};
use crate::node::{Flags, Got, Node, Value};
use crate::terms::{Affinity, DirId, NodeError, NodeResult, NodeType, check_name};

impl Namespace {
    /// Whether a value may be put under this name, and where its blocks are to lie.
    pub fn check_put(&self, dir: DirId, name: &str) -> NodeResult<Affinity> {
        let table = self.open_table(dir)?;
        match table.find(name) {
            Some(old) => {
                check_value(name, old)?;
                Ok(self.affinity(old))
            }
            None => self.check_new(table, dir, name),
        }
    }

    /// The same of a name that no node of the container has.
    fn check_new(&self, table: &Table, dir: DirId, name: &str) -> NodeResult<Affinity> {
        check_name(name)?;
        self.check_free(dir, name)?;
        table.check_holds(NodeType::KeyValue)?;
        Ok(table.affinity.clone())
    }

    /// Puts a value: makes the key-value, or replaces its value as a whole. Returns its bytes.
    pub fn put(&mut self, dir: DirId, name: &str, value: Value) -> NodeResult<u64> {
        let len = value.len();
        let table = self.open_table(dir)?;
        let old = table.find(name);
        let exists = old.is_some();
        let (flags, before) = match old {
            Some(old) => {
                check_value(name, old)?;
                (old.flags(), old.heap_bytes())
            }
            None => {
                let affinity = self.check_new(table, dir, name)?;
                (Flags::new(true, affinity.class, self.label(&affinity.location)?), 0)
            }
        };
        self.check_quota(dir, name, len)?;
        let node = Node::of_value(flags, value);
        let after = node.heap_bytes();
        self.check_room(if exists { after.saturating_sub(before) } else { Self::size(name, &node) })?;
        self.whole(|names| match exists {
            true => names.put_over(dir, name, node, (before, after)),
            false => names.place_new(dir, name, node),
        });
        Ok(len)
    }

    /// A key-value's value.
    pub fn get(&self, dir: DirId, name: &str) -> NodeResult<Got<'_>> {
        match self.table(dir)?.find(name) {
            Some(Node::Small(_, bytes)) => Ok(Got::Inline(bytes)),
            Some(Node::Large(_, blocks)) => Ok(Got::Blocks(blocks)),
            None => Err(NodeError::not_found(name)),
            Some(other) => Err(other.wrong_type(name, NodeType::KeyValue)),
        }
    }
}

fn check_value(name: &str, old: &Node) -> NodeResult<()> {
    if old.kind() != NodeType::KeyValue {
        return Err(old.wrong_type(name, NodeType::KeyValue));
    }
    old.check_still(name)
}
