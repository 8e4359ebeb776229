//! When bytes are brought, and how much of shared storage's bandwidth each of those who bring them may take.
//!
//! Owns: the transfers and the task choices of jobs ([`Schedule`]), what a kind of job reads a second ([`IoRates`]), how many
//! tasks a bandwidth can feed ([`sustained_tasks`]), which small parts of a stage are one task ([`together()`]), which tasks are late and get a copy
//! ([`late`]), the split of a bandwidth bound ([`share_bound_by_need`]) and the bounded window in which a plan is prefetched ([`Window`]). Never does: I/O and clocks; callers say what happens and what was read.
//!
//! Rules are from "MixApart: Decoupled Analytics for Shared Storage Systems" (HotStorage'12); those of copies from the papers that their module names.

#![warn(unreachable_pub)]

mod copies;
mod jobs;
mod rate;
mod share;
mod together;
mod window;

pub use copies::{CopyRules, Pace, Runs, late};
pub use jobs::{
    Assignment, BlockRange, JobId, Policy, Schedule, ScheduleSettings, Source, TaskId, TaskInput, TaskSpec, Transfer,
    ahead_bytes_max, room_bytes,
};
pub use rate::{IO_RATE, IoRates, sustained_tasks};
pub use share::{Ahead, Need, share_bound_by_need};
pub use together::together;
pub use window::{PlannedRange, UNIT_BYTES_MAX, Window};
