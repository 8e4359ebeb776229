//! A node as one worker hands it to another.

use serde::{Deserialize, Serialize};

use super::Node;
use super::file::File;
use super::flags::Flags;
use crate::terms::{BlockRef, DirId, Location, NodeType};

/// A node on its way between two workers, with all that it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Moving {
    flags: Flags,
    pub(crate) location: Location,
    body: Body,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Body {
    Small(Box<[u8]>),
    Large(Box<[BlockRef]>),
    File(Box<File>),
    Container(NodeType, DirId),
}

impl Moving {
    pub(crate) fn of(node: &Node, location: Location) -> Self {
        let body = match node {
            Node::Small(_, bytes) => Body::Small(bytes.clone()),
            Node::Large(_, blocks) => Body::Large(blocks.clone()),
            Node::File(_, file) => Body::File(file.clone()),
            Node::Container(_, link) => Body::Container(link.0, link.1),
        };
        Self { flags: node.flags(), location, body }
    }

    /// The node, without its lease and writer, with the number that its location has where it comes.
    pub(crate) fn into_node(self, label: u16) -> Node {
        let mut flags = self.flags;
        flags.set_leased(false);
        flags.set_label(label);
        match self.body {
            Body::Small(bytes) => Node::Small(flags, bytes),
            Body::Large(blocks) => Node::Large(flags, blocks),
            Body::File(mut file) => {
                file.set_writer(None);
                Node::File(flags, file)
            }
            Body::Container(kind, id) => Node::Container(flags, Box::new((kind, id))),
        }
    }

    /// The node's type.
    pub fn kind(&self) -> NodeType {
        match &self.body {
            Body::Small(_) | Body::Large(_) => NodeType::KeyValue,
            Body::File(_) => NodeType::File,
            Body::Container(kind, _) => *kind,
        }
    }

    /// The container that it is the name of.
    pub fn container(&self) -> Option<DirId> {
        if let Body::Container(_, id) = &self.body { Some(*id) } else { None }
    }
}
