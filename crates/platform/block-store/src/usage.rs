//! What the store tells of itself: where pages of a run are, how full the tiers are.

use forebay_types::{Owner, PageRun};

/// Which pages of a run are where, each list in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunState {
    /// In the DRAM tier.
    pub dram: Vec<PageRun>,
    /// In the disk tier, and not in DRAM.
    pub disk: Vec<PageRun>,
    /// In neither.
    pub missing: Vec<PageRun>,
}

/// How full the tiers are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The DRAM tier.
    pub dram: TierUsage,
    /// The disk tier; all 0 without one.
    pub disk: TierUsage,
    /// Segments of which anything is held.
    pub segments: u64,
    /// What is wrong, in words; empty when all is well.
    pub warnings: Vec<String>,
    /// Disks of the disk tier that are left out now, because they can't be used, or fail.
    pub disks_out: u64,
}

/// How a tier would do with more room: blocks that it let go, and had to take in again soon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Regret {
    /// Blocks that came back while they were remembered, since the start.
    pub returned: u64,
    /// Bytes of blocks that are remembered after they went: with so much more room those would have been there still.
    pub remembered_bytes: u64,
}

/// How full one tier is, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TierUsage {
    /// What it may take at most.
    pub capacity_bytes: u64,
    /// What it takes: pages, their checksums, and room promised to fills.
    pub used_bytes: u64,
    /// Of these, in blocks that are pinned by a reader or a fill.
    pub pinned_bytes: u64,
    /// Of these, kept by the administrator.
    pub kept_bytes: u64,
    /// Pages by owner; owners without any are there too.
    pub by_owner: Vec<(Owner, u64)>,
}

impl TierUsage {
    /// Both together.
    pub(crate) fn with(self, other: Self) -> Self {
        let owners = self.by_owner.iter().zip(&other.by_owner);
        Self {
            capacity_bytes: self.capacity_bytes + other.capacity_bytes,
            used_bytes: self.used_bytes + other.used_bytes,
            pinned_bytes: self.pinned_bytes + other.pinned_bytes,
            kept_bytes: self.kept_bytes + other.kept_bytes,
            by_owner: owners.map(|((owner, bytes), (_, more))| (*owner, bytes + more)).collect(),
        }
    }

    /// Bytes of one owner's pages.
    pub fn bytes_of(&self, owner: Owner) -> u64 {
        self.by_owner.iter().find(|(other, _)| *other == owner).map_or(0, |(_, bytes)| *bytes)
    }

    /// Bytes of pages that are no copies of shared storage.
    pub fn own_bytes(&self) -> u64 {
        self.by_owner.iter().filter(|(owner, _)| *owner != Owner::Cache).map(|(_, bytes)| bytes).sum()
    }
}
