//! What is asked of a worker about temporary nodes.

mod peer;
mod raw;
mod reply;

use bytes::Bytes;
use forebay_nodes::{BlockRef, CallNumber, Condition, DirId, Location, NodeType, StorageClass};
use forebay_types::{Error, Result};
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use crate::codec::read;
use crate::limits::{BLOCKS_MAX, VALUES_MAX, at_most};
use crate::version::{ONCE_SINCE, PROTOCOL_VERSION};

pub use peer::{NODE_PEER_MESSAGE, PeerCall, PeerOp};
pub use raw::Raw;
pub use reply::NodeReply;

/// First byte of a message of the temporary namespace; no [`crate::DataRequest`] begins with it.
pub const NODE_MESSAGE: u8 = b'n';
/// The same of a call that has a number, which is between this byte and the call.
pub const NODE_NUMBERED_MESSAGE: u8 = b'o';
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
    /// By which it takes effect once, of what is done so ([`NodeOp::is_numbered`]).
    #[serde(skip)]
    pub number: Option<CallNumber>,
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
    /// What became of a numbered call whose answer was lost: that answer. [`NodeReply::Outcome`] of false when it was not done, and is not from
    /// now on; `Retry` when nobody knows any more.
    WasDone {
        /// Its number.
        number: CallNumber,
        /// It was sent no longer ago than this when the answer is heard.
        within_ms: u64,
    },
}

impl NodeOp<'_> {
    /// What operations are called, in `snake_case`: one name a kind.
    pub fn names() -> &'static [&'static str] {
        Self::VARIANTS
    }

    /// Whether a call of this kind may have a number, by which it takes effect once: what says what is to be, whatever was. It would come to the
    /// same when it is done twice, but for what others do in between.
    pub fn is_numbered(&self) -> bool {
        matches!(self, Self::Put { .. } | Self::PutMany { .. } | Self::Lease { .. } | Self::SetQuota { .. })
    }
}

impl NodeCall<'_> {
    /// The call's bytes, with [`NODE_MESSAGE`] before them, or [`NODE_NUMBERED_MESSAGE`] and its number.
    pub fn encode(&self) -> Bytes {
        self.encode_for(PROTOCOL_VERSION)
    }

    /// The same for a peer of a version: one before 9 knows of no numbers.
    pub fn encode_for(&self, version: u16) -> Bytes {
        let inside = match &self.op {
            NodeOp::Put { value } => value.0.len(),
            NodeOp::Append { bytes, .. } | NodeOp::Write { bytes, .. } => bytes.0.len(),
            NodeOp::Create { location: Some(location), .. } => 32 + location.as_str().len(),
            NodeOp::GetMany { names } => names.iter().map(|name| name.len() + 2).sum(),
            NodeOp::PutMany { values } => values.iter().map(|(name, value)| name.len() + value.0.len() + 4).sum(),
            _ => 32,
        };
        debug_assert!(self.number.is_none() || self.op.is_numbered(), "{:?} has no number", self.op);
        let mut bytes = Vec::with_capacity(64 + CallNumber::BYTES + self.path.len() + inside);
        match self.number.filter(|_| version >= ONCE_SINCE) {
            Some(number) => {
                bytes.push(NODE_NUMBERED_MESSAGE);
                bytes.extend_from_slice(&number.to_bytes());
            }
            None => bytes.push(NODE_MESSAGE),
        }
        write(self, bytes)
    }

    /// What a message of a call says, whichever number the call has.
    pub fn without_number(message: &[u8]) -> &[u8] {
        match message.split_first() {
            Some((&NODE_NUMBERED_MESSAGE, rest)) => rest.get(CallNumber::BYTES..).unwrap_or_default(),
            Some((_, rest)) => rest,
            None => message,
        }
    }
}

impl<'a> NodeCall<'a> {
    /// The call in a message, if it is one of the temporary namespace. `Invalid` when it can't be read.
    pub fn decode(message: &'a [u8]) -> Option<Result<Self>> {
        match message.split_first()? {
            (&NODE_MESSAGE, rest) => Some(read(rest)),
            (&NODE_NUMBERED_MESSAGE, rest) => Some(Self::numbered(rest)),
            _ => None,
        }
    }

    fn numbered(rest: &'a [u8]) -> Result<Self> {
        let (number, call) =
            rest.split_first_chunk::<{ CallNumber::BYTES }>().ok_or_else(|| Error::invalid("a call's number is cut short"))?;
        let call: Self = read(call)?;
        match call.op.is_numbered() {
            true => Ok(Self { number: Some(CallNumber::from_bytes(number)), ..call }),
            false => Err(Error::invalid("a call has a number that is of no kind which has one")),
        }
    }
}

fn write<T: Serialize>(message: &T, bytes: Vec<u8>) -> Bytes {
    // Messages hold no type that postcard can't encode, so this can't fail on any value.
    postcard::to_extend(message, bytes).expect("messages are encodable").into()
}
