//! DuckDB over the files of the table where they lie (`bench/peers/duckdb`).

use std::path::Path;
use std::process::Command;

use forebay_types::{Error, Result};

use crate::hot::peer::Peer;
use forebay_bench_harness::{cache, median};

pub(super) const NAME: &str = "DuckDB 1.5.5 over local files";

/// With as many threads as it takes by itself: one a processor, as the engine has.
pub(super) fn start(folder: &Path) -> Result<Peer> {
    let python = cache().join("duckdb/bin/python");
    if !python.exists() {
        return Err(Error::not_found(format!("{} is not there: make peers installs it", python.display())));
    }
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/duckdb/peer.py")).arg(std::path::absolute(folder)?);
    Peer::start("DuckDB", command)
}

/// The middle time of so many runs after one that fills its caches. `Internal` when its answer has another number of rows.
pub(super) fn median_ms(peer: &mut Peer, query: &str, rows: usize, runs: usize) -> Result<f64> {
    peer.run(query)?;
    let mut taken = Vec::with_capacity(runs);
    for _ in 0..runs {
        let answer = peer.run(query)?;
        if answer.rows != rows {
            return Err(Error::internal(format!("{query}: DuckDB has {} rows where there are {rows}", answer.rows)));
        }
        taken.push(answer.ms);
    }
    Ok(median(taken))
}
