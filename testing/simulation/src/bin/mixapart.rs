//! Measures MixApart in simulation: `mixapart bars [NAME..]` prints a JSON line a bar, `mixapart figures FOLDER` draws.

use std::process::ExitCode;

use forebay_simulation::{MIXAPART_BARS, mixapart_bars, mixapart_figures, program};

fn main() -> ExitCode {
    program("mixapart", &MIXAPART_BARS, mixapart_bars, || Ok(mixapart_figures()))
}
