//! Runs the decision code in a model of a cluster.

mod getafix;
mod mixapart;
mod shards;
mod trace;

use crate::cli::SimulateCommand;
use crate::exit::Outcome;

/// Runs a simulation; no cluster is needed.
pub(crate) fn run(command: SimulateCommand) -> Outcome {
    match command {
        SimulateCommand::Getafix(args) => getafix::run(&args),
        SimulateCommand::Mixapart(args) => mixapart::run(&args),
        SimulateCommand::Shards(args) => shards::run(&args),
    }
}
