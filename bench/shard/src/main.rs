//! Benchmarks of shards against what one would build instead: a JSON line a figure, the peers in the same run.

mod bars;
mod measure;
mod peers;
mod service;
mod simulated;
mod subject;
mod tantivy;
mod workload;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use forebay_types::Result;

use crate::bars::Bench;
use crate::subject::Subject;
use crate::workload::Records;

/// Figures of shards: TPC-H lineitem, one thread, operations a CPU-second; a JSON line each, with the bar that it is held to.
#[derive(Parser)]
#[command(name = "forebay-bench-shard")]
struct Cli {
    /// Bytes of values at least
    #[arg(long, global = true, default_value_t = 100_000_000)]
    values_bytes: usize,
    /// CPU-seconds of each measurement
    #[arg(long, global = true, default_value_t = 1.0)]
    cpu_secs: f64,
    /// Threads that build layers; all cores without it
    #[arg(long, global = true)]
    threads: Option<usize>,
    #[command(subcommand)]
    bar: BarCommand,
}

/// What to measure.
#[derive(Subcommand)]
enum BarCommand {
    /// Sizes, build, throughput at 0.35x, 0.48x and 0.55x, and against zstd blocks, hash map and inverted index
    Table,
    /// One setting of the dial: its layers and the throughput of each mix
    At {
        /// Stored bytes to those of the input
        #[arg(long, default_value_t = 0.69)]
        ratio: f64,
    },
    /// The dial's steps, and throughput over size for every mix and skew, drawn as SVG
    Curves {
        /// The folder of the pictures
        #[arg(long, default_value = "docs/shard")]
        out: PathBuf,
    },
    /// Substring search over flat text, beside reference figures of C++ Succinct
    Flat,
    /// Adding and dropping layers, with a reader that goes on
    Layers,
    /// Layers that queries fill on their way
    Fill,
    /// Two reader threads against one
    Threads,
    /// Searches beside Tantivy, which `make peers` builds: the same hits at equal stored bytes, a CPU-second and p50
    Tantivy {
        /// Rounds, in turns with the peer's; the middle one counts
        #[arg(long, default_value_t = 3)]
        rounds: usize,
    },
    /// What navigation does in simulation, on the curve of BlowFish's paper
    Simulated,
    /// What weighing all uses of one memory is worth in simulation, the mix of them swapped on the way
    Budget,
    /// Shards as a cluster serves them, each role a process of its own
    Service(service::Service),
    #[command(flatten)]
    Role(service::Role),
    /// All of the above but the cluster, the simulations and Tantivy
    All {
        /// The folder of the pictures
        #[arg(long, default_value = "docs/shard")]
        out: PathBuf,
    },
}

fn main() -> ExitCode {
    forebay_bench_harness::exit("forebay-bench-shard", run(Cli::parse()).map(|()| true))
}

fn run(cli: Cli) -> Result<()> {
    match cli.bar {
        BarCommand::Service(service) => service::measure(&service, cli.values_bytes),
        BarCommand::Role(role) => role.run(),
        BarCommand::Simulated => simulated::figures(),
        BarCommand::Budget => simulated::budget_figures(),
        BarCommand::Tantivy { rounds } => {
            let measure = tantivy::Measure { threads: threads(&cli), cpu_secs: cli.cpu_secs, rounds };
            tantivy::figures(&Records::lineitem(cli.values_bytes), &measure)
        }
        _ => measure(&cli),
    }
}

fn threads(cli: &Cli) -> usize {
    cli.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

fn measure(cli: &Cli) -> Result<()> {
    let latency_ns = measure::random_read_ns();
    let records = Records::lineitem(cli.values_bytes);
    if let BarCommand::Flat = cli.bar {
        return bars::flat(&records, cli.cpu_secs);
    }
    let subject = Subject::build(&records, threads(cli))?;
    let bench = Bench { records, subject, cpu_secs: cli.cpu_secs, latency_ns };
    match &cli.bar {
        BarCommand::Table => bars::table(&bench),
        BarCommand::At { ratio } => bars::at(&bench, *ratio),
        BarCommand::Curves { out } => bars::curves(&bench, out),
        BarCommand::Layers => bars::layers(&bench),
        BarCommand::Fill => bars::fill(&bench),
        BarCommand::Threads => bars::threads(&bench),
        BarCommand::Service(_)
        | BarCommand::Role(_)
        | BarCommand::Simulated
        | BarCommand::Budget
        | BarCommand::Tantivy { .. }
        | BarCommand::Flat => {
            unreachable!("they have no shard of records at hand")
        }
        BarCommand::All { out } => {
            bars::flat(&bench.records, bench.cpu_secs)?;
            bars::table(&bench)?;
            bars::layers(&bench)?;
            bars::fill(&bench)?;
            bars::threads(&bench)?;
            bars::curves(&bench, out)
        }
    }
}
