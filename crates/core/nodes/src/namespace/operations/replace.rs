//! A node in the place of another one, and conditions on what is there.

use serde::{Deserialize, Serialize};

use super::delete::Removed;
use crate::namespace::Namespace;
use crate::node::Node;
use crate::terms::{DirId, NodeError, NodeErrorKind, NodeResult, NodeType, check_name};

/// What is to be true of the file or value of a name at the moment when it is replaced or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Condition {
    /// Anything.
    Any,
    /// There is none.
    Absent,
    /// It has these bytes: its [`tag`](crate::tag).
    Tag(u128),
}

impl Namespace {
    /// A file or value takes the place of the one of another name in its container, or a free one, in one step; listings show it
    /// from then on, and it has no lease. `Exists` when there is one that the condition is not true of, `NotFound` when there is
    /// none and should be. Containers are replaced by nothing.
    pub fn replace(&mut self, dir: DirId, name: &str, to: &str, condition: Condition) -> NodeResult<()> {
        check_name(to)?;
        let node = self.movable(dir, name)?;
        if node.kind().is_container() {
            return Err(node.wrong_type(name, NodeType::File));
        }
        if name == to {
            return Err(NodeError::new(NodeErrorKind::Invalid, format!("{name:?} can't take its own place")));
        }
        self.check_free(dir, to)?;
        self.check_condition(dir, to, condition)?;
        let mut flags = self.node(dir, name)?.flags();
        flags.set_leased(false);
        flags.set_enumerable(true);
        self.whole(|names| {
            names.relocate((dir, name), (dir, to));
            names.step_flags(dir, to, flags);
        });
        Ok(())
    }

    /// Deletes a file or value that a condition is true of, as [`Self::replace`] looks at it.
    pub fn delete_if(&mut self, dir: DirId, name: &str, condition: Condition) -> NodeResult<Removed> {
        self.check_condition(dir, name, condition)?;
        self.delete(dir, name, false)
    }

    fn check_condition(&self, dir: DirId, name: &str, condition: Condition) -> NodeResult<()> {
        let exists = |what: &str| NodeError::new(NodeErrorKind::Exists, format!("{name:?} {what}"));
        match (self.open_table(dir)?.find(name), condition) {
            (None, Condition::Any | Condition::Absent) => Ok(()),
            (None | Some(Node::Container(..)), Condition::Tag(_)) => Err(NodeError::not_found(name)),
            (Some(node @ Node::Container(..)), _) => Err(node.wrong_type(name, NodeType::File)),
            (Some(node), _) if node.flags().is_moving() => node.check_still(name),
            (Some(_), Condition::Any) => Ok(()),
            (Some(_), Condition::Absent) => Err(exists("exists already")),
            (Some(node), Condition::Tag(tag)) if node.tag() == tag => Ok(()),
            (Some(_), Condition::Tag(_)) => Err(exists("has other bytes by now")),
        }
    }
}
