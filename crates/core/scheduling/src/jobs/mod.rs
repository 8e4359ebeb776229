//! Jobs to transfers and task choices, together (MixApart, section 3).
//!
//! [`Schedule`] is told what happens and keeps who needs and who holds what (`books.rs`); from that it says which
//! transfers to start (`transfers.rs`) and which task a free slot gets (`tasks.rs`), both in one order of jobs
//! (`order.rs`), so that the next job's input is there when its tasks' turn comes.

mod books;
mod entries;
mod events;
mod model;
mod order;
mod tasks;
#[cfg(test)]
mod tests;
mod transfers;

pub use books::Schedule;
pub use model::{Assignment, BlockRange, JobId, Policy, ScheduleSettings, Source, TaskId, TaskInput, TaskSpec, Transfer};
