//! What can be asked of a running cluster.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::{
    CatArgs, CpArgs, DuArgs, ExplainArgs, LoadArgs, LsArgs, MountCommand, NodeCommand, PathsArgs, PinArgs, RmArgs, StatArgs,
    TokenCommand,
};

/// What is asked of a running cluster.
#[derive(Subcommand)]
pub(crate) enum ClientCommand {
    /// Add, change, remove and list mounts
    #[command(subcommand)]
    Mount(MountCommand),
    /// Make, list and end tokens: who may read, write or administer, where and how long
    #[command(subcommand)]
    Token(TokenCommand),
    /// List mounts, or what is below a path
    Ls(LsArgs),
    /// Show an object: size, version, and how much of it is cached
    Stat(StatArgs),
    /// Say where an object is, why, and what reading it would cost now
    Explain(ExplainArgs),
    /// Write objects to the standard output
    Cat(CatArgs),
    /// Copy between this machine and mounts, or from mount to mount
    Cp(CpArgs),
    /// Delete objects from shared storage
    Rm(RmArgs),
    /// Show how much is below a path, and how much of it is cached
    Du(DuArgs),
    /// Bring everything below paths into the tiers
    Load(LoadArgs),
    /// Keep everything below paths in the tiers; without a path, list the pins
    Pin(PinArgs),
    /// Drop what is cached below paths; shared storage keeps it
    Free(PathsArgs),
    /// Forget listings and versions below paths, so that the next open asks shared storage
    Refresh(PathsArgs),
    /// Put, read, list and delete temporary nodes: data below /tmp that lives between two steps of a job
    #[command(subcommand)]
    Node(NodeCommand),
    /// Show the cluster: mounts, workers, tiers
    Status {
        /// Show segments instead, the most popular first: popularity, replicas, routing
        #[arg(long)]
        segments: bool,
        /// Segments at most
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000), requires = "segments")]
        limit: u32,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show what shared storage was spared since the workers started, and what that is worth
    Savings {
        /// What a gigabyte from shared storage costs
        #[arg(long, default_value_t = 0.0, value_name = "PRICE")]
        per_gb: f64,
        /// What a thousand requests to it cost
        #[arg(long, default_value_t = 0.0, value_name = "PRICE")]
        per_1000_requests: f64,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Watch the cluster: workers, mounts, segments, transfers, jobs; keys sort, ? tells of them
    Top(TopArgs),
}

#[derive(Args)]
pub(crate) struct TopArgs {
    /// Time between two looks
    #[arg(long, default_value = "1s", value_parser = forebay_types::parse_duration, value_name = "DURATION")]
    pub(crate) interval: Duration,
    /// One JSON object a look, on a line of its own
    #[arg(long)]
    pub(crate) json: bool,
    /// So many looks, then the end
    #[arg(long, requires = "json", value_name = "LOOKS")]
    pub(crate) count: Option<u64>,
}

#[derive(Args)]
pub(crate) struct RecordArgs {
    /// The trace to write; - for the standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// How long to record; without it, until Ctrl-C
    #[arg(long = "for", value_name = "DURATION", value_parser = forebay_types::parse_duration)]
    pub(crate) lasts: Option<Duration>,
    /// Record one object of so many, each with all of its accesses
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) one_in: u32,
    /// Stop at so many accesses
    #[arg(long, value_name = "N", default_value_t = 100_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) most: u64,
    /// Write hashes in the place of names, part by part, by a secret that is kept nowhere
    #[arg(long)]
    pub(crate) anonymise: bool,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
