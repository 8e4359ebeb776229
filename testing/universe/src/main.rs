//! The real coordinator, workers, S3 gateway and clients in one thread and in simulated time, with faults, everything from one seed.
//!
//! Each world is a process of its own, so that nothing of one is left for another. A world that failed is run again with fewer
//! faults, until none of them can be left out.

mod options;
mod outside;
mod record;
mod shrink;
mod trace;
mod world;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use options::Options;

fn main() -> io::Result<ExitCode> {
    let options = Options::parse();
    if let Some(seed) = options.world { one(seed, &options) } else { shrink::many(&options) }
}

/// Runs one world, in this process.
fn one(seed: u64, options: &Options) -> io::Result<ExitCode> {
    if std::env::var_os("RUST_LOG").is_some() {
        let filter = tracing_subscriber::EnvFilter::from_default_env();
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).init();
    }
    #[cfg(feature = "planted")]
    for (name, defect) in forebay_runtime::Defect::ALL {
        if options.planted.as_deref() == Some(name) {
            forebay_runtime::plant(defect);
        }
    }
    let plan = options.plan(seed).without(&options.without);
    let tells = options.trace;
    // A thread that has done nothing yet.
    let outcome = std::thread::spawn(move || world::run(&plan, tells)).join();
    let outcome = outcome.map_err(|_| io::Error::other(format!("the world of seed {seed} ended by a defect of its own")))?;
    writeln!(io::stdout(), "{}", serde_json::to_string(&outcome)?)?;
    Ok(if outcome.violations > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
