//! Moves bytes: into the DRAM tier, out of it, and between it and the disk tier.

mod access;
mod arena;
mod block_fill;
mod disk;
mod disk_file;
mod disk_sums;
mod fill;
mod flush;
mod frames;
mod landing;
mod off_memory;
mod pool;
mod read;
mod sums;
mod write;

pub(crate) use access::{ReadPages, WritePages};
pub(crate) use arena::Arena;
pub(crate) use disk::Disk;
pub(crate) use flush::flush;
pub(crate) use landing::Landing;
pub(crate) use off_memory::{read as read_off_memory, write as write_off_memory};
pub(crate) use read::load;
pub use sums::pages_verify;
pub(crate) use sums::{SUMS_PER_PAGE, SumGroups, page_sum};

pub use access::Pinned;
pub use arena::ArenaHandle;
pub use block_fill::BlockFill;
pub use fill::Fill;
