//! What a worker answers about temporary nodes.

use bytes::Bytes;
use forebay_nodes::{BlockRef, DirId, Location, NodeError, NodeErrorKind, NodeType, Stat, Usage};
use forebay_types::Result;
use serde::{Deserialize, Serialize};
use strum::VariantNames;

use super::{Raw, write};
use crate::codec::read;
use crate::tiers::Span;
use crate::version::DENIED_SINCE;

/// What a worker answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, VariantNames)]
pub enum NodeReply<'a> {
    /// It failed.
    Failed(NodeError),
    /// The path goes on with its last `rest` bytes in a container of another worker.
    Elsewhere {
        /// The container.
        dir: DirId,
        /// Bytes of the path.
        rest: u32,
    },
    /// What the client remembers of paths is old: forget it and begin at the root.
    Stale {
        /// The number that goes with what is learnt from now on.
        moves: u64,
    },
    /// Done.
    Done,
    /// Bytes of a value or file.
    Length(u64),
    /// The message's bytes, or the payload.
    #[serde(borrow)]
    Bytes(Raw<'a>),
    /// What a node is; none where there is none.
    Stat(Option<Stat>),
    /// Part of a listing.
    Listed {
        /// Names, types and bytes.
        #[serde(borrow)]
        entries: Vec<(&'a str, NodeType, u64)>,
        /// There are no more.
        last: bool,
    },
    /// Blocks in order, from the first byte that was asked for on.
    Extents {
        /// Which file or value it is, to `Extents`: another one under its name has another number. Else 0.
        serial: u64,
        /// The whole length.
        len: u64,
        /// Bytes of the first block before that.
        skip: u64,
        /// The blocks.
        blocks: Vec<BlockRef>,
        /// The bytes after them.
        #[serde(borrow)]
        tail: Raw<'a>,
    },
    /// A block that was kept.
    Block(BlockRef),
    /// Blocks.
    Blocks(Vec<BlockRef>),
    /// A container that was made.
    Dir(DirId),
    /// Whether it is committed.
    Outcome(bool),
    /// Values in the order in which they were asked for. None is one that is to be asked for by itself, for its size.
    #[serde(borrow)]
    Values(Vec<Result<Option<Raw<'a>>, NodeError>>),
    /// Those of several that failed, by their place.
    Refused(Vec<(u32, NodeError)>),
    /// Bytes of a value or block where they lie, for a client that has the worker's DRAM tier mapped: in place of `Bytes`.
    InPlace {
        /// Keeps them there until the client says that it is done ([`crate::DataNotice::Unpin`]).
        pin: u64,
        /// Where in the tier.
        span: Span,
    },
    /// Bytes that there is room for.
    Room {
        /// Of names and small values.
        names: u64,
        /// Of blocks.
        blocks: u64,
        /// Blocks may be of the class `disk`.
        has_disk: bool,
    },
    /// Where to write a block.
    Place {
        /// Keeps the place until the block is said to be written, or given up ([`crate::DataNotice::Unpin`]).
        pin: u64,
        /// Where in the tier.
        span: Span,
    },
    /// Blocks, each with where its node asks to lie.
    BlocksOf(Vec<(BlockRef, Location)>),
    /// Containers.
    Dirs(Vec<DirId>),
    /// What a container's files and values have, and may have.
    Usage(Usage),
}

impl<'a> NodeReply<'a> {
    /// The reply's bytes.
    pub fn encode(&self) -> Bytes {
        let inside = match self {
            Self::Bytes(bytes) => bytes.0.len(),
            Self::Listed { entries, .. } => entries.len() * 24,
            Self::Values(values) => {
                values.iter().flatten().flatten().map(|value| value.0.len() + 5).sum::<usize>() + values.len()
            }
            _ => 32,
        };
        write(self, Vec::with_capacity(16 + inside))
    }

    /// The same for a peer of a version: before 9 what somebody may not do was `Invalid`. It is of a whole call, never of a part.
    pub fn for_version(self, version: u16) -> Self {
        match self {
            Self::Failed(NodeError { kind: NodeErrorKind::Denied, message }) if version < DENIED_SINCE => {
                Self::Failed(NodeError { kind: NodeErrorKind::Invalid, message })
            }
            reply => reply,
        }
    }

    /// The reply in a message. `Invalid` when it can't be read.
    pub fn decode(message: &'a [u8]) -> Result<Self> {
        read(message)
    }
}
