//! `forebay-bench-getafix replicas|scale|live|versus|slow [SEED]`: the planner's figures and those of live clusters, one JSON object a
//! line.
#![expect(clippy::print_stdout, reason = "its output is the figures")]

use std::process::ExitCode;
use std::time::Duration;

use forebay_bench_getafix::{LiveFigure, LiveSettings};
use forebay_types::{Error, Result};
use serde::Serialize;

/// Instances of each of the ten kinds.
const INSTANCES: usize = 60;
/// Segments up to which the optimum is searched for.
const SEARCH_MAX: usize = 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let seed = arguments.get(1).map_or(Ok(1), |seed| seed.parse());
    match (arguments.first().map(String::as_str), seed) {
        (Some("replicas"), Ok(seed)) => print(&forebay_bench_getafix::replicas(INSTANCES, SEARCH_MAX, seed)),
        (Some("scale"), Ok(seed)) => print(&forebay_bench_getafix::scale(seed)),
        (Some("live"), Ok(seed)) => live(seed, arguments.get(2), arguments.get(3)),
        (Some("versus"), Ok(seed)) => show(forebay_bench_getafix::versus(in_windows(seed, arguments.get(2)))),
        (Some("slow"), Ok(seed)) => show(forebay_bench_getafix::slow(in_windows(seed, arguments.get(2)))),
        _ => {
            eprintln!(
                "use: forebay-bench-getafix replicas|scale [SEED], live [SEED [MB_PER_SEC [WINDOW_SECS]]] or versus|slow [SEED [WINDOW_SECS]]"
            );
            ExitCode::from(2)
        }
    }
}

fn print(figures: &[impl Serialize]) -> ExitCode {
    for figure in figures {
        match serde_json::to_string(figure) {
            Ok(line) => println!("{line}"),
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn number(text: Option<&String>) -> Option<u64> {
    text.and_then(|text| text.parse().ok())
}

fn in_windows(seed: u64, window_secs: Option<&String>) -> LiveSettings {
    let mut settings = LiveSettings { seed, ..LiveSettings::default() };
    if let Some(secs) = number(window_secs) {
        settings.window = Duration::from_secs(secs);
    }
    settings
}

fn live(seed: u64, megabytes: Option<&String>, window_secs: Option<&String>) -> ExitCode {
    let mut settings = in_windows(seed, window_secs);
    if let Some(rate) = number(megabytes) {
        settings.serve_bytes_per_sec = rate * 1_000_000;
    }
    show(forebay_bench_getafix::live(settings))
}

fn show(measured: impl Future<Output = Result<Vec<LiveFigure>>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Error::from);
    match runtime.and_then(|runtime| runtime.block_on(measured)) {
        Ok(figures) if figures.iter().all(|figure| figure.met) => print(&figures),
        Ok(figures) => {
            print(&figures);
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("forebay-bench-getafix: {error}");
            ExitCode::FAILURE
        }
    }
}
