//! A world: hosts, what runs on them, what goes wrong, and the time that they share.

mod course;
mod disks;
mod faults;
mod gateway;
mod host;
mod hosts;
mod load;
mod of_queries;
mod plan;
mod queries;
mod rest;
mod run;
mod tally;
mod what;
mod wrong;

pub(crate) use plan::Plan;
pub(crate) use run::run;
