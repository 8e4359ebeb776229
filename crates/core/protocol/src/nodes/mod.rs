//! What is asked of a worker about temporary nodes.

mod peer;
mod raw;
mod reply;

use bytes::Bytes;
use forebay_nodes::{BlockRef, Condition, DirId, Location, NodeType, StorageClass};
use forebay_types::Result;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use crate::codec::read;
use crate::limits::{BLOCKS_MAX, VALUES_MAX, at_most};

pub use peer::{NODE_PEER_MESSAGE, PeerCall, PeerOp};
pub use raw::Raw;
pub use reply::NodeReply;

/// First byte of a message of the temporary namespace; no [`crate::DataRequest`] begins with it.
pub const NODE_MESSAGE: u8 = b'n';
/// Values and pieces up to this many bytes lie in the message, longer ones are its payload.
pub const NODE_MESSAGE_VALUE_MAX: usize = 4 << 10;
/// Bytes of the values of one message that has several; those beyond are to be asked for again.
pub const NODE_VALUES_BYTES_MAX: usize = 1 << 20;

/// What a client asks of a worker about temporary nodes. Every reply is a [`NodeReply`]. Borrowed from the frame, so that reading
/// one allocates nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeCall<'a> {
    /// The container that the path begins in: [`forebay_nodes::ROOT`], or one of that worker.
    pub from: DirId,
    /// How many renames of containers the worker had told the client of when the client learnt of `from`; of no meaning with
    /// the root. With another number the worker answers [`NodeReply::Stale`].
    pub moves: u64,
    /// Names with `/` between them.
    #[serde(borrow)]
    pub path: &'a str,
    /// What to do there.
    #[serde(borrow)]
    pub op: NodeOp<'a>,
}

/// What is done with a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum NodeOp<'a> {
    /// A key-value's value: [`NodeReply::Bytes`].
    Get,
    /// Puts a value, the message's or the payload: [`NodeReply::Length`].
    Put {
        /// The value, unless it is the payload.
        #[serde(borrow)]
        value: Raw<'a>,
    },
    /// Puts a value that lies in blocks already: [`NodeReply::Length`].
    PutBlocks {
        /// In this order.
        #[serde(deserialize_with = "at_most::<BLOCKS_MAX, _, _>")]
        blocks: Vec<BlockRef>,
    },
    /// Makes a node: [`NodeReply::Done`].
    Create {
        /// What it is.
        kind: NodeType,
        /// Whether listings show it.
        enumerable: bool,
        /// Where its blocks may lie; as in its container without it.
        class: Option<StorageClass>,
        /// Which workers they ask for; as in its container without it.
        location: Option<Location>,
    },
    /// What a node is: [`NodeReply::Stat`].
    Stat,
    /// A container's enumerable nodes in byte order of their names: [`NodeReply::Listed`].
    List {
        /// Only names after this one.
        after: Option<&'a str>,
        /// At most so many; 1 to 10,000.
        limit: u32,
    },
    /// Adds bytes, the message's or the payload, to the end of a file: [`NodeReply::Length`].
    Append {
        /// Who writes; 0 writes this once.
        writer: u64,
        /// The bytes, unless they are the payload.
        #[serde(borrow)]
        bytes: Raw<'a>,
    },
    /// Adds blocks to the end of a file: [`NodeReply::Length`].
    AppendBlocks {
        /// Who writes; 0 writes this once.
        writer: u64,
        /// In this order.
        #[serde(deserialize_with = "at_most::<BLOCKS_MAX, _, _>")]
        blocks: Vec<BlockRef>,
    },
    /// Writes over bytes of a file, and on at its end: [`NodeReply::Length`].
    Write {
        /// Who writes; 0 writes this once.
        writer: u64,
        /// First byte; at the file's end at the latest.
        offset: u64,
        /// The bytes, unless they are the payload.
        #[serde(borrow)]
        bytes: Raw<'a>,
    },
    /// Bytes of a file: [`NodeReply::Bytes`], fewer at its end.
    Read {
        /// First byte; at the file's end at the latest.
        offset: u64,
        /// At most so many; up to 16 MiB.
        bytes: u32,
    },
    /// Where bytes of a file or value are: [`NodeReply::Extents`].
    Extents {
        /// First byte.
        offset: u64,
        /// At most so many.
        bytes: u64,
    },
    /// Deletes a node: [`NodeReply::Done`].
    Delete {
        /// A container with all that is in it.
        recursive: bool,
    },
    /// The container that the path's last name is in: [`NodeReply::Dir`].
    Parent,
    /// Renames a node: [`NodeReply::Done`].
    Rename {
        /// The container of the new name, as `Parent` says.
        dir: DirId,
        /// The new name.
        name: &'a str,
        /// The new path lies in the old one, which no container survives.
        inside: bool,
    },
    /// Makes `writer` the file's only one: [`NodeReply::Length`].
    OpenWriter {
        /// A random number; not 0.
        writer: u64,
    },
    /// The writer is done: [`NodeReply::Done`].
    CloseWriter {
        /// Its number.
        writer: u64,
    },
    /// The node goes away unless this is said again in time: [`NodeReply::Done`].
    Lease {
        /// How long it stays; for ever without it.
        ttl_ms: Option<u64>,
    },
    /// Keeps the payload as a block of this worker; a node is to have it within five minutes: [`NodeReply::Block`].
    BlockWrite {
        /// Where it may lie.
        class: StorageClass,
    },
    /// Bytes of a block of this worker: [`NodeReply::Bytes`].
    BlockRead {
        /// The block.
        block: BlockRef,
        /// First byte in it.
        start: u32,
        /// Bytes.
        bytes: u32,
    },
    /// Values of several key-values of one container: [`NodeReply::Values`].
    GetMany {
        /// Their names.
        #[serde(borrow, deserialize_with = "at_most::<VALUES_MAX, _, _>")]
        names: Vec<&'a str>,
    },
    /// Puts several values into one container, each by itself: [`NodeReply::Refused`].
    PutMany {
        /// Names and values.
        #[serde(borrow, deserialize_with = "at_most::<VALUES_MAX, _, _>")]
        values: Vec<(&'a str, Raw<'a>)>,
    },
    /// A place for a block of the class `dram` that the asker writes itself, on a connection that has attached:
    /// [`NodeReply::Place`].
    Prepare {
        /// Its bytes.
        bytes: u32,
        /// A descriptor by which the tier is written comes with the answer.
        descriptor: bool,
    },
    /// The block of such a place is written: [`NodeReply::Block`].
    Written {
        /// The place's pin, which is no longer one.
        pin: u64,
    },
    /// A file or value takes the place of the one of another name in its container, at once: [`NodeReply::Done`].
    Replace {
        /// The other name.
        name: &'a str,
        /// What is to be true of what has it now.
        condition: Condition,
    },
    /// Deletes a file or value that a condition is true of: [`NodeReply::Done`].
    DeleteIf {
        /// What is to be true of it.
        condition: Condition,
    },
    /// What a container's files and values have, and may have: [`NodeReply::Usage`].
    Usage,
    /// So much a container's files and values may have from now on: [`NodeReply::Done`].
    SetQuota {
        /// Bytes; as many as there is room for without it.
        bytes: Option<u64>,
    },
}

impl NodeOp<'_> {
    /// What operations are called, in `snake_case`: one name a kind.
    pub fn names() -> &'static [&'static str] {
        Self::VARIANTS
    }
}

impl NodeCall<'_> {
    /// The call's bytes, with [`NODE_MESSAGE`] before them.
    pub fn encode(&self) -> Bytes {
        let inside = match &self.op {
            NodeOp::Put { value } => value.0.len(),
            NodeOp::Append { bytes, .. } | NodeOp::Write { bytes, .. } => bytes.0.len(),
            NodeOp::Create { location: Some(location), .. } => 32 + location.as_str().len(),
            NodeOp::GetMany { names } => names.iter().map(|name| name.len() + 2).sum(),
            NodeOp::PutMany { values } => values.iter().map(|(name, value)| name.len() + value.0.len() + 4).sum(),
            _ => 32,
        };
        let mut bytes = Vec::with_capacity(64 + self.path.len() + inside);
        bytes.push(NODE_MESSAGE);
        write(self, bytes)
    }
}

impl<'a> NodeCall<'a> {
    /// The call in a message, if it is one of the temporary namespace. `Invalid` when it can't be read.
    pub fn decode(message: &'a [u8]) -> Option<Result<Self>> {
        let rest = message.strip_prefix(&[NODE_MESSAGE])?;
        Some(read(rest))
    }
}

fn write<T: Serialize>(message: &T, bytes: Vec<u8>) -> Bytes {
    // Messages hold no type that postcard can't encode, so this can't fail on any value.
    postcard::to_extend(message, bytes).expect("messages are encodable").into()
}
