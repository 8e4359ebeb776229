//! How many replicas each segment has in the next window, and on which workers.
//!
//! The `problem` is a snapshot of demands, workers and who holds what. `planner` has the order of the phases, each of which works
//! on a `packing`: `fit`, `sticky` or a `baseline` places segments, `repack` and `forest` take back splits, `matching` gives the
//! bags to the workers that hold most of them, `copies` adds what safety asks for. `outcome` is what comes out, and
//! `postconditions` what must hold of it. What plans are for, in which order, stands in this crate's README.md.

mod baseline;
mod bound;
mod budget;
mod copies;
mod crowded;
mod dice;
mod fit;
mod forest;
mod matching;
mod neighbours;
mod outcome;
mod packing;
mod planner;
mod postconditions;
mod problem;
mod repack;
mod sticky;

pub use outcome::{Plan, Reason, Share, Unsatisfied};
pub use packing::Piece;
pub use planner::plan;
pub use problem::{Concurrency, Holdings, PlanSettings, Policy, SegmentDemand, Snapshot, WorkerRoom};
