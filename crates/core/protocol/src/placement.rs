//! What was read, what is ordered, and what is where.

use std::time::Duration;

use forebay_types::{ForebayPath, Key, MountId, MountName, ObjectVersion, OperationId, SegmentId, WorkerId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::{ACCESSES_MAX, ROOTS_MAX, USES_MAX, at_most};

/// What one worker served in one counting period.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowReport {
    /// The period, by the number that the coordinator gave it.
    pub window: u64,
    /// How long it lasted here; longer than a period when the coordinator was away.
    pub lasted: Duration,
    /// Segments that were read or that the worker was ordered to hold.
    #[serde(deserialize_with = "at_most::<USES_MAX, _, _>")]
    pub uses: Vec<SegmentUse>,
    /// Time in which the worker had answers to send, up to their last byte. With `busy_bytes` it tells how fast the worker is.
    pub busy: Duration,
    /// Bytes of answers that left it: what its sockets held at the end of a period is of the next one.
    pub busy_bytes: u64,
    /// Reads that are in none of these because there were too many.
    pub reads_left_out: u64,
    /// Folders below which one operation read several others that differ as partitions do: roots of tables.
    #[serde(deserialize_with = "at_most::<ROOTS_MAX, _, _>")]
    pub roots: Vec<(MountId, String)>,
}

/// What one worker served of one segment in one counting period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentUse {
    /// The object.
    pub version: ObjectVersion,
    /// Which of its segments.
    pub index: u32,
    /// Operations that read it, each counted once; 0 for a replica that nobody read.
    pub operations: u32,
    /// Reads.
    pub reads: u64,
    /// Bytes given to readers, in place too.
    pub bytes: u64,
    /// Time that the worker took to answer, summed; reads in place take none.
    pub service: Duration,
    /// Most reads of it that were under way at once, to the last byte of their answers.
    pub peak: u32,
    /// Bytes of it that the worker holds at the period's end.
    pub held_bytes: u64,
}

/// Which accesses are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedAccesses {
    /// What the last answer gave as `next`; any number at first.
    pub since: u64,
    /// Those to one object of so many.
    pub one_in: u32,
    /// How long the asker waits for an answer with many, in milliseconds.
    pub within_ms: u32,
}

/// Accesses at one worker, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accesses {
    /// What to ask for next.
    pub next: u64,
    /// Accesses since the last answer that are not told, now or later: they were too many.
    pub lost: u64,
    /// These.
    #[serde(deserialize_with = "at_most::<ACCESSES_MAX, _, _>")]
    pub made: Vec<AccessMade>,
}

/// An access to an object, or several of the same kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessMade {
    /// How long before the answer.
    pub ago: Duration,
    /// What it was part of; none of writes.
    pub operation: Option<OperationId>,
    /// The mount.
    pub mount: MountId,
    /// The object.
    pub key: Key,
    /// First byte, counted from the object's start; that of the segment where a client says no more.
    pub start: u64,
    /// Bytes of each.
    pub bytes: u64,
    /// How many: more than one only in place, where clients tell them together.
    pub times: u32,
    /// What was done, and how.
    pub way: AccessWay,
}

/// What was done to an object, and how the bytes went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccessWay {
    /// Read, as an answer.
    Answered,
    /// Read in the worker's memory by a client beside it.
    InPlace,
    /// Read by a gateway in the worker's own process.
    AtHand,
    /// Read as a decoded column.
    Decoded,
    /// Written.
    Written,
    /// Deleted.
    Deleted,
}

/// What the coordinator wants of a worker. Repeated with every heartbeat until the worker says how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Hold this segment.
    Hold {
        /// The object.
        version: ObjectVersion,
        /// Which of its segments.
        index: u32,
        /// Workers to copy it from, the first that answers; shared storage when there is none.
        from: Vec<WorkerId>,
    },
    /// Drop this segment, unless it is kept.
    Drop {
        /// Which.
        segment: SegmentId,
    },
}

/// How an order ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderEnd {
    /// The segment.
    pub segment: SegmentId,
    /// Whether it is to be held (or dropped).
    pub hold: bool,
    /// Bytes of it that the worker holds now.
    pub held_bytes: u64,
}

/// What `forebay status --segments` shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlacementStatus {
    /// How replicas are planned, or `off`.
    pub policy: String,
    /// A counting period.
    pub window: Duration,
    /// Periods that were planned since the coordinator's start.
    pub runs: u64,
    /// How long the last plan took to make.
    pub planning: Duration,
    /// Segments that are popular enough to be known.
    pub segments_known: u64,
    /// Replicas of the last plan.
    pub replicas_planned: u64,
    /// What no plan goes below.
    pub lower_bound: u64,
    /// Replicas that are held, and on their way.
    pub replicas_held: u64,
    /// Replicas that are on their way to their workers.
    pub replicas_loading: u64,
    /// Replicas that were ordered since the coordinator's start.
    pub replicas_ordered: u64,
    /// Replicas that were ordered to be dropped since then.
    pub replicas_dropped: u64,
    /// Segments that the routing table names because they differ from rendezvous hashing.
    pub routes: u64,
    /// Bytes a second that workers were measured to send while they had enough to send.
    pub speeds: Vec<(WorkerId, u64)>,
    /// What the plan could not satisfy, in words.
    pub unsatisfied: Vec<String>,
    /// Segments, the most popular first.
    pub segments: Vec<SegmentStatus>,
}

/// One segment as placement sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SegmentStatus {
    /// The object.
    pub path: ForebayPath,
    /// Which of its segments.
    pub index: u32,
    /// Its id.
    pub segment: SegmentId,
    /// Accesses a window, aged: the sum over past windows i of their count / 2^(i-1).
    pub popularity: f64,
    /// Operations that read it in the last window.
    pub operations: u64,
    /// Reads in the last window.
    pub reads: u64,
    /// Bytes read in the last window.
    pub bytes_read: u64,
    /// Who is to hold it, with the part of the accesses that it is to serve, in any unit.
    pub planned: Vec<(WorkerId, u32)>,
    /// Who holds it, with the bytes held.
    pub held: Vec<(WorkerId, u64)>,
    /// Who is loading it.
    pub loading: Vec<WorkerId>,
    /// Where clients read it, in percent that sum to 100.
    pub routing: Vec<(WorkerId, u32)>,
    /// Whether the routing table names it; else rendezvous hashing says where it is read.
    pub in_table: bool,
}

/// What workers hold of the segments that placement knows, by mounts and by tables. Said within the coordinator's process, and not on any wire.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filled {
    /// Workers, by their ids; where there are many those that hold most.
    pub workers: Vec<WorkerId>,
    /// How many there are.
    pub workers_known: u64,
    /// How many mounts something is known of.
    pub mounts_known: u64,
    /// How many tables something is known of.
    pub tables_known: u64,
    /// All of it.
    pub all: FilledBytes,
    /// Mounts, those first of which most is held.
    pub mounts: Vec<FilledPart>,
    /// Tables, likewise.
    pub tables: Vec<FilledPart>,
}

/// What is held of a mount, or of a table in it.
#[derive(Clone, Debug, PartialEq)]
pub struct FilledPart {
    /// The mount.
    pub mount: MountName,
    /// The table's folder in the mount, without a `/` at its end; none of a mount.
    pub table: Option<String>,
    /// On all workers.
    pub held: FilledBytes,
    /// Bytes on each of [`Filled::workers`], in their order.
    pub by_worker: Vec<u64>,
}

/// Bytes that workers hold of some segments, and how much these are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct FilledBytes {
    /// Segments that placement knows, decoded columns among them.
    pub segments: u64,
    /// Accesses a window, aged.
    pub popularity: f64,
    /// Bytes of all copies, on all workers.
    pub bytes: u64,
    /// Of these, bytes of decoded columns.
    pub decoded_bytes: u64,
    /// Bytes of one copy of each segment, the most complete one.
    pub distinct_bytes: u64,
}
