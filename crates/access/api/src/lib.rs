//! A cluster over HTTP: `/api/v1`, with what it says of itself and its datasets of shards, and the console that shows the former.
//!
//! Owns: the JSON of status, segments and savings, which `--json` prints too; who may read what, how much and how long; and the pages of
//! the console. Never does: change anything, nor know a cluster otherwise than by what it is handed.
//!
//! Start with [`router`]. The paths and their answers are in docs/api.md.

#![warn(unreachable_pub)]

mod console;
mod describe;
mod events;
mod placement;
mod readers;
mod refusal;
mod router;
mod savings;
mod shards;
mod status;

pub use placement::Placement;
pub use readers::Readers;
pub use router::{Cluster, router};
pub use savings::{Price, Savings};
pub use shards::Count;
pub use status::{Status, state_name, storage_requests};
