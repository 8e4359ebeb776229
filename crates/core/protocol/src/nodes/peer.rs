//! What workers ask each other about temporary nodes.

use bytes::Bytes;
use forebay_nodes::{Affinity, BlockRef, DirId, NodeType, StorageClass};
use forebay_types::Result;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use super::{Raw, write};
use crate::codec::read;
use crate::limits::{BLOCKS_MAX, CLAIMS_MAX, at_most};

/// First byte of a message about temporary nodes from one worker to another; no other message begins with it.
pub const NODE_PEER_MESSAGE: u8 = b'm';

/// What a worker asks of another about temporary nodes. Every reply is a [`super::NodeReply`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerCall<'a> {
    /// A container of the worker that is asked; [`forebay_nodes::ROOT`] where it is about none.
    pub from: DirId,
    /// Names with `/` between them, where a node is to arrive; else empty.
    pub path: &'a str,
    /// What to do.
    #[serde(borrow)]
    pub op: PeerOp<'a>,
}

/// What a worker has another one do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum PeerOp<'a> {
    /// Nobody needs these blocks of this worker any more: [`super::NodeReply::Done`].
    BlockFree {
        /// Which.
        #[serde(deserialize_with = "at_most::<BLOCKS_MAX, _, _>")]
        blocks: Vec<BlockRef>,
    },
    /// Of these blocks of the asker those that no node here has: [`super::NodeReply::Blocks`].
    BlockUnknown {
        /// Which.
        #[serde(deserialize_with = "at_most::<BLOCKS_MAX, _, _>")]
        blocks: Vec<BlockRef>,
    },
    /// Makes a container's nodes be with this worker; its name is the asker's business: [`super::NodeReply::Dir`].
    Adopt {
        /// What it is.
        kind: NodeType,
        /// Where blocks of its nodes are to lie.
        affinity: Affinity,
        /// The container that its name is in.
        parent: DirId,
    },
    /// Deletes the nodes of the container `from` and itself, not its name: [`super::NodeReply::Done`].
    RemoveNodes {
        /// Also when there are any.
        recursive: bool,
    },
    /// The name of the container `from` is in another one now: [`super::NodeReply::Done`].
    Reparent {
        /// In this.
        parent: DirId,
    },
    /// Takes a node that another worker is about to give up, unseen until it is settled: [`super::NodeReply::Done`]. With an empty
    /// path it comes under its own name; else an existing container of that path takes it in, [`super::NodeReply::Elsewhere`] when
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
    /// How a rename ended: [`super::NodeReply::Done`].
    Settle {
        /// Number of the rename.
        rename: u128,
        /// The node has come, or stays where it was.
        committed: bool,
    },
    /// Whether a rename that this worker is the source of is committed: [`super::NodeReply::Outcome`].
    Outcome {
        /// Number of the rename.
        rename: u128,
    },
    /// A container was renamed somewhere: what clients remember of paths is old: [`super::NodeReply::Done`].
    Moved,
    /// Room for what another worker gives up: [`super::NodeReply::Room`].
    Room,
    /// Makes place for a container that another worker is about to give up, unseen: [`super::NodeReply::Dir`] with what it will be.
    TakeOver {
        /// The worker that gives it up.
        source: u64,
        /// The container, as `forebay_nodes::Carton`.
        #[serde(borrow)]
        carton: Raw<'a>,
    },
    /// Takes nodes, the payload as a list of `forebay_nodes::Packed`, into the container `from` that is coming:
    /// [`super::NodeReply::Done`].
    TakeOverNodes,
    /// All nodes of the container `from` have come: [`super::NodeReply::Done`].
    TakeOverEnd,
    /// The container that was `from` does not come: [`super::NodeReply::Done`].
    TakeOverDrop,
    /// The container `from` is here now, given up by its source: [`super::NodeReply::Outcome`], whether its
    /// name was found, which leads here then.
    TookOver {
        /// What it was.
        old: DirId,
        /// The container that its name is in.
        parent: DirId,
    },
    /// A container is another one now: its name, if it is here, leads there: [`super::NodeReply::Outcome`], whether it is here.
    Relink {
        /// What it was.
        old: DirId,
        /// What it is.
        new: DirId,
    },
    /// Blocks of a worker that nodes here have: [`super::NodeReply::BlocksOf`].
    BlocksOf {
        /// The worker.
        worker: u64,
        /// At most so many; up to 10,000.
        limit: u32,
    },
    /// Blocks have copies on other workers: nodes here have these instead. [`super::NodeReply::Blocks`] with the old ones of those that
    /// have; the others were given up meanwhile, or their nodes are on their way. Nobody is to free the old ones but who asks.
    BlocksMoved {
        /// Old and new.
        #[serde(deserialize_with = "at_most::<BLOCKS_MAX, _, _>")]
        moved: Vec<(BlockRef, BlockRef)>,
    },
    /// Of these containers those whose names are not here: [`super::NodeReply::Dirs`].
    Nameless {
        /// Which; at most 10,000.
        containers: Vec<DirId>,
    },
    /// Of these containers those that are not here, and were not given to another worker: [`super::NodeReply::Dirs`].
    Missing {
        /// Which; at most 10,000.
        containers: Vec<DirId>,
    },
    /// Goes up from the container `from` by the names that are here: [`super::NodeReply::Dir`] with where the way goes on, which is the root
    /// at its end. Without a name of it here, [`super::NodeReply::Elsewhere`] with the container that it is in.
    WayUp {
        /// What the way must not go through: `Invalid` where it does.
        outer: DirId,
    },
    /// Keeps the payload as a block of this worker for a node of the asker, which nobody else can claim: [`super::NodeReply::Block`].
    BlockKeep {
        /// Where it may lie.
        class: StorageClass,
    },
    /// Blocks of this worker, which clients brought, are to be a node's of the asker: [`super::NodeReply::Done`]. `Invalid`, of all
    /// of them, when one is not there, or was claimed by another number.
    BlockClaim {
        /// Which, each with a random number, the same when it is asked once more.
        #[serde(deserialize_with = "at_most::<CLAIMS_MAX, _, _>")]
        claims: Vec<(BlockRef, u128)>,
    },
    /// The node did not come about here: others may claim the blocks that were claimed by these numbers: [`super::NodeReply::Done`].
    BlockUnclaim {
        /// Which.
        #[serde(deserialize_with = "at_most::<CLAIMS_MAX, _, _>")]
        claims: Vec<(BlockRef, u128)>,
    },
}

impl PeerCall<'_> {
    /// The call's bytes, with [`NODE_PEER_MESSAGE`] before them.
    pub fn encode(&self) -> Bytes {
        let inside = match &self.op {
            PeerOp::Arrive { node, .. } => node.0.len(),
            PeerOp::TakeOver { carton, .. } => carton.0.len(),
            _ => 32,
        };
        let mut bytes = Vec::with_capacity(64 + self.path.len() + inside);
        bytes.push(NODE_PEER_MESSAGE);
        write(self, bytes)
    }
}

impl<'a> PeerCall<'a> {
    /// The call in a message, if it is one between workers. `Invalid` when it can't be read.
    pub fn decode(message: &'a [u8]) -> Option<Result<Self>> {
        Some(read(message.strip_prefix(&[NODE_PEER_MESSAGE])?))
    }
}
