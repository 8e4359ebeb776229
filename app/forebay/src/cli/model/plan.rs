//! Flags of `forebay plan`: demand and workers that are given, and what the decision is asked about them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use forebay_placement::Policy;
use forebay_types::{BitRate, ByteSize, parse_duration};

/// What to plan.
#[derive(Subcommand)]
pub(crate) enum PlanCommand {
    /// Say how many replicas segments would have, on which workers, and how reads would be routed; nothing is changed
    Replicas(PlanReplicasArgs),
    /// Say how many parallel tasks shared storage can feed
    Tasks(PlanTasksArgs),
    /// Say which layers a worker would give to its shards, period by period and why, by queues that are given; nothing is changed
    Shards(PlanShardsArgs),
}

#[derive(Args)]
pub(crate) struct PlanShardsArgs {
    /// A worker: {"room": "8GiB", "replicas": [{"shard": "orders/0", "levels": [{"bytes": "300MiB", "us": 2000}, ..], "start": 0,
    /// "level": 0, "queue": [0, 40, ..], "arrived": [100, 300, ..]}, ..]}; levels rise from the base with what a request takes at
    /// each, queue and arrived have a number a period; - for the standard input. With "cache": {"most": "4GiB", "saves_us": [0.5, ..]}
    /// it lends them room while a MiB of it saves less, in microseconds a second; with "pin": 3 a replica comes to that level and stays
    /// above, with "frozen": true it stays as it is
    #[arg(value_name = "FILE")]
    pub(crate) worker: PathBuf,
    /// Time between two plans
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub(crate) period: Duration,
    /// What a request should wait at most
    #[arg(long, value_name = "DURATION", default_value = "50ms", value_parser = parse_duration)]
    pub(crate) target: Duration,
    /// One JSON object a replica and period
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct PlanTasksArgs {
    /// Share of the tasks' input that is in the cache already, from 0 to 1
    #[arg(long, value_name = "SHARE")]
    pub(crate) reuse: f64,
    /// How long a task runs
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) task: Duration,
    /// Bandwidth of shared storage
    #[arg(long, value_name = "RATE")]
    pub(crate) bandwidth: BitRate,
    /// What a task reads
    #[arg(long, value_name = "SIZE", default_value = "64MB")]
    pub(crate) task_bytes: ByteSize,
    /// Draw parallel tasks by reuse, for several durations of a task, to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(group = clap::ArgGroup::new("demand").required(true))]
pub(crate) struct PlanReplicasArgs {
    /// Accesses a window by segment: {"segment id": count, ..}; - for the standard input
    #[arg(long, value_name = "FILE", group = "demand")]
    pub(crate) counts: Option<PathBuf>,
    /// A recorded or converted trace instead, or an access log: CSV of timestamp (seconds since 1970 or RFC 3339), path, bytes; older
    /// windows count less; - for the standard input
    #[arg(long, value_name = "FILE", group = "demand")]
    pub(crate) from_log: Option<PathBuf>,
    /// Workers; they are called 0, 1, ..
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), required_unless_present = "workers_file")]
    pub(crate) workers: Option<u32>,
    /// Unequal workers instead: [{"speed": 1, "bytes": "64GiB", "domain": "rack-1", "capacity": 100}, ..], all optional; speed is
    /// accesses served a second in any unit, capacity accesses a window, exactly; - for the standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workers", "capacity", "worker_bytes"])]
    pub(crate) workers_file: Option<PathBuf>,
    /// Accesses a window that a worker takes, exactly; without it, each takes its share and the slack
    #[arg(long, value_name = "ACCESSES", value_parser = clap::value_parser!(u64).range(1..=1 << 53))]
    pub(crate) capacity: Option<u64>,
    /// getafix, getafix-paper, first-fit, largest-fit, best-fit, repack, uniform or scarlett
    /// [default: getafix; with --capacity: repack, the fewest replicas]
    #[arg(long)]
    pub(crate) policy: Option<Policy>,
    /// Share of capacity beyond the average that getafix may use, so that fewer segments are split
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, conflicts_with = "capacity")]
    pub(crate) slack: f64,
    /// Bytes that replicas may take, as a multiple of one replica of every segment: what getafix leaves of it goes to replicas
    /// where they shorten queues most
    #[arg(long, value_name = "TIMES", default_value_t = 1.0)]
    pub(crate) budget: f64,
    /// What random choices follow: the same seed gives the same plan
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// How often to try to save a replica
    #[arg(long, value_name = "N", default_value_t = 4000)]
    pub(crate) iterations: u32,
    /// Replicas of every segment with the policy uniform, as in 2 or 1.5 [default: 2]
    #[arg(long, value_name = "N")]
    pub(crate) replicas: Option<f64>,
    /// Replicas at least of what is read, in different failure domains
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) minimum: u32,
    /// Who holds what now: {"worker": ["segment id", ..], ..}; else nobody holds anything
    #[arg(long, value_name = "FILE")]
    pub(crate) holdings: Option<PathBuf>,
    /// Bytes of replicas that a worker takes at most [default: no limit]
    #[arg(long, value_name = "SIZE")]
    pub(crate) worker_bytes: Option<ByteSize>,
    /// Share of a worker's bytes that replicas may take; a cluster's default is 0.8
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    pub(crate) storage_share: f64,
    /// Bytes of a segment, with --counts
    #[arg(long, value_name = "SIZE", default_value = "64MiB", conflicts_with = "from_log")]
    pub(crate) segment_bytes: ByteSize,
    /// Counting period of the log, and what scarlett's concurrency is worked out by
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    pub(crate) window: Duration,
    /// How long an access takes; only scarlett asks
    #[arg(long, value_name = "DURATION", default_value = "100ms", value_parser = parse_duration)]
    pub(crate) service: Duration,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
