//! What a node is, and where its blocks may lie.

use serde::{Deserialize, Serialize};

use super::error::{NodeError, NodeErrorKind};
use super::location::Location;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NodeType {
    /// Bytes: appended, read anywhere, one writer at a time.
    File,
    /// One value, replaced as a whole.
    KeyValue,
    /// Holds key-values.
    Table,
    /// Holds anything.
    Directory,
    /// Holds files and bags; is read as one stream over all of them.
    Bag,
}

impl NodeType {
    /// Whether it holds other nodes.
    pub fn is_container(self) -> bool {
        matches!(self, Self::Table | Self::Directory | Self::Bag)
    }

    /// Whether it holds nodes of this type.
    pub fn holds(self, child: NodeType) -> bool {
        match self {
            Self::Directory => true,
            Self::Table => child == Self::KeyValue,
            Self::Bag => matches!(child, Self::File | Self::Bag),
            Self::File | Self::KeyValue => false,
        }
    }
}

forebay_types::named! {
    NodeType, NodeError: File = "file", KeyValue = "key-value", Table = "table", Directory = "directory", Bag = "bag";
    |text| NodeError::new(
        NodeErrorKind::Invalid,
        format!("{text:?} is no type of nodes: write file, key-value, table, directory or bag"),
    )
}

/// Where a node's blocks may lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StorageClass {
    /// In memory first, on disk when memory is full.
    #[default]
    Dram,
    /// On disk; memory is only passed through.
    Disk,
}

forebay_types::named! {
    StorageClass, NodeError: Dram = "dram", Disk = "disk";
    |text| NodeError::new(NodeErrorKind::Invalid, format!("{text:?} is no storage class: write dram or disk"))
}

/// Where a node's blocks are to lie.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Affinity {
    /// In which tiers.
    pub class: StorageClass,
    /// With which workers, as long as one of them has room.
    pub location: Location,
}
