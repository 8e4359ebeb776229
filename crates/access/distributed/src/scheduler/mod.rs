//! The scheduler process: Ballista's, with our order of tasks and our transfers.
//!
//! `gate` sees what executors say before Ballista does (`attempts` keeps back what would count twice), `lost` does what is to be
//! done when one is lost, `whole` looks whether a stage is about to read all that was passed on; `policy` is what Ballista asks for tasks, `merged` which small partitions one of them has, `bind` its hand in Ballista's books; `books` is who needs what
//! (over `core/scheduling`) and what is known of executors, which tasks run twice and whose word counts of both (`books/copies`), and keeps whole what a
//! decision that fails by a defect leaves (`books/deciding`), `input` is about what tasks read and the tiers that have it, `shuffles` has a place in temporary
//! nodes for what is between a job's stages, `tasks` notes when tasks ran, `answers` tells people.

mod answers;
mod attempts;
mod bind;
mod books;
mod gate;
mod input;
mod job;
mod lost;
mod merged;
mod policy;
mod shuffles;
mod start;
mod tasks;
mod watch;
mod whole;

pub(crate) use attempts::RUN_AGAIN;
pub(crate) use books::Books;
pub use start::{Scheduler, SchedulerSettings};

/// Ballista's scheduler, as it is run here.
type Server = ballista_scheduler::scheduler_server::SchedulerServer<
    datafusion_proto::protobuf::LogicalPlanNode,
    datafusion_proto::protobuf::PhysicalPlanNode,
>;
