//! What everything here is said in: names, identities, types and places of nodes, and why something failed.

mod by_dir;
mod error;
mod kind;
mod location;
mod names;

use std::time::Duration;

use forebay_types::{BLOCK_BYTES, Error};
use serde::{Deserialize, Serialize};

pub(crate) use by_dir::ByDir;
pub(crate) use error::{HAS_QUOTA, NAMED_IN_PART};
pub use error::{NodeError, NodeErrorKind, NodeResult};
pub use kind::{Affinity, NodeType, StorageClass};
pub use location::{LOCATION_BYTES_MAX, Location};
pub use names::{NAME_BYTES_MAX, PATH_BYTES_MAX, check_name, is_inside, split};

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
#[serde(try_from = "SaidBlock")]
pub struct BlockRef {
    /// The worker that has it.
    pub worker: u64,
    /// Unique within that worker.
    pub number: u64,
    /// Bytes.
    pub len: u32,
}

/// A block as somebody names it.
#[derive(Deserialize)]
struct SaidBlock {
    worker: u64,
    number: u64,
    len: u32,
}

impl TryFrom<SaidBlock> for BlockRef {
    type Error = Error;

    fn try_from(said: SaidBlock) -> Result<Self, Error> {
        let SaidBlock { worker, number, len } = said;
        if len == 0 || u64::from(len) > BLOCK_BYTES {
            return Err(Error::invalid(format!("a block has 1 byte to 1 MiB, not {len} bytes")));
        }
        Ok(Self { worker, number, len })
    }
}

/// How long a block that was written for a node is kept while no node has it. No worker gives one back earlier.
pub const UNCLAIMED_FOR: Duration = Duration::from_secs(300);
