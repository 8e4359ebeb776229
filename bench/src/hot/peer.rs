//! An engine of somebody else in a process of its own, which is asked by lines.

use std::process::Command;

use forebay_types::{Error, Result};
use serde::Deserialize;

use forebay_bench_harness::Served;

/// The process, which ends with this.
pub(super) struct Peer {
    served: Served,
    name: &'static str,
}

/// What it says of a query.
#[derive(Deserialize)]
pub(super) struct Answer {
    pub(super) rows: usize,
    pub(super) ms: f64,
}

impl Peer {
    pub(super) fn start(name: &'static str, command: Command) -> Result<Self> {
        Served::of(command).map(|(served, _)| Self { served, name })
    }

    pub(super) fn run(&mut self, query: &str) -> Result<Answer> {
        let statement = serde_json::to_string(query).map_err(|error| Error::internal(error.to_string()))?;
        let line = self.served.ask(&statement)?;
        serde_json::from_str(&line).map_err(|_| Error::internal(format!("{query}: {} says {line}", self.name)))
    }
}
