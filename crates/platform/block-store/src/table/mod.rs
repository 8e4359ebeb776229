//! What is known in memory of the segments in the tiers: one compact entry a segment, sharded by its id.

mod claims;
mod copy;
mod landing;
mod page_bits;
mod pins;
mod presence;
mod segment;
mod shard;

pub(crate) use claims::{ClaimKind, Claims};
pub(crate) use copy::TierCopy;
pub(crate) use landing::Landing;
pub(crate) use page_bits::{PageBits, by_block};
pub(crate) use segment::{Segment, blocks_of};
pub(crate) use shard::{BlockRef, SegmentRef, Shard, Table};

/// One of the two tiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TierKind {
    Dram,
    Disk,
}

impl TierKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Dram => "DRAM",
            Self::Disk => "disk",
        }
    }

    pub fn other(self) -> Self {
        match self {
            Self::Dram => Self::Disk,
            Self::Disk => Self::Dram,
        }
    }
}

/// One of the disks that the disk tier is made of, by its place in their list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiskNo(pub u8);

/// Where pages are: what has books of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Dram,
    Disk(DiskNo),
}

impl Place {
    /// The tier that it is of.
    pub fn tier(self) -> TierKind {
        match self {
            Self::Dram => TierKind::Dram,
            Self::Disk(_) => TierKind::Disk,
        }
    }
}
