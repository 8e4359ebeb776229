use serde::{Deserialize, Serialize};

use crate::file::File;
use crate::{BlockRef, DirId, Location, NodeType, StorageClass, Value, tag};

/// A node under its name. 24 bytes: there may be many millions.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Small(Flags, Box<[u8]>),
    Large(Flags, Box<[BlockRef]>),
    File(Flags, Box<File>),
    Container(Flags, Box<(NodeType, DirId)>),
}

/// What is set of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Flags {
    bits: u8,
    /// The number of its location, which is another one in another part of the namespace.
    #[serde(skip)]
    label: u16,
}

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

impl Flags {
    const HIDDEN: u8 = 1;
    const DISK: u8 = 2;
    const LEASED: u8 = 4;
    const MOVING: u8 = 8;

    pub(crate) fn new(enumerable: bool, class: StorageClass, label: u16) -> Self {
        let bits = if enumerable { 0 } else { Self::HIDDEN } | if class == StorageClass::Disk { Self::DISK } else { 0 };
        Self { bits, label }
    }

    pub(crate) fn label(self) -> u16 {
        self.label
    }

    pub(crate) fn set_label(&mut self, label: u16) {
        self.label = label;
    }

    pub(crate) fn is_enumerable(self) -> bool {
        self.bits & Self::HIDDEN == 0
    }

    pub(crate) fn class(self) -> StorageClass {
        if self.bits & Self::DISK == 0 { StorageClass::Dram } else { StorageClass::Disk }
    }

    pub(crate) fn set_enumerable(&mut self, enumerable: bool) {
        self.set(Self::HIDDEN, !enumerable);
    }

    pub(crate) fn is_leased(self) -> bool {
        self.bits & Self::LEASED != 0
    }

    pub(crate) fn set_leased(&mut self, leased: bool) {
        self.set(Self::LEASED, leased);
    }

    /// On its way to or from another worker: hidden at the target, and not to be changed at the source.
    pub(crate) fn is_moving(self) -> bool {
        self.bits & Self::MOVING != 0
    }

    pub(crate) fn set_moving(&mut self, moving: bool) {
        self.set(Self::MOVING, moving);
    }

    fn set(&mut self, bit: u8, on: bool) {
        self.bits = if on { self.bits | bit } else { self.bits & !bit };
    }
}

impl Node {
    pub(crate) fn of_value(flags: Flags, value: Value) -> Self {
        match value {
            Value::Inline(bytes) => Self::Small(flags, bytes),
            Value::Blocks(blocks) => Self::Large(flags, blocks),
        }
    }

    pub(crate) fn flags(&self) -> Flags {
        match self {
            Self::Small(flags, _) | Self::Large(flags, _) | Self::File(flags, _) | Self::Container(flags, _) => *flags,
        }
    }

    pub(crate) fn flags_mut(&mut self) -> &mut Flags {
        match self {
            Self::Small(flags, _) | Self::Large(flags, _) | Self::File(flags, _) | Self::Container(flags, _) => flags,
        }
    }

    pub(crate) fn kind(&self) -> NodeType {
        match self {
            Self::Small(..) | Self::Large(..) => NodeType::KeyValue,
            Self::File(..) => NodeType::File,
            Self::Container(_, link) => link.0,
        }
    }

    /// Bytes of a file or value.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Small(_, bytes) => bytes.len() as u64,
            Self::Large(_, blocks) => blocks.iter().map(|block| u64::from(block.len)).sum(),
            Self::File(_, file) => file.len(),
            Self::Container(..) => 0,
        }
    }

    /// The [`tag`] of a file or value.
    pub(crate) fn tag(&self) -> u128 {
        match self {
            Self::Small(_, bytes) => tag(&[], bytes, bytes.len() as u64),
            Self::Large(_, blocks) => tag(blocks, &[], self.len()),
            Self::File(_, file) => tag(&self.blocks(), file.tail(), file.len()),
            Self::Container(..) => 0,
        }
    }

    /// Bytes of memory beside those of its slot and name.
    pub(crate) fn heap_bytes(&self) -> u64 {
        match self {
            Self::Small(_, bytes) => bytes.len() as u64,
            Self::Large(_, blocks) => size_of_val(&**blocks) as u64,
            Self::File(_, file) => file.heap_bytes(),
            Self::Container(..) => size_of::<(NodeType, DirId)>() as u64,
        }
    }

    /// What a container is.
    pub(crate) fn container(&self) -> Option<DirId> {
        match self {
            Self::Container(_, link) => Some(link.1),
            _ => None,
        }
    }

    /// Its blocks, in order.
    pub(crate) fn blocks(&self) -> Vec<BlockRef> {
        match self {
            Self::Small(..) | Self::Container(..) => Vec::new(),
            Self::Large(_, blocks) => blocks.to_vec(),
            Self::File(_, file) => file.blocks().collect(),
        }
    }

    /// The blocks that nobody has any more when it goes.
    pub(crate) fn into_blocks(self) -> Vec<BlockRef> {
        match self {
            Self::Small(..) | Self::Container(..) => Vec::new(),
            Self::Large(_, blocks) => blocks.into_vec(),
            Self::File(_, file) => file.into_blocks(),
        }
    }

    pub(crate) fn stat(&self, location: Location) -> Stat {
        let flags = self.flags();
        Stat { kind: self.kind(), bytes: self.len(), enumerable: flags.is_enumerable(), class: flags.class(), location }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_stays_small() {
        assert_eq!(size_of::<Node>(), 24);
    }
}
