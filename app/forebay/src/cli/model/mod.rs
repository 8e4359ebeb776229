//! What is computed without a cluster: plans of given numbers, and simulations.

mod plan;
mod simulate;
mod trace;

pub(crate) use plan::{PlanCommand, PlanReplicasArgs, PlanShardsArgs, PlanTasksArgs};
pub(crate) use simulate::{DataScheduler, GetafixArgs, JobOrder, MixApartArgs, SimulateCommand, SimulateShardsArgs};
pub(crate) use trace::{TraceCommand, TraceConvertArgs};
