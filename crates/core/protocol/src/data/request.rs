//! What is asked of a worker about what is cached and served.

use std::sync::Arc;

use forebay_types::{Key, MountId, ObjectInfo, ObjectVersion, OperationId, PageRun, SegmentId, TextForm};
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

#[cfg(doc)]
use super::reply::DataReply;
use crate::limits::{RANGES_MAX, RUNS_MAX, SEGMENTS_MAX, at_most};
use crate::objects::{DraftCall, PutCondition, RangeSpec};
use crate::placement::WantedAccesses;
use crate::rows::WantedRows;
use crate::shards::{DatasetId, WantedRecords};
use crate::tiers::TierOrder;
use crate::version::{read_since, write_since};

/// What is asked of a worker. Every reply is a [`DataReply`] of the variant named here, or [`DataReply::Failed`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum DataRequest {
    /// Hands over the DRAM tier for reading in place: [`DataReply::Attached`] with one read-only descriptor. Only on a Unix connection of
    /// the same user; `Denied` elsewhere or when the worker runs with `--no-in-place`.
    Attach,
    /// The current version of an object, as fresh as the mount's rule wants it: [`DataReply::Info`].
    Open {
        /// The mount.
        mount: MountId,
        /// The object.
        key: Key,
    },
    /// One page of a listing, in byte order of keys: [`DataReply::Listed`].
    List {
        /// The mount.
        mount: MountId,
        /// Keys start with this, byte for byte.
        prefix: Key,
        /// Keys that go on past the next `/` after the prefix are gathered into common prefixes.
        folders: bool,
        /// Only keys (and common prefixes) after this one.
        after: Option<Key>,
        /// At most this many entries; 1 to 10,000.
        limit: u32,
    },
    /// Bytes of one version, within one segment: [`DataReply::Read`].
    Read {
        /// Who reads.
        operation: OperationId,
        /// The version that the reader has opened. `Conflict` when shared storage has another one now and the bytes are not held.
        version: ObjectVersion,
        /// First byte, counted from the object's start.
        start: u64,
        /// Bytes; the range lies within one segment and within the object.
        len: u32,
        /// Spans of the DRAM tier under a pin instead of bytes, where the worker can.
        in_place: bool,
    },
    /// Bytes of whatever version is current under the mount's rule, with one request to shared storage when the
    /// object is unknown: [`DataReply::ReadLatest`]. The answer ends at the segment's end; go on with `Read`.
    ReadLatest {
        /// Who reads.
        operation: OperationId,
        /// The mount.
        mount: MountId,
        /// The object.
        key: Key,
        /// Which bytes.
        range: RangeSpec,
        /// As in `Read`.
        in_place: bool,
    },
    /// Fetches ranges in this order, after all demand unless it is urgent: [`DataReply::Fetched`] when all are there. Cancelled with the call.
    Prefetch {
        /// The operation that will read.
        operation: OperationId,
        /// The version.
        version: ObjectVersion,
        /// (start, length) in bytes of the object; within segments that this worker holds.
        #[serde(deserialize_with = "at_most::<RANGES_MAX, _, _>")]
        ranges: Vec<(u64, u32)>,
        /// Keeps the segments against eviction, as a pin of the administrator's does.
        keep: bool,
        /// Takes its turn with demand, as if somebody waited.
        urgent: bool,
        /// How long what is there is held for the operation's reads at most, in milliseconds; 0: not at all, and unless urgent in the background.
        hold_ms: u32,
        /// Where the plan that wants this stands among all plans. What is not urgent comes after what plans before it want.
        #[serde(with = "crate::version::since_9")]
        standing: forebay_types::Standing,
    },
    /// Writes an object whole: [`DataReply::Info`] once shared storage has it. The payload is the object's bytes.
    Put {
        /// The mount.
        mount: MountId,
        /// The object.
        key: Key,
        /// When it may be written.
        condition: PutCondition,
    },
    /// Begins an object in parts: [`DataReply::Upload`].
    PutBegin {
        /// The mount.
        mount: MountId,
        /// The object.
        key: Key,
    },
    /// The next part, as payload; parts may come in any order: [`DataReply::Done`].
    PutPart {
        /// From [`DataReply::Upload`].
        upload: u64,
        /// Place of the part, from 0.
        part: u32,
    },
    /// Makes the object of its parts: [`DataReply::Info`].
    PutCommit {
        /// From [`DataReply::Upload`].
        upload: u64,
        /// Number of parts.
        parts: u32,
        /// When it may be written.
        condition: PutCondition,
    },
    /// Gives an upload up; nothing of it remains: [`DataReply::Done`]. Closing the connection does it too.
    PutAbort {
        /// From [`DataReply::Upload`].
        upload: u64,
    },
    /// Deletes an object; one that is not there is no error: [`DataReply::Done`].
    Delete {
        /// The mount.
        mount: MountId,
        /// The object.
        key: Key,
    },
    /// Forgets listings and versions below a prefix, so that the next open asks shared storage: [`DataReply::Done`].
    Refresh {
        /// The mount.
        mount: MountId,
        /// Keys start with this.
        prefix: Key,
    },
    /// A peer or a gateway has written (or deleted, when `info` is none) an object: [`DataReply::Heard`].
    Changed {
        /// The mount.
        mount: MountId,
        /// The object.
        key: Key,
        /// What is there now.
        info: Option<ObjectInfo>,
    },
    /// Drops segments from the tiers, kept ones too: [`DataReply::Freed`].
    Free {
        /// Which.
        #[serde(deserialize_with = "at_most::<SEGMENTS_MAX, _, _>")]
        segments: Vec<SegmentId>,
    },
    /// Sets or clears the administrator's pin on segments that are held: [`DataReply::Done`].
    Keep {
        /// Which.
        #[serde(deserialize_with = "at_most::<SEGMENTS_MAX, _, _>")]
        segments: Vec<SegmentId>,
        /// Set or clear.
        keep: bool,
    },
    /// What is held of these segments: [`DataReply::Held`], in the same order.
    Held {
        /// Which.
        #[serde(deserialize_with = "at_most::<SEGMENTS_MAX, _, _>")]
        segments: Vec<SegmentId>,
    },
    /// The worker's own report: [`DataReply::Report`].
    Report,
    /// As `Open`, with what the store says of the object beside its version: [`DataReply::Stat`].
    Stat {
        /// The mount.
        mount: MountId,
        /// The object.
        key: Key,
        /// As in `ReadObject`.
        complete: bool,
    },
    /// As `ReadLatest`, with what the store says of the object beside its version, and with no more than the first bytes of
    /// the range, so that who reads much may begin early: [`DataReply::ReadObject`].
    ReadObject {
        /// Who reads.
        operation: OperationId,
        /// The mount.
        mount: MountId,
        /// The object.
        key: Key,
        /// Which bytes are wanted in the end: what an object is asked for that nothing is known of.
        range: RangeSpec,
        /// Bytes of the answer at most; those of a suffix come whole.
        first: u32,
        /// The attributes must be complete, as `Attributes::complete` says.
        complete: bool,
        /// As in `Read`.
        in_place: bool,
    },
    /// How the worker stands, at once, for a reader who has a choice: [`DataReply::Queue`].
    Queue,
    /// Which of these runs of pages are held whole, in either tier: [`DataReply::Present`], in the same order.
    Present {
        /// Segments and pages of them.
        #[serde(deserialize_with = "at_most::<RUNS_MAX, _, _>")]
        runs: Vec<(SegmentId, PageRun)>,
    },
    /// One column of one row group of a Parquet file, or of one chunk of a text file, in the table form: [`DataReply::Read`] with all of
    /// it, or [`DataReply::NoCell`]. What is asked for often enough is made; nothing waits for it, and nothing is fetched for it.
    ReadCell {
        /// Who reads.
        operation: OperationId,
        /// The version that the reader has opened.
        version: ObjectVersion,
        /// What the lines of a text file are taken for; none for a Parquet file.
        form: Option<Arc<TextForm>>,
        /// The row group's or chunk's number in the file.
        row_group: u32,
        /// The column's number among the leaves of the file's schema; among the form's columns for text.
        column: u32,
        /// As in `Read`.
        in_place: bool,
    },
    /// Shared memory for small calls of a client on the same host: [`DataReply::Done`], with a descriptor when there is any.
    Ring,
    /// Questions about one shard of a dataset, one JSON object a line of the payload: [`DataReply::Shard`] with a line of JSON
    /// for each as payload. A worker that has not got the shard brings it first, which is waited for.
    AskShard {
        /// The dataset's folder.
        dataset: DatasetId,
        /// Which of its shards, from 0.
        shard: u32,
        /// How long the asker waits, in milliseconds: what can't begin within it is `Retry`.
        within_ms: u32,
    },
    /// The shards of a dataset that this worker has: [`DataReply::Shards`].
    Shards {
        /// The dataset's folder.
        dataset: DatasetId,
    },
    /// Compresses what was changed in a shard into its files, for all workers: [`DataReply::Done`] once shared storage has them.
    MergeShard {
        /// The dataset's folder.
        dataset: DatasetId,
        /// Which of its shards, from 0.
        shard: u32,
        /// How long the asker waits, in milliseconds. What ends in `Retry` goes on.
        within_ms: u32,
    },
    /// Changes records of one shard of a dataset, one JSON object a line of the payload, all of them or none:
    /// [`DataReply::ShardChanged`] once shared storage has them. `Conflict` when a condition of one of them does not hold.
    ChangeShard {
        /// The dataset's folder.
        dataset: DatasetId,
        /// Which of its shards, from 0.
        shard: u32,
        /// Drawn by the asker: what is asked again, of whichever worker, is done once.
        call: u128,
        /// How long the asker waits, in milliseconds. What ends in `Retry` may be done all the same.
        within_ms: u32,
        /// Where it was asked before and may be done: the number of an object that the shard's log had before that. A worker that does not know
        /// whether one behind it has the call answers [`DataReply::Elsewhere`] with `Retry`.
        #[serde(serialize_with = "write_since::<9, _, _>", deserialize_with = "read_since::<9, _, _>")]
        after: Option<u64>,
    },
    /// Which pages left the tiers or came, from the first such question on: [`DataReply::Departed`] as soon as there are some.
    Departed {
        /// What the last answer gave as `next`; any number at first.
        since: u64,
        /// How long the asker waits, in milliseconds.
        within_ms: u32,
    },
    /// Records of a shard by the keys that are the payload, as `AskShard`; the answers are in the bytes that shards keep.
    GetRecords(WantedRecords),
    /// Rows of decoded columns that meet a condition: [`DataReply::Selected`], or [`DataReply::NoCell`] when one of the columns is not
    /// there. As with `ReadCell`, what is asked for often enough is made, and nothing is fetched for it.
    SelectRows(WantedRows),
    /// Which objects are read and written here, from the first such question on: [`DataReply::Accesses`].
    Accesses(WantedAccesses),
    /// About the drafts of an operation: objects that processes of the cluster write for who opened them, and that nobody sees until
    /// he commits each ([`Self::PutCommit`]). They end with his connection.
    Drafts {
        /// Whose they are. Nobody else's: two can't open the same.
        operation: OperationId,
        /// What is to be done.
        call: DraftCall,
    },
    /// As `Free` and `Keep`, for who may administer one mount: [`DataReply::Freed`], or [`DataReply::Done`].
    TierOrder(TierOrder),
}

impl DataRequest {
    /// What it is a part of, where that is said.
    pub fn operation(&self) -> Option<OperationId> {
        match self {
            Self::Read { operation, .. }
            | Self::ReadLatest { operation, .. }
            | Self::ReadObject { operation, .. }
            | Self::ReadCell { operation, .. }
            | Self::SelectRows(WantedRows { operation, .. })
            | Self::Prefetch { operation, .. } => Some(*operation),
            _ => None,
        }
    }
}
