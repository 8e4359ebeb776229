use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A container's identity: its nodes are with `worker`, wherever its own name is. Never given twice, not by another process
/// of the same worker either, so a name that was deleted and made again is not taken for the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DirId {
    /// The worker that has its nodes.
    pub worker: u64,
    /// Unique within that worker.
    pub number: u64,
}

/// The directory `/tmp`, on the worker that has the root.
pub const ROOT: DirId = DirId { worker: 0, number: 0 };

/// Bytes in a worker's tiers. The number is never given twice: it is the block's generation too, and a reader that comes
/// late finds nothing rather than another node's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlockRef {
    /// The worker that has it.
    pub worker: u64,
    /// Unique within that worker.
    pub number: u64,
    /// Bytes.
    pub len: u32,
}

/// How long a block that was written for a node is kept while no node has it. No worker gives one back earlier.
pub const UNCLAIMED_FOR: Duration = Duration::from_secs(300);
