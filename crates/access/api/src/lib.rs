//! What a process and its cluster say over HTTP: `/metrics`, `/healthz`, `/readyz`, the console, and `/api/v1`, with datasets of shards and SQL.
//!
//! Owns: the JSON of status, segments, savings and places of objects, which `--json` prints too; whether a process is ready; who may read what,
//! how much and how long; which loads there are; and the pages of the console. Never does: change anything but datasets of shards, nor know a
//! cluster otherwise than by what it is handed.
//!
//! Start with [`Http`], and with [`router`] for `/api/v1`. The paths and their answers are in docs/api.md and docs/operations.md.

#![warn(unreachable_pub)]

mod asking;
mod console;
mod describe;
mod doors;
mod events;
mod http;
mod jobs;
mod loads;
mod metrics;
mod nodes;
mod placement;
mod readers;
mod readiness;
mod refusal;
mod router;
mod savings;
mod shards;
mod sql;
mod status;
mod visitor;

pub use doors::Doors;
pub use http::{Http, HttpSettings};
pub use jobs::Scheduler;
pub use loads::{LoadAsked, LoadProgress, Loads, TellProgress};
pub use placement::{AskedWorker, Explained, ExplainedSegment, HeldThere, Placement};
pub use readers::Readers;
pub use readiness::Readiness;
pub use router::{Cluster, router};
pub use savings::{Price, Savings};
pub use shards::{Count, Workshop};
pub use sql::{ColumnOf, ReadSoFar, Statement, Statements};
pub use status::{Status, Token, state_name, storage_requests};
