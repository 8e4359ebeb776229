//! MixApart's workload on a cluster of this process: page views of some days, a SQL aggregate over a regular expression,
//! shared storage behind a link and a bound ("MixApart: Decoupled Analytics for Shared Storage Systems", section 4).

mod bars;
mod cluster;
mod pages;

pub use bars::{cold, locality, reuse, schedule, tpch};
