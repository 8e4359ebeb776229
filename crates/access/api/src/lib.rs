//! What a cluster says of itself over HTTP: `/api/v1`, and the console that shows it.
//!
//! Owns: the JSON of status, segments and savings, which `--json` prints too; who may read it; and the pages of the console, which ask for
//! nothing else. Never does: change anything, nor know a cluster otherwise than by what it is handed.
//!
//! Start with [`router`]. The paths and their answers are in docs/api.md.

#![warn(unreachable_pub)]

mod console;
mod events;
mod placement;
mod readers;
mod router;
mod savings;
mod status;

pub use placement::Placement;
pub use readers::Readers;
pub use router::{Cluster, router};
pub use savings::{Price, Savings};
pub use status::{Status, state_name, storage_requests};
