//! What the tiers lie on: mapped memory, files, the index of what these hold, and whether the disk is worth a try.

mod arena;
mod disk_file;
mod disk_sums;
mod folder;
mod frames;
mod health;
mod index;
mod record;
mod sums;

pub(crate) use arena::Arena;
pub(crate) use disk_file::DiskFile;
pub(crate) use disk_sums::DiskSums;
pub(crate) use folder::Folder;
pub(crate) use health::{Direction, Health};
pub(crate) use index::{Index, Read as IndexRead, read as read_index};
pub(crate) use record::Record;
pub(crate) use sums::{SUMS_PER_PAGE, SumGroups, page_sum};

pub use arena::ArenaHandle;
pub use sums::pages_verify;
