use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use forebay_types::parse_duration;

/// What to simulate.
#[derive(Subcommand)]
pub(crate) enum SimulateCommand {
    /// Replication, placement and routing by popularity, against the paper's own plan, Scarlett and uniform replication
    Getafix(GetafixArgs),
}

/// `simulate getafix`.
#[derive(Args)]
pub(crate) struct GetafixArgs {
    /// A scenario by name, or `list`; the other options change it
    #[arg(long, value_name = "NAME", default_value = "paper")]
    pub(crate) scenario: String,
    /// A recorded log of accesses instead of made-up queries: lines timestamp,path,bytes
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Ways to lead the cluster, separated by commas; getafix-N and uniform-N have N replicas [default: those that matter]
    #[arg(long, value_name = "WAYS", value_delimiter = ',')]
    pub(crate) ways: Vec<String>,
    /// Number of workers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) workers: Option<u32>,
    /// Segments at the start, of made-up queries
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000), conflicts_with = "trace")]
    pub(crate) segments: Option<u32>,
    /// Share of what the workers can serve that is asked for, above 0
    #[arg(long, value_name = "SHARE")]
    pub(crate) utilisation: Option<f64>,
    /// Zipf exponent of the age of what is asked for
    #[arg(long, value_name = "EXPONENT", conflicts_with = "trace")]
    pub(crate) zipf: Option<f64>,
    /// Number of clients; each knows the table and the queues by itself
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) clients: Option<u32>,
    /// Segments that a worker has room for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) room: Option<u32>,
    /// A counting period, and the time between plans
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) window: Option<Duration>,
    /// Time between two polls of the routing table by a client
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) poll: Option<Duration>,
    /// Length of a run in windows; the first fifth is left out of the figures
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(5..=100_000))]
    pub(crate) windows: Option<u32>,
    /// Runs that a figure is the middle of, with seeds from 1 on
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) seeds: u32,
    /// Write the figures to a file as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Draw storage against latency to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// One JSON object a way
    #[arg(long)]
    pub(crate) json: bool,
}
