//! MixApart's workload on a cluster of this process: page views of some days, a SQL aggregate over a regular expression,
//! shared storage behind a link and a bound ("MixApart: Decoupled Analytics for Shared Storage Systems", section 4).

mod bed;
mod figure3;
mod jobs;
mod pages;
mod tpch;
mod views;

pub use figure3::{cold, cpu_reuse, io_reuse, locality, schedule};
pub use jobs::{fair, fifo, traffic};
pub use tpch::tpch;

fn cores() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64)
}
