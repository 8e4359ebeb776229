//! What is said of a worker's tiers: where bytes are, how many, and how long the queue before them is.

use forebay_types::{PageRun, SegmentId};
use serde::{Deserialize, Serialize};

/// Consecutive bytes of the DRAM tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Offset in the tier's descriptor, in bytes.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// What a worker says about itself with each answer to a read, so that clients route by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint {
    /// Reads under way at the worker when it answered, without this one.
    pub queue: u32,
    /// Version of the routing table that it knows; 0 for none.
    pub routes: u64,
}

/// What a worker holds of one segment, whole pages counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Bytes present in the DRAM tier.
    pub dram_bytes: u64,
    /// Bytes present in the disk tier.
    pub disk_bytes: u64,
    /// Bytes present in either.
    pub bytes: u64,
    /// Kept by the administrator.
    pub keep: bool,
}

/// Pages that are in no tier of a worker any more, and such as have come into one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Departed {
    /// What to ask for next.
    pub next: u64,
    /// Others left or came that are not among these: what counts is to be asked for.
    pub lost: bool,
    /// In the order in which they left; some may be back since.
    pub runs: Vec<(SegmentId, PageRun)>,
    /// In the order in which they came, from anywhere; some may have left since.
    #[serde(with = "crate::version::since_9")]
    pub came: Vec<(SegmentId, PageRun)>,
}
