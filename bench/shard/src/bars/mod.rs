//! One row of what shards must show a file.

mod at;
mod curves;
mod fill;
mod flat;
mod layers;
mod table;
mod threads;

pub(crate) use at::at;
pub(crate) use curves::curves;
pub(crate) use fill::fill;
pub(crate) use flat::flat;
pub(crate) use layers::layers;
pub(crate) use table::table;
pub(crate) use threads::threads;

use crate::subject::{Mix, Operations, Subject};
use crate::workload::{Records, Skew};

/// What every bar is measured on.
pub(crate) struct Bench {
    pub(crate) records: Records,
    pub(crate) subject: Subject,
    pub(crate) cpu_secs: f64,
    pub(crate) latency_ns: f64,
}

impl Bench {
    /// Operations of a skew, always the same.
    pub(crate) fn operations(&self, skew: Skew) -> Operations {
        Operations::new(&self.records, skew, 1)
    }

    /// What the shard counts under half gets, half searches.
    pub(crate) fn half_counters(&self) -> forebay_types::Result<forebay_shard::QueryCounters> {
        self.subject.counters(Mix::Half, &self.operations(Skew::Uniform))
    }
}
