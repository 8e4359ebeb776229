//! Traces: those that others have published, and those of the running cluster.

mod convert;
mod names;
mod record;

use std::path::Path;

use crate::cli::TraceCommand;
use crate::exit::Outcome;
pub(crate) use record::run as record;

pub(crate) fn run(command: &TraceCommand) -> Outcome {
    match command {
        TraceCommand::Convert(args) => convert::run(args),
    }
}

/// Whether a file is the standard input or output.
fn is_dash(path: &Path) -> bool {
    path == Path::new("-")
}
