//! The figures that MixApart has to reach in simulation.

mod decisions;
mod jobs;
mod late;

pub(super) use jobs::{KINDS, ONE_BANDWIDTH, crossing_at, loaded, over_a_set, panel};

use forebay_types::{Error, Result};
use serde::Serialize;

/// The groups of bars by name, and what each is about.
pub const MIXAPART_BARS: [(&str, &str); 11] = [
    ("example", "parallel tasks sustained against the capacity model: 20 s tasks of 64 MB, reuse 0.8, 10 Gbit/s (figure 1)"),
    ("decisions", "time of a scheduling event at 10,000 workers and 100,000 queued tasks"),
    ("ingest", "a cold job against ingest, then compute, where both take as long (figure 3a)"),
    ("reuse", "bandwidth of (1 - reuse) x the scan rate against all data local (figures 3b and 3c)"),
    ("crossing", "the least reuse at which a job behind one bandwidth takes as long as with all data local (figures 3b and 3c)"),
    ("onoff", "input brought ahead against fetched by the tasks"),
    ("locality", "tasks that ran where most of their input was or was arriving"),
    (
        "evictions",
        "blocks brought ahead that were evicted before a task read them, in memory of 1.2, 1.0 and 0.8 times the working set",
    ),
    (
        "storage",
        "memory for the working set once against memory for three copies of it, as a file system of the workers' own would have",
    ),
    ("fair", "two jobs under Fair, one ten times larger"),
    ("fifo", "a late job of high priority under FIFO"),
];

/// A figure and what it has to be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MixApartBar {
    /// The group.
    pub bar: &'static str,
    /// What is measured, and where.
    pub what: String,
    /// Ours.
    pub figure: f64,
    /// What it has to be at most, or at least.
    pub limit: f64,
    /// Whether it is.
    pub met: bool,
    /// What the figure is made of.
    pub detail: String,
}

impl MixApartBar {
    fn at_most(limit: f64, figure: f64, what: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { bar: "", what: what.into(), figure, limit, met: figure <= limit, detail: detail.into() }
    }

    fn at_least(limit: f64, figure: f64, what: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { met: figure >= limit, ..Self::at_most(limit, figure, what, detail) }
    }
}

/// Measures a group of bars. All but `decisions`, which measures time, give the same on every machine.
pub fn mixapart_bars(name: &str) -> Result<Vec<MixApartBar>> {
    let Some((name, _)) = MIXAPART_BARS.iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = MIXAPART_BARS.iter().map(|(name, _)| *name).collect();
        return Err(Error::invalid(format!("{name:?} is no bar: use {}", names.join(", "))));
    };
    let bars = match *name {
        "example" => jobs::example(),
        "decisions" => decisions::bars(),
        "ingest" => jobs::ingest(),
        "reuse" => jobs::reuse(),
        "crossing" => jobs::crossing(),
        "onoff" => jobs::on_off(),
        "locality" => jobs::locality(),
        "evictions" => jobs::evictions(),
        "storage" => jobs::storage(),
        "fair" => jobs::fair(),
        _ => late::bars(),
    };
    Ok(bars.into_iter().map(|bar| MixApartBar { bar: name, ..bar }).collect())
}
