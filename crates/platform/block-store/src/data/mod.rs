//! Moves bytes: into the DRAM tier, out of it, and between it and the disk tier.

mod access;
mod arena;
mod fill;
mod landing;
mod sums;

pub(crate) use access::{ReadPages, WritePages};
pub(crate) use arena::Arena;
pub(crate) use landing::Landing;
pub(crate) use sums::{SUMS_PER_PAGE, SumGroups, page_sum};

pub use access::Pinned;
pub use arena::ArenaHandle;
pub use fill::Fill;
