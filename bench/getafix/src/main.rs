//! `forebay-bench-getafix worked|replicas|scale|live|policies [SEED]`: the paper's worked examples, the planner's figures and those of live
//! clusters, one JSON object a line.
#![expect(clippy::print_stdout, reason = "its output is the figures")]

use std::process::ExitCode;
use std::time::Duration;

use forebay_bench_getafix::{LiveFigure, LiveSettings};
use forebay_types::Result;
use serde::Serialize;

/// Instances of each of the ten kinds.
const INSTANCES: usize = 60;
/// Segments up to which the optimum is searched for.
const SEARCH_MAX: usize = 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let seed = arguments.get(1).map_or(Ok(1), |seed| seed.parse());
    match (arguments.first().map(String::as_str), seed) {
        (Some("worked"), Ok(_)) => print(&forebay_bench_getafix::worked()),
        (Some("replicas"), Ok(seed)) => print(&forebay_bench_getafix::replicas(INSTANCES, SEARCH_MAX, seed)),
        (Some("scale"), Ok(seed)) => print(&forebay_bench_getafix::scale(seed)),
        (Some("live"), Ok(seed)) => live(seed, arguments.get(2), arguments.get(3)),
        (Some("policies"), Ok(seed)) => run(forebay_bench_getafix::policies(seed)),
        _ => {
            eprintln!("use: forebay-bench-getafix worked|replicas|scale|policies|live [SEED [MB_PER_SEC [WINDOW_SECS]]]");
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

fn live(seed: u64, megabytes: Option<&String>, window_secs: Option<&String>) -> ExitCode {
    let number = |text: Option<&String>| text.and_then(|text| text.parse::<u64>().ok());
    let mut settings = LiveSettings { seed, ..LiveSettings::default() };
    if let Some(rate) = number(megabytes) {
        settings.serve_bytes_per_sec = rate * 1_000_000;
    }
    if let Some(secs) = number(window_secs) {
        settings.window = Duration::from_secs(secs);
    }
    run(forebay_bench_getafix::live(settings))
}

fn run(figures: impl Future<Output = Result<Vec<LiveFigure>>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(forebay_types::Error::from);
    match runtime.and_then(|runtime| runtime.block_on(figures)) {
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
