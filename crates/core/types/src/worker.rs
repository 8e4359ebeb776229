//! Identities of those who ask and serve: worker, host, operation, and the owner of a piece of a tier.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A worker, by a random number that it makes at its first start and keeps in its data folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkerId(pub u64);

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "w{:016x}", self.0)
    }
}

/// A host, so that a client knows a worker beside it: the machine's boot id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HostId(pub String);

/// One job, query or client call; every read carries it, and popularity counts a segment once an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OperationId(pub u64);

/// Whom an allocation in a tier is accounted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Owner {
    /// The cache of shared storage.
    Cache,
    /// The temporary namespace.
    Temporary,
    /// Shards.
    Shard,
    /// Columns in the table form, made from what the cache holds. In DRAM only: from a disk the raw form scans faster.
    Form,
}
