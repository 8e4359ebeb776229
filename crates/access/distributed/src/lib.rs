//! SQL on many machines, run by Apache Ballista.
//!
//! Owns: the scheduler process, which gives tasks to executors as `core/scheduling` says and has their input brought to the
//! workers beside them; the executor process, which reads through the worker beside it; and the way of a planned query to
//! them, with the versions that it was planned with. Never does: plan SQL, keep bytes, decide who goes first.
//!
//! Start with [`Scheduler::start`] and [`Executor::start`] for the roles and with [`Cluster::connect`] for queries:
//! [`forebay_sql::Engine::over_cluster`] takes it.

mod actions;
mod at;
mod broken_off;
mod checked;
mod cluster;
mod codec;
mod compressed;
mod control;
mod executor;
mod ports;
mod scheduler;
mod settings;
mod shuffle;
mod stages;
mod travel;

pub use cluster::{Cluster, ClusterSettings};
pub use control::{ClusterState, SchedulerControl};
pub use executor::{Executor, ExecutorSettings};
pub use forebay_scheduling::{CopyRules, Policy};
pub use scheduler::{Scheduler, SchedulerSettings};
pub use shuffle::{Shuffle, ShuffleTimes};
