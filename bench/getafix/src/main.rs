//! `forebay-bench-getafix replicas|scale [SEED]`: the planner's figures, one JSON object a line.
#![expect(clippy::print_stdout, reason = "its output is the figures")]

use std::process::ExitCode;

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
        _ => {
            eprintln!("use: forebay-bench-getafix replicas|scale [SEED]");
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
