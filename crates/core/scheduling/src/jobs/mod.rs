//! Jobs to transfers and task choices, together (MixApart, section 3).
//!
//! [`Schedule`] is told what happens and keeps who needs and who holds what (`books.rs`); from that it says which
//! transfers to start (`transfers.rs`) and which task a free slot gets (`tasks.rs`), both in one order of jobs
//! (`order.rs`, `turn.rs`), so that the next job's input is there when its tasks' turn comes. Each storage has a window of its own
//! (`storages.rs`). Large jobs come and go in steps (`steps.rs`).

mod books;
mod entries;
mod events;
mod fleet;
mod model;
mod order;
mod steps;
mod storages;
mod tasks;
#[cfg(test)]
mod tests;
mod transfers;
mod turn;

pub use books::Schedule;
pub use model::{
    Assignment, BlockRange, JobId, Policy, ScheduleSettings, Source, TaskId, TaskInput, TaskSpec, Transfer, ahead_bytes_max,
    room_bytes,
};

/// Tasks that a call takes in, and lets go, at most; a job of more is taken in and let go by several.
const STEP_TASKS: usize = 64;
/// Tasks that a call starts at most.
const STEP_STARTS: usize = 64;
/// Jobs, busiest workers and tasks of a job that are looked at, at most, for a task to take from elsewhere.
const LOOK_MAX: usize = 64;
