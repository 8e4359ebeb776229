use std::fmt;

use bytes::Bytes;
use forebay_nodes::{BlockRef, DirId, NodeError, NodeType, Stat, StorageClass};
use forebay_types::{Error, Result};
use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::Span;

/// First byte of a message of the temporary namespace; no [`crate::DataRequest`] begins with it.
pub const NODE_MESSAGE: u8 = b'n';
/// Values and pieces up to this many bytes lie in the message, longer ones are its payload.
pub const NODE_MESSAGE_VALUE_MAX: usize = 4 << 10;

/// What is asked of a worker about temporary nodes. Every reply is a [`NodeReply`]. Borrowed from the frame, so that reading
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Keeps the payload as a block of this worker; a node is to have it within a minute: [`NodeReply::Block`].
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
    /// Nobody needs these blocks of this worker any more: [`NodeReply::Done`].
    BlockFree {
        /// Which.
        blocks: Vec<BlockRef>,
    },
    /// Of these blocks of the asker those that no node here has: [`NodeReply::Blocks`].
    BlockUnknown {
        /// Which.
        blocks: Vec<BlockRef>,
    },
    /// Makes a container's nodes be with this worker; its name is the asker's business: [`NodeReply::Dir`].
    Adopt {
        /// What it is.
        kind: NodeType,
        /// Where blocks of its nodes may lie.
        class: StorageClass,
        /// The container that its name is in.
        parent: DirId,
    },
    /// Deletes the nodes of the container `from` and itself, not its name: [`NodeReply::Done`].
    RemoveNodes {
        /// Also when there are any.
        recursive: bool,
    },
    /// The name of the container `from` is in another one now: [`NodeReply::Done`].
    Reparent {
        /// In this.
        parent: DirId,
    },
    /// Takes a node that another worker is about to give up, unseen until it is settled: [`NodeReply::Done`]. With an empty
    /// path it comes under its own name; else an existing container of that path takes it in, [`NodeReply::Elsewhere`] when
    /// that one's nodes are with another worker.
    Arrive {
        /// Number of the rename.
        rename: u128,
        /// The worker that gives it up.
        source: u64,
        /// Its name there.
        name: &'a str,
        /// The node, as `forebay_nodes::Moving`.
        #[serde(borrow)]
        node: Raw<'a>,
    },
    /// How a rename ended: [`NodeReply::Done`].
    Settle {
        /// Number of the rename.
        rename: u128,
        /// The node has come, or stays where it was.
        committed: bool,
    },
    /// Whether a rename that this worker is the source of is committed: [`NodeReply::Outcome`].
    Outcome {
        /// Number of the rename.
        rename: u128,
    },
    /// A container was renamed somewhere: what clients remember of paths is old: [`NodeReply::Done`].
    Moved,
    /// Values of several key-values of one container: [`NodeReply::Values`].
    GetMany {
        /// Their names.
        #[serde(borrow)]
        names: Vec<&'a str>,
    },
    /// Puts several values into one container, each by itself: [`NodeReply::Refused`].
    PutMany {
        /// Names and values.
        #[serde(borrow)]
        values: Vec<(&'a str, Raw<'a>)>,
    },
    /// Room for what another worker gives up: [`NodeReply::Room`].
    Room,
    /// Makes place for a container that another worker is about to give up, unseen: [`NodeReply::Dir`] with what it will be.
    TakeOver {
        /// The worker that gives it up.
        source: u64,
        /// The container, as `forebay_nodes::Carton`.
        #[serde(borrow)]
        carton: Raw<'a>,
    },
    /// Takes nodes, the payload as a list of `forebay_nodes::Packed`, into the container `from` that is coming:
    /// [`NodeReply::Done`].
    TakeOverNodes,
    /// All nodes of the container `from` have come: [`NodeReply::Done`].
    TakeOverEnd,
    /// The container that was `from` does not come: [`NodeReply::Done`].
    TakeOverDrop,
    /// The container `from` is here now, given up by its source: [`NodeReply::Outcome`], whether its
    /// name was found, which leads here then.
    TookOver {
        /// What it was.
        old: DirId,
        /// The container that its name is in.
        parent: DirId,
    },
    /// A container is another one now: its name, if it is here, leads there: [`NodeReply::Outcome`], whether it is here.
    Relink {
        /// What it was.
        old: DirId,
        /// What it is.
        new: DirId,
    },
    /// Blocks of a worker that nodes here have: [`NodeReply::Blocks`].
    BlocksOf {
        /// The worker.
        worker: u64,
        /// At most so many; up to 10,000.
        limit: u32,
    },
    /// Blocks have copies on other workers: nodes here have these instead. [`NodeReply::Blocks`] with the old ones of those that
    /// have; the others were given up meanwhile, or their nodes are on their way. Nobody is to free the old ones but who asks.
    BlocksMoved {
        /// Old and new.
        moved: Vec<(BlockRef, BlockRef)>,
    },
}

/// What a worker answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
        /// Which file it is, to `Extents` of one: another one under its name has another number. Else 0.
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
}

/// Bytes that are neither copied nor gone through one by one when a message is read or written.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Raw<'a>(pub &'a [u8]);

impl fmt::Debug for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowed;
        impl<'de> Visitor<'de> for Borrowed {
            type Value = Raw<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Raw<'de>, E> {
                Ok(Raw(bytes))
            }
        }
        deserializer.deserialize_bytes(Borrowed)
    }
}

impl NodeCall<'_> {
    /// The call's bytes, with [`NODE_MESSAGE`] before them.
    pub fn encode(&self) -> Bytes {
        let inside = match &self.op {
            NodeOp::Put { value } => value.0.len(),
            NodeOp::Append { bytes, .. } | NodeOp::Write { bytes, .. } => bytes.0.len(),
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

    /// The reply in a message. `Invalid` when it can't be read.
    pub fn decode(message: &'a [u8]) -> Result<Self> {
        read(message)
    }
}

fn write<T: Serialize>(message: &T, bytes: Vec<u8>) -> Bytes {
    // Messages hold no type that postcard can't encode, so this can't fail on any value.
    postcard::to_extend(message, bytes).expect("messages are encodable").into()
}

fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(Error::invalid(format!("message has {} bytes too many", rest.len()))),
        Err(error) => Err(Error::invalid(format!("message can't be read: {error}"))),
    }
}
