//! The DRAM and disk tiers of a worker.
//!
//! Owns: where pages of segments are in the tiers, how much of them there is and whose, what goes when room is needed,
//! and the moving of bytes between a fill, the DRAM tier and the disk tier. Every page has a checksum beside the data.
//! Never does: shared storage, sockets, or any decision about what should be fetched.
//!
//! Start with [`BlockStore`]. From the ground up: `table/` is what is known in memory of each segment, `books/` what of a tier
//! is taken and who goes next, `media/` memory and files, which `core/` puts together and decides on (admit, evict, pin, recover);
//! `data/` moves bytes. The bytes on disk are specified in `docs/specs/disk-tier.md`.

mod books;
mod core;
mod data;
mod lent;
mod media;
mod settings;
mod store;
mod table;
mod threads;
mod usage;

pub use crate::core::{Change, Pinned};
pub use data::{BlockFill, Fill, ScrubCursor, ScrubStep};
pub use lent::Lent;
pub use media::{ArenaHandle, pages_verify};
pub use settings::{DiskFolder, SegmentSpec, StoreSettings};
pub use store::BlockStore;
pub use usage::{Regret, RunState, TierUsage, Usage};
