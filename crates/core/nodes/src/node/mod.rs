//! One node: what it is and has, whatever its name and wherever it is.

mod content;
mod file;
mod flags;
mod moving;
mod stat;
mod value;

use crate::terms::{BlockRef, DirId, Location, NodeError, NodeErrorKind, NodeResult, NodeType};

pub use content::tag;
pub use file::{Appended, FileView, TAIL_BYTES_MAX};
pub(crate) use file::{File, FileBack};
pub(crate) use flags::Flags;
pub use moving::Moving;
pub use stat::Stat;
pub use value::{Got, INLINE_BYTES_MAX, Value, ValueView};

/// A node under its name. 24 bytes: there may be many millions.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Small(Flags, Box<[u8]>),
    Large(Flags, Box<[BlockRef]>),
    File(Flags, Box<File>),
    Container(Flags, Box<(NodeType, DirId)>),
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
            Self::File(_, file) => tag(&self.blocks(), &file.tail, file.len()),
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

    pub(crate) fn container(&self) -> Option<DirId> {
        if let Self::Container(_, link) = self { Some(link.1) } else { None }
    }

    /// Its blocks, in order.
    pub(crate) fn blocks(&self) -> Vec<BlockRef> {
        match self {
            Self::Small(..) | Self::Container(..) => Vec::new(),
            Self::Large(_, blocks) => blocks.to_vec(),
            Self::File(_, file) => file.blocks().collect(),
        }
    }

    /// Puts other blocks in the places of its own, in order.
    pub(crate) fn replace_blocks(&mut self, mut other: impl FnMut(BlockRef) -> BlockRef) {
        match self {
            Self::Large(_, blocks) => blocks.iter_mut().for_each(|block| *block = other(*block)),
            Self::File(_, file) => file.replace(other),
            Self::Small(..) | Self::Container(..) => {}
        }
    }

    /// Makes the name of a container lead to another container; other nodes stay as they are.
    pub(crate) fn lead_to(&mut self, id: DirId) {
        if let Self::Container(_, link) = self {
            link.1 = id;
        }
    }

    pub(crate) fn stat(&self, location: Location) -> Stat {
        let flags = self.flags();
        Stat { kind: self.kind(), bytes: self.len(), enumerable: flags.is_enumerable(), class: flags.class(), location }
    }

    /// `Retry` while the node is being moved to another worker.
    pub(crate) fn check_still(&self, name: &str) -> NodeResult<()> {
        if self.flags().is_moving() {
            return Err(NodeError::new(NodeErrorKind::Retry, format!("{name:?} is being renamed: try again")));
        }
        Ok(())
    }

    /// What is said when it is not of the type that was asked for.
    pub(crate) fn wrong_type(&self, name: &str, wanted: NodeType) -> NodeError {
        NodeError::new(NodeErrorKind::WrongType, format!("{name:?} is a {}, not a {wanted}", self.kind()))
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
