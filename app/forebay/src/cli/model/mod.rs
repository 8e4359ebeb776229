//! What is computed without a cluster: plans of given numbers, and simulations.

mod plan;
mod simulate;

pub(crate) use plan::{PlanCommand, PlanReplicasArgs, PlanShardsArgs, PlanTasksArgs};
pub(crate) use simulate::{DataScheduler, GetafixArgs, JobOrder, MixApartArgs, SimulateCommand, SimulateShardsArgs};
