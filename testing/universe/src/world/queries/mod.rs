//! Schedulers, executors and queries of a world. The books, the schedule, the transfers and which scheduler serves are those of
//! `access/jobs`, as they run in production; Ballista and DataFusion are stand-ins.
//!
//! Owns: the engine's side of a job (`graph`), a scheduler (`scheduler`, its questions in `polls`), an executor (`executor`), and what they
//! say (`says`) over simulated connections (`wire`). Never does: decide which task goes where, what counts, what is brought. Start with
//! [`scheduler()`] and [`executor()`].

mod executor;
mod graph;
mod polls;
mod says;
mod scheduler;
mod wire;

pub(super) use executor::executor;
pub(super) use says::{Ended, Fetch, OfScheduler, Piece, Query, Row, ToScheduler};
pub(super) use scheduler::scheduler;
pub(super) use wire::ask;

/// Where a scheduler listens.
pub(super) fn scheduler_address(number: usize) -> String {
    format!("scheduler{number}:7500")
}

fn executor_address(number: usize) -> String {
    format!("executor{number}:7600")
}
