//! Runs the decision code in a model of a cluster.

mod getafix;
mod mixapart;
mod shards;

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::Path;

use forebay_simulation::Recorded;
use forebay_types::{Result, ResultExt};
use serde::Serialize;

use crate::cli::SimulateCommand;
use crate::exit::Outcome;
use crate::output::list;

/// A scenario of a list.
#[derive(Serialize)]
struct Listed {
    scenario: &'static str,
    what: &'static str,
}

/// Runs a simulation; no cluster is needed.
pub(crate) fn run(command: SimulateCommand) -> Outcome {
    match command {
        SimulateCommand::Getafix(args) => getafix::run(&args),
        SimulateCommand::Mixapart(args) => mixapart::run(&args),
        SimulateCommand::Shards(args) => shards::run(&args),
    }
}

fn list_scenarios(json: bool, all: &[(&'static str, &'static str)]) -> Outcome {
    let rows: Vec<Listed> = all.iter().map(|&(scenario, what)| Listed { scenario, what }).collect();
    list(json, &rows, &["scenario", "what"], &[], |row| vec![row.scenario.into(), row.what.into()])
}

/// Writes a file where one is asked for.
fn write(file: Option<&Path>, text: impl FnOnce() -> String) -> Result<()> {
    if let Some(file) = file { fs::write(file, text()).context(|| format!("can't write {}", file.display())) } else { Ok(()) }
}

/// A trace or a log of accesses, for `--trace` of the models; - for the standard input.
fn recorded(file: &Path) -> Result<Recorded> {
    let recorded = || -> Result<Recorded> {
        match file == Path::new("-") {
            true => Recorded::read(io::stdin().lock()),
            false => Recorded::read(BufReader::new(File::open(file)?)),
        }
    };
    recorded().context(|| file.display().to_string())
}
