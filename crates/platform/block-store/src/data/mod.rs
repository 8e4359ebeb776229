//! Moves bytes: into the DRAM tier, out of it, and between it and the disk tier.

mod block_fill;
mod fill;
mod flush;
mod off_memory;
mod read;
mod scrub;

pub(crate) use flush::flush;
pub(crate) use off_memory::{read as read_off_memory, write as write_off_memory};
pub(crate) use read::load;
pub(crate) use scrub::scrub;

pub use block_fill::BlockFill;
pub use fill::Fill;
pub use scrub::{ScrubCursor, ScrubStep};
