mod raw;
mod reply;

use bytes::Bytes;
use forebay_nodes::{Affinity, BlockRef, Condition, DirId, Location, NodeType, StorageClass};
use forebay_types::{Error, Result};
use serde::{Deserialize, Serialize};

pub use raw::Raw;
pub use reply::NodeReply;

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
        /// Where blocks of its nodes are to lie.
        affinity: Affinity,
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
    /// Blocks of a worker that nodes here have: [`NodeReply::BlocksOf`].
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
    /// Of these containers those whose names are not here: [`NodeReply::Dirs`].
    Nameless {
        /// Which; at most 10,000.
        containers: Vec<DirId>,
    },
    /// Of these containers those that are not here, and were not given to another worker: [`NodeReply::Dirs`].
    Missing {
        /// Which; at most 10,000.
        containers: Vec<DirId>,
    },
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

fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(Error::invalid(format!("message has {} bytes too many", rest.len()))),
        Err(error) => Err(Error::invalid(format!("message can't be read: {error}"))),
    }
}
