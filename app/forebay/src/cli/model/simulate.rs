//! Flags of `forebay simulate`: scenarios, and what of them can be changed.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use forebay_types::{BitRate, ByteSize, parse_duration};

/// What to simulate.
#[derive(Subcommand)]
pub(crate) enum SimulateCommand {
    /// Replication, placement and routing by popularity, against the paper's own plan, Scarlett and uniform replication
    Getafix(GetafixArgs),
    /// Transfers and tasks of jobs over data behind a link of shared storage
    Mixapart(MixApartArgs),
    /// Shards under load: queues, and layers that come and go with them
    Shards(SimulateShardsArgs),
}

#[derive(Args)]
pub(crate) struct SimulateShardsArgs {
    /// A scenario by name, `skew`, `repair`, or `list`
    #[arg(long, value_name = "NAME", default_value = "uniform")]
    pub(crate) scenario: String,
    /// How clients choose among replicas: two-choices, or join-shortest as in the paper
    #[arg(long, value_name = "WAY", default_value = "two-choices")]
    pub(crate) routing: String,
    /// Shards of the scenario `skew`, with the same storage led in different ways
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(crate) shards: u32,
    /// What arrivals are drawn from: the same seed gives the same run
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write the curves to a file as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Draw them to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// The run as a JSON object, with every move and why
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct MixApartArgs {
    /// A recorded or converted trace instead of jobs that are drawn: each of its operations is a job, with a task for each segment that it
    /// reads, cached if an earlier one has read it; - for the standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["reuse", "working_set", "job_tasks", "load", "duration", "csv", "plot"])]
    pub(crate) trace: Option<PathBuf>,
    /// Number of workers
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) workers: u32,
    /// Tasks that a worker runs at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) slots: u32,
    /// Bandwidth of shared storage
    #[arg(long, value_name = "RATE", default_value = "10Gbit")]
    pub(crate) bandwidth: BitRate,
    /// Shares of the tasks whose input is cached when their job arrives, separated by commas; each from 0 to 1
    #[arg(long, value_name = "SHARES", value_delimiter = ',', default_value = "0.2,0.4,0.6,0.8")]
    pub(crate) reuse: Vec<f64>,
    /// Size of a set that all jobs read, in tiers with bounds: what is cached is what these have kept of it. Else each job has data of its own
    #[arg(long, value_name = "SIZE", conflicts_with = "reuse")]
    pub(crate) working_set: Option<ByteSize>,
    /// Sizes of all workers' memory together, as shares of the working set, separated by commas; a run for each
    #[arg(long, value_name = "SHARES", value_delimiter = ',', default_value = "1.2,1.0,0.8", requires = "working_set")]
    pub(crate) tier: Vec<f64>,
    /// Size of all workers' disks together, as a share of the working set; 0 for none
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, requires = "working_set")]
    pub(crate) disk_tier: f64,
    /// What a worker's disk reads a second
    #[arg(long, value_name = "RATE", default_value = "8Gbit", requires = "working_set")]
    pub(crate) disk_bandwidth: BitRate,
    /// By how much a task may take less or more than its time, as a share of that, below 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) spread: f64,
    /// How long tasks compute, separated by commas; each job has one of these
    #[arg(long, value_name = "DURATIONS", value_delimiter = ',', default_value = "20s", value_parser = parse_duration)]
    pub(crate) task: Vec<Duration>,
    /// What a task reads
    #[arg(long, value_name = "SIZE", default_value = "64MB")]
    pub(crate) task_bytes: ByteSize,
    /// Tasks of a job at most; sizes are drawn from the bins of jobs at Facebook, 1 to 4800 tasks
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=4800))]
    pub(crate) job_tasks: u32,
    /// Tasks that arrive, as a share of what slots and bandwidth sustain
    #[arg(long, value_name = "SHARE", default_value_t = 0.7)]
    pub(crate) load: f64,
    /// The order of jobs
    #[arg(long, value_enum, default_value_t = JobOrder::Fifo)]
    pub(crate) policy: JobOrder,
    /// Whether input is brought ahead of the tasks; else tasks fetch it when they start
    #[arg(long, value_enum, default_value_t = DataScheduler::Both)]
    pub(crate) data_scheduler: DataScheduler,
    /// Length of a run in simulated time; the first quarter is left out of the figures
    #[arg(long, value_name = "DURATION", default_value = "20m", value_parser = parse_duration)]
    pub(crate) duration: Duration,
    /// What jobs and places of cached input are drawn from: the same seed gives the same run
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write the figures to a file as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Draw the mean time of a job by reuse to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// One JSON object a run
    #[arg(long)]
    pub(crate) json: bool,
}

/// The order in which jobs are served.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum JobOrder {
    /// By priority and arrival
    Fifo,
    /// Equal shares
    Fair,
}

/// Whether the data scheduler is on.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum DataScheduler {
    /// On
    On,
    /// Off
    Off,
    /// A run with it and one without
    Both,
}

#[derive(Args)]
pub(crate) struct GetafixArgs {
    /// A scenario by name, or `list`; the other options change it
    #[arg(long, value_name = "NAME", default_value = "paper")]
    pub(crate) scenario: String,
    /// A recorded or converted trace instead of made-up queries, or a log of accesses: lines timestamp,path,bytes; - for the standard input
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
    /// Instead of polls: how old the routing tables of all clients are
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with = "poll")]
    pub(crate) table_age: Option<Duration>,
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
    /// Draw to a file how the trace's reads fall on segments by popularity and by age
    #[arg(long, value_name = "FILE", requires = "trace")]
    pub(crate) skew: Option<PathBuf>,
    /// One JSON object a way
    #[arg(long)]
    pub(crate) json: bool,
}
