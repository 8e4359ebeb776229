//! What a worker answers.

use std::sync::Arc;

use forebay_types::{Attributes, ErrorKind, ObjectInfo, TextForm};
use serde::{Deserialize, Serialize};
use strum::VariantNames;

use crate::objects::ListPage;
use crate::peer::{Kept, Shared};
use crate::placement::Accesses;
use crate::report::WorkerReport;
use crate::rows::SelectedRows;
use crate::shards::{ShardHeld, ShardState};
use crate::tiers::{Departed, Held, Hint, Span};
use crate::version::{read_since, write_since};

/// What a worker answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, VariantNames)]
pub enum DataReply {
    /// It failed.
    Failed {
        /// What the caller must do.
        kind: ErrorKind,
        /// What happened, on which path, and the remedy.
        message: String,
    },
    /// To `Attach`; the descriptor comes with the frame.
    Attached {
        /// Size of the tier's address space: what to map.
        arena_bytes: u64,
    },
    /// To `Open`, `Put`, `PutCommit`.
    Info(ObjectInfo),
    /// To `List`.
    Listed(ListPage),
    /// To `Read`: the payload holds the bytes, or `in_place` says where they are.
    Read {
        /// A pin and where the bytes are; the payload is empty then.
        in_place: Option<(u64, Span)>,
        /// How the worker stands.
        hint: Hint,
    },
    /// To `ReadLatest`: the version, and bytes as in `Read`.
    ReadLatest {
        /// The version that the bytes are of.
        info: ObjectInfo,
        /// First byte, counted from the object's start.
        start: u64,
        /// Bytes.
        len: u32,
        /// As in `Read`.
        in_place: Option<(u64, Span)>,
        /// As in `Read`.
        hint: Hint,
    },
    /// To `Prefetch`.
    Fetched {
        /// Bytes that had to be fetched from shared storage.
        bytes: u64,
    },
    /// To `PutBegin`.
    Upload {
        /// The upload's id.
        upload: u64,
        /// Every part but the last has exactly this many bytes.
        part_bytes: u64,
    },
    /// To requests whose only answer is that they are done, and to `ShardPart`, whose bytes are the payload.
    Done,
    /// To `Free`.
    Freed {
        /// Bytes given back.
        bytes: u64,
    },
    /// To `Held`.
    Held(Vec<Held>),
    /// To `Report`.
    Report(Box<WorkerReport>),
    /// To `Stat`.
    Stat(ObjectInfo, Attributes),
    /// To `ReadObject`, as `ReadLatest`.
    ReadObject {
        /// The version that the bytes are of.
        info: ObjectInfo,
        /// What the store says beside.
        attributes: Attributes,
        /// First byte, counted from the object's start.
        start: u64,
        /// Bytes.
        len: u32,
        /// As in `Read`.
        in_place: Option<(u64, Span)>,
        /// As in `Read`.
        hint: Hint,
        /// Nothing of it had to be fetched.
        hit: bool,
    },
    /// To `Copy`: runs of pages as (first, count), in order, which the payload holds, the segment's last page padded with zeros.
    Copied {
        /// What is held of the pages that were asked for.
        runs: Vec<(u32, u32)>,
        /// The checksum of each page of the payload, as it was stored when the page came to the worker.
        sums: Vec<u32>,
    },
    /// To `Queue`; reads under way, all of them.
    Queue(Hint),
    /// To `Present`.
    Present(Vec<bool>),
    /// To `ReadCell`: the worker doesn't have it, read the raw bytes.
    NoCell {
        /// How the worker stands.
        hint: Hint,
    },
    /// To `Form`; none where it is not known.
    Form(Option<Arc<TextForm>>),
    /// To `Changed` and `Coming`: what was known of the object is forgotten.
    Heard {
        /// Version of the view that the worker has, if that view names every worker that remembers versions of objects; else 0.
        view: u64,
    },
    /// To `AskShard`, the payload having a line for each question, and to `GetRecords`, with an answer for each key.
    Shard {
        /// Estimated steps of the other calls to this shard that were under way or waiting when this one was answered; how many calls these
        /// were where there are no `steps`.
        queue: u32,
        /// Estimated steps of this call; 0 of a worker that counts calls.
        #[serde(serialize_with = "write_since::<9, _, _>", deserialize_with = "read_since::<9, _, _>")]
        steps: u32,
    },
    /// To `Shards`, in order of their numbers.
    Shards(Vec<ShardState>),
    /// To `ChangeShard`.
    ShardChanged {
        /// The version that the records have now: the number of their object in the shard's log.
        version: u64,
    },
    /// To `Missed`, with pages as to `Copy`.
    Shared(Shared),
    /// To `Departed`.
    Departed(Departed),
    /// To `ShardHeld`; none where the shard is not there.
    ShardHeld(Option<ShardHeld>),
    /// To `SelectRows`: the rows are the payload, a table (docs/specs/table.md) of the columns in the order asked for.
    Selected(SelectedRows),
    /// To `Accesses`.
    Accesses(Accesses),
    /// To what needs shared storage, or a shard, while too much waits for that, and nothing was begun: another worker may be asked, or this one
    /// after so long.
    Busy {
        /// Milliseconds.
        after_ms: u32,
        /// As in `Failed`.
        message: String,
    },
    /// To `ClaimKept`, the objects being the payload; none where nothing is known of the claim.
    Kept(Option<Kept>),
    /// As `Failed` with `Retry`, to what was tried again and again in vain: to be as patient once more would help nobody.
    InVain {
        /// As in `Failed`.
        message: String,
    },
    /// As `Failed`, of this worker alone: another one may do it.
    Elsewhere {
        /// As in `Failed`.
        kind: ErrorKind,
        /// As in `Failed`.
        message: String,
    },
}
