//! What is told of a node to who asks for no bytes of it.

use serde::{Deserialize, Serialize};

use crate::terms::{Location, NodeType, StorageClass};

/// What a node is and has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    /// Its type.
    pub kind: NodeType,
    /// Bytes of a file or value; 0 of a container.
    pub bytes: u64,
    /// Whether listings have it.
    pub enumerable: bool,
    /// Where its blocks may lie, and those of nodes in it that ask for nothing else.
    pub class: StorageClass,
    /// Which workers they ask for.
    pub location: Location,
}

impl Stat {
    /// What `/tmp` is.
    pub fn of_root() -> Self {
        Self { kind: NodeType::Directory, bytes: 0, enumerable: true, class: StorageClass::Dram, location: Location::default() }
    }
}
