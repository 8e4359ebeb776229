//! Where `--trace` of the models is read.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use forebay_simulation::Recorded;
use forebay_types::{Result, ResultExt};

/// A trace or a log of accesses; - for the standard input.
pub(super) fn read(file: &Path) -> Result<Recorded> {
    let recorded = || -> Result<Recorded> {
        match file == Path::new("-") {
            true => Recorded::read(io::stdin().lock()),
            false => Recorded::read(BufReader::new(File::open(file)?)),
        }
    };
    recorded().context(|| file.display().to_string())
}
