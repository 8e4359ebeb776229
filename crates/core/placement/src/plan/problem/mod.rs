//! What a plan is made of: the snapshot, the settings, and the capacities that follow from both.

mod capacity;
mod settings;
mod snapshot;

pub(super) use capacity::capacities;
pub use settings::{Concurrency, PlanSettings, Policy};
pub use snapshot::{Holdings, SegmentDemand, Snapshot, WorkerRoom};
