//! What a worker asks of another about what is cached.

use bytes::Bytes;
use forebay_types::{FormId, Key, MountId, ObjectInfo, Result, SegmentId, WorkerId};
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use crate::codec::decode;
use crate::limits::{CHANGES_MAX, KEPT_MAX, at_most};

/// First byte of a message from one worker to another; no [`DataRequest`](crate::DataRequest) begins with it.
pub const PEER_MESSAGE: u8 = b'p';

/// What a worker asks of another about what is cached. Every reply is a [`DataReply`] of the variant named here, or
/// [`DataReply::Failed`].
///
/// [`DataReply`]: crate::DataReply
/// [`DataReply::Failed`]: crate::DataReply::Failed
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum PeerRequest {
    /// Those of a segment's pages that the worker holds, for another worker: [`Copied`](crate::DataReply::Copied), with the pages as
    /// payload. Fetches nothing and counts as no read.
    Copy {
        /// The segment.
        segment: SegmentId,
        /// First page.
        start: u32,
        /// Pages from there on; 1 to 16,384.
        pages: u32,
    },
    /// What a form is that readers have named to this worker, for another one that is to hold a cell of it:
    /// [`Form`](crate::DataReply::Form).
    Form {
        /// Which.
        form: FormId,
    },
    /// An object of a shard's log may be there from now on: who answers for one of its records looks before:
    /// [`Heard`](crate::DataReply::Heard).
    Coming {
        /// The mount.
        mount: MountId,
        /// The object.
        key: Key,
        /// Hashes of the keys of the records that it changes.
        #[serde(deserialize_with = "at_most::<CHANGES_MAX, _, _>")]
        records: Vec<u64>,
    },
    /// The asker misses pages of a segment and will have them soon, from here or from shared storage:
    /// [`Shared`](crate::DataReply::Shared), with those that this worker holds as payload. Fetches nothing, asks nobody, and counts
    /// as no read.
    Missed {
        /// Who asks: one of the view's workers.
        asker: WorkerId,
        /// The segment.
        segment: SegmentId,
        /// First page.
        start: u32,
        /// Pages from there on; 1 to 16,384.
        pages: u32,
    },
    /// How a shard is served here, for another worker that is to hold it too: [`ShardHeld`](crate::DataReply::ShardHeld). Brings
    /// nothing.
    ShardHeld {
        /// What it is made of: workers keep the same one under the same number.
        shard: u128,
    },
    /// A part of a file that a shard came with, for a copy of it: [`Done`](crate::DataReply::Done), with exactly these bytes as
    /// payload. `NotFound` where the shard is not served here, or its file is no longer as it came.
    ShardPart {
        /// As in `ShardHeld`.
        shard: u128,
        /// The file's place among those that the manifest names, from 0.
        file: u32,
        /// First byte.
        start: u64,
        /// Bytes from there on; 1 to 4 MiB.
        bytes: u32,
    },
    /// The asker is about to write a shard's log alone, and this worker is to have the same on its disk:
    /// [`Done`](crate::DataReply::Done) once that knows it.
    ClaimBegin {
        /// Drawn by the asker.
        claim: u128,
        /// Who asks.
        writer: WorkerId,
        /// The mount.
        mount: MountId,
        /// The object that is to make the claim; what is kept comes behind it.
        key: Key,
    },
    /// The next object under a claim, which is the payload: [`Done`](crate::DataReply::Done) once it is on disk. `Conflict` where nothing
    /// more is taken, `Invalid` where it is not that object under that claim.
    ClaimKeep {
        /// Which.
        claim: u128,
        /// The object's number.
        number: u64,
    },
    /// What there is under a claim: [`Kept`](crate::DataReply::Kept), with objects as payload, one behind the other.
    ClaimKept {
        /// Which.
        claim: u128,
        /// The number of the first one that is wanted.
        from: u64,
        /// Nothing more is taken from now on. Where it is not said, the writer tells what both have.
        close: bool,
        /// The mount of the log that stands under it: nothing is known of it for any other, whatever that log says.
        mount: MountId,
        /// The object that has made it, or is to.
        key: Key,
    },
    /// A claim is over: what there is of it may go.
    ClaimEnd {
        /// Which.
        claim: u128,
        /// As in `ClaimKept`.
        mount: MountId,
        /// As there.
        key: Key,
    },
    /// An object of a shard's log is there that was not, which the payload is: as [`Changed`](crate::DataRequest::Changed) says for those who
    /// have the shard, and want it at once. `Invalid` where the payload is not of its size, or larger than
    /// [`CAME_BYTES_MAX`](crate::CAME_BYTES_MAX): [`Heard`](crate::DataReply::Heard).
    Came {
        /// The object, by the answer to the conditional request that stored it.
        info: ObjectInfo,
    },
}

/// What a worker has of a log under a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The number behind its last object.
    pub end: u64,
    /// It takes nothing more.
    pub is_closed: bool,
    /// Bytes of each object of the payload; there may be more behind them.
    #[serde(deserialize_with = "at_most::<KEPT_MAX, _, _>")]
    pub bytes: Vec<u32>,
}

/// What a worker has of pages that another one misses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    /// What is held of the pages that were asked for, as in [`Copied`](crate::DataReply::Copied).
    pub runs: Vec<(u32, u32)>,
    /// As there.
    pub sums: Vec<u32>,
    /// Other pages of the segment are held or on their way, or these.
    pub holds: bool,
    /// Who has asked here for pages of it before, and so may have them.
    pub elsewhere: Option<WorkerId>,
    /// Others who have, of pages about where those are that were asked for.
    #[serde(with = "crate::version::since_9")]
    pub also: [Option<WorkerId>; 2],
    /// Some of the pages that were asked for are on their way here still: it may be asked for them again.
    #[serde(with = "crate::version::since_9")]
    pub coming: bool,
}

impl PeerRequest {
    /// The request's bytes, with [`PEER_MESSAGE`] before them.
    pub fn encode(&self) -> Bytes {
        // Messages hold no type that postcard can't encode, so this can't fail on any value.
        postcard::to_extend(self, vec![PEER_MESSAGE]).expect("messages are encodable").into()
    }

    /// The request in a message, if it is one of a worker. `Invalid` when it can't be read.
    pub fn decode(message: &[u8]) -> Option<Result<Self>> {
        Some(decode(message.strip_prefix(&[PEER_MESSAGE])?))
    }
}
