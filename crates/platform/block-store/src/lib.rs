//! The DRAM and disk tiers of a worker.
//!
//! Owns: where pages of segments are in the tiers, how much of them there is and whose, what goes when room is needed,
//! and the moving of bytes between a fill, the DRAM tier and the disk tier. Every page has a checksum beside the data.
//! Never does: shared storage, sockets, or any decision about what should be fetched.
//!
//! Start with [`BlockStore`]. `control/` decides (allocate, admit, evict, recover), `data/` moves bytes, `table/` is
//! what is known in memory of each segment. The bytes on disk are specified in `docs/specs/disk-tier.md`.

mod control;
mod core;
mod data;
mod lent;
mod settings;
mod store;
mod table;
mod threads;
mod usage;

pub use control::{ScrubCursor, ScrubStep};
pub use data::{ArenaHandle, BlockFill, Fill, Pinned, pages_verify};
pub use lent::Lent;
pub use settings::{SegmentSpec, StoreSettings};
pub use store::BlockStore;
pub use usage::{HeldBytes, Regret, RunState, TierUsage, Usage};
