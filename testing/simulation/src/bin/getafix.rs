//! Measures Getafix in simulation: `getafix bars [NAME..]` prints a JSON line a bar, `getafix figures FOLDER` draws.

use std::process::ExitCode;

use forebay_simulation::{BARS, bars, figures, program};

/// Runs with different seeds that a figure is the middle of.
const SEEDS: u64 = 3;

fn main() -> ExitCode {
    program(
        "getafix",
        &BARS,
        |name| bars(name, SEEDS),
        || Ok(figures(SEEDS)?.into_iter().map(|(name, chart)| (name, chart.svg())).collect()),
    )
}
