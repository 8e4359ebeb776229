//! Measures Getafix in simulation: `getafix bars [NAME..]` prints a JSON line a bar, `getafix figures FOLDER [NAME..]` draws.

use std::process::ExitCode;

use forebay_simulation::{BARS, FIGURES, Picture, bars, figure, program};

/// Runs with different seeds that a figure is the middle of.
const SEEDS: u64 = 3;

fn main() -> ExitCode {
    program("getafix", (&BARS, |name: &str| bars(name, SEEDS)), (&FIGURES, |name: &str| figure(name, SEEDS).map(Picture::from)))
}
