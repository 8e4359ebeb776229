//! Measures MixApart in simulation: `mixapart bars [NAME..]` prints a JSON line a bar, `mixapart figures FOLDER [NAME..]` draws.

use std::process::ExitCode;

use forebay_simulation::{MIXAPART_BARS, MIXAPART_FIGURES, mixapart_bars, mixapart_figure, program};

fn main() -> ExitCode {
    program("mixapart", (&MIXAPART_BARS, mixapart_bars), (&MIXAPART_FIGURES, mixapart_figure))
}
