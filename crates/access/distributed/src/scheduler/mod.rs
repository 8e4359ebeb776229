//! The scheduler process: Ballista's, with our order of tasks and our transfers.
//!
//! Owns: what of Ballista's is told to the books of [`forebay_jobs`], and done as they say. `gate` sees what executors say before Ballista does
//! (`words` has it in the books' words), `lost` does what is to be done when one is lost, `whole` looks whether a stage is about to read all
//! that was passed on; `policy` is what Ballista asks for tasks, `merged` which small partitions one of them has, `bind` its hand in Ballista's
//! books and the plans of tasks; `inputs` finds out what tasks read, `own_time` how long they computed, `shuffles` has a place in temporary nodes for
//! what is between a job's stages, `answers` tells people.

mod answers;
mod bind;
mod gate;
mod inputs;
mod lost;
mod merged;
mod own_time;
mod policy;
mod shuffles;
mod start;
mod watch;
mod whole;
mod words;

pub use start::{Scheduler, SchedulerSettings};

/// Ballista's scheduler, as it is run here.
type Server = ballista_scheduler::scheduler_server::SchedulerServer<
    datafusion_proto::protobuf::LogicalPlanNode,
    datafusion_proto::protobuf::PhysicalPlanNode,
>;
