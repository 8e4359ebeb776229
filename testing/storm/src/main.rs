//! `make storm`: a line of JSON for each cell; fails when one of them does. `make soak`: a line for each minute, and one for all of it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use forebay_storm::cell::{self, Plan};
use forebay_storm::cells::{CELLS, Cell};
use forebay_storm::report::{Outcome, Report};
use forebay_storm::{soak, table};
use forebay_types::ByteSize;

/// Starts processes of the binary, puts a load on them, calls one fault at a time, and checks what clients were told.
#[derive(Debug, Parser)]
#[command(name = "forebay-storm")]
struct Options {
    /// The binary.
    #[arg(long, env = "FOREBAY_TEST_BINARY")]
    binary: PathBuf,
    /// The binary of another version, whose processes are replaced in cells of `rolling-upgrade`; without it they are
    /// started again, of the one binary.
    #[arg(long, env = "FOREBAY_TEST_OTHER_BINARY")]
    other_binary: Option<PathBuf>,
    /// What load and victim follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only this cell of the table; may be given more than once.
    #[arg(long, value_name = "CELL", value_parser = named)]
    only: Vec<Cell>,
    /// Only cells that docs/resilience.md says nothing of.
    #[arg(long, conflicts_with = "only")]
    missing: bool,
    /// How long the load of each cell is on, in seconds: a fifth of it before the fault, and 0.45 after its end.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(10..=7200))]
    seconds: u64,
    /// Instead of cells: one cluster under a mixed load, with a fault in each minute, and whether it grows.
    #[arg(long, conflicts_with_all = ["only", "missing"])]
    soak: bool,
    /// How long a soak is, in minutes. One of less than 110 says nothing of memory that it has seen for too short a time.
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=7200))]
    minutes: u64,
    /// What all processes of a soak may have together, with the pages of files that they use; needs root.
    #[arg(long, default_value = "1GiB")]
    memory: ByteSize,
    /// Writes the table into docs/resilience.md.
    #[arg(long)]
    write: bool,
    /// Where histories and logs of cells that fail are kept.
    #[arg(long, default_value = "target/storm")]
    evidence: PathBuf,
}

fn named(name: &str) -> Result<Cell, String> {
    Cell::named(name).ok_or_else(|| format!("one of {}", CELLS.iter().map(|cell| cell.name).collect::<Vec<_>>().join(", ")))
}

#[tokio::main(worker_threads = 2)]
async fn main() -> io::Result<ExitCode> {
    let options = Options::parse();
    let binary = std::path::absolute(&options.binary)?;
    let other = options.other_binary.as_ref().map(std::path::absolute).transpose()?;
    if let Some(binary) = [Some(&binary), other.as_ref()].into_iter().flatten().find(|binary| !binary.is_file()) {
        writeln!(io::stderr(), "{}: build it with cargo build --profile fast -p forebay", binary.display())?;
        return Ok(ExitCode::from(2));
    }
    // Where what came of it is written.
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/resilience.md");
    if options.soak {
        let (seed, minutes, memory, evidence) = (options.seed, options.minutes, options.memory, options.evidence);
        let tell = |round: &soak::Round| -> io::Result<()> { writeln!(io::stdout(), "{}", serde_json::to_string(round)?) };
        let verdict = soak::run(&soak::Plan { seed, minutes, memory, binary, evidence }, tell).await?;
        writeln!(io::stdout(), "{}", serde_json::to_string(&verdict)?)?;
        if options.write {
            soak::write(&page, &verdict)?;
        }
        return Ok(if verdict.outcome == Outcome::Passed { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let cells = match (options.missing, options.only.is_empty()) {
        (true, _) => table::missing(&page)?,
        (false, true) => CELLS.to_vec(),
        (false, false) => options.only.clone(),
    };
    let mut reports: Vec<Report> = Vec::new();
    for cell in cells {
        let (seed, load) = (options.seed, Duration::from_secs(options.seconds));
        let (binary, other, evidence) = (binary.clone(), other.clone(), options.evidence.clone());
        let report = cell::run(&Plan { cell, seed, load, binary, other, evidence }).await;
        writeln!(io::stdout(), "{}", serde_json::to_string(&report)?)?;
        reports.push(report);
        if options.write {
            // After each: what has been run is written whatever comes of the next.
            table::write(&page, &reports)?;
        }
    }
    let failed = reports.iter().any(|report| matches!(report.outcome, Outcome::Failed | Outcome::NotRun));
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
