//! The command line: what can be typed, and nothing of what it does.

mod demo;
mod files;
mod flags;
#[cfg(feature = "cluster")]
mod jobs;
mod mounts;
mod node;
mod plan;
mod shard;
mod simulate;
mod sql;
mod table;
mod token;
mod worker;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

pub(crate) use demo::{DemoArgs, DemoServerArgs};
pub(crate) use files::{CatArgs, CpArgs, DuArgs, LoadArgs, LsArgs, PathsArgs, PinArgs, RmArgs, StatArgs};
pub(crate) use flags::{Flags, GlobalFlags, RoleFlags};
#[cfg(feature = "cluster")]
pub(crate) use jobs::{JobsArgs, JobsCommand, TransfersArgs};
pub(crate) use mounts::{MountAddArgs, MountCommand, MountFlags, MountSetArgs};
pub(crate) use node::{NodeBatchArgs, NodeBytesArgs, NodeCommand, NodeLsArgs, NodeMkdirArgs, NodeRmArgs, NodeStatArgs};
pub(crate) use plan::{PlanCommand, PlanReplicasArgs, PlanTasksArgs};
pub(crate) use shard::{
    ShardArgs, ShardBatchArgs, ShardBuildArgs, ShardCommand, ShardCountArgs, ShardDeleteArgs, ShardGetArgs, ShardPathArgs,
    ShardPutArgs, ShardSearchArgs, ShardTuneArgs,
};
pub(crate) use simulate::{DataScheduler, GetafixArgs, JobOrder, MixApartArgs, SimulateCommand};
pub(crate) use sql::SqlArgs;
pub(crate) use table::{TableCommand, TableConvertArgs, TableInspectArgs, TableLayout, TableSuggestArgs};
pub(crate) use token::{TokenAddArgs, TokenCommand};
pub(crate) use worker::{WorkerArgs, WorkerCommand, WorkerDrainArgs};

/// SQL on shared storage at local speed: a cache tier on the compute nodes.
#[derive(Parser)]
#[command(name = "forebay", version, max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// Configuration file; else $FOREBAY_CONFIG, ./forebay.toml or ~/.config/forebay/forebay.toml
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) global: GlobalFlags,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run everything in one process: coordinator, worker and metadata, on this machine
    Up(UpArgs),
    /// Run the coordinator of a cluster
    Coordinator(RoleFlags),
    /// Run a worker of a cluster, or drain one that runs
    Worker(WorkerArgs),
    /// Run an S3 gateway to a cluster: its buckets are the mounts
    Gateway(RoleFlags),
    /// Run the scheduler of distributed SQL
    #[cfg(feature = "cluster")]
    Scheduler(RoleFlags),
    /// Run an executor of distributed SQL, beside the worker of its host
    #[cfg(feature = "cluster")]
    Executor(RoleFlags),
    /// List the jobs of distributed SQL, or cancel one
    #[cfg(feature = "cluster")]
    Jobs(JobsArgs),
    /// List what is being brought to workers for tasks that come
    #[cfg(feature = "cluster")]
    Transfers(TransfersArgs),
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
    /// Run SQL over files below mounts
    Sql(SqlArgs),
    /// Convert, inspect and lay out tables: files that are scanned at the speed of memory
    #[command(subcommand)]
    Table(TableCommand),
    /// Build and ask shards: compressed, searchable files of records on this machine
    #[command(subcommand)]
    Shard(ShardCommand),
    /// Put, read, list and delete temporary nodes: data below /tmp that lives between two steps of a job
    #[command(subcommand)]
    Node(NodeCommand),
    /// Work out what the cluster would decide, without one
    #[command(subcommand)]
    Plan(PlanCommand),
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
    /// Watch the cluster
    Top {
        /// Time between two looks
        #[arg(long, default_value = "1s", value_parser = forebay_types::parse_duration, value_name = "DURATION")]
        interval: std::time::Duration,
    },
    /// Run TPC-H against an S3 server of its own and compare Forebay with the alternatives
    Demo(DemoArgs),
    /// The demo's S3 server, in a process of its own
    #[command(hide = true)]
    DemoS3Server(DemoServerArgs),
    /// Run what Forebay decides by in a model of a cluster
    #[command(subcommand)]
    Simulate(SimulateCommand),
    /// Print the effective configuration, and where each value is from
    Config {
        /// One JSON object a key
        #[arg(long)]
        json: bool,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// `up`.
#[derive(clap::Args)]
pub(crate) struct UpArgs {
    /// Run distributed SQL too: a scheduler, and so many workers, each with an executor beside it
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "WORKERS", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) cluster: Option<u16>,
    #[command(flatten)]
    pub(crate) role: RoleFlags,
}

impl Command {
    /// The flags that configure a role; none for the other commands.
    pub(crate) fn role_flags(&self) -> Option<&RoleFlags> {
        match self {
            Self::Up(args) => Some(&args.role),
            #[cfg(feature = "cluster")]
            Self::Scheduler(flags) | Self::Executor(flags) => Some(flags),
            Self::Worker(args) if args.command.is_some() => None,
            Self::Worker(args) => Some(&args.role),
            Self::Coordinator(flags) | Self::Gateway(flags) => Some(flags),
            Self::Sql(sql) => Some(&sql.role),
            _ => None,
        }
    }

    /// Whether it runs until it is told to stop, and so logs what it does.
    pub(crate) fn is_role(&self) -> bool {
        #[cfg(feature = "cluster")]
        if matches!(self, Self::Scheduler(_) | Self::Executor(_)) {
            return true;
        }
        match self {
            Self::Worker(args) => args.command.is_none(),
            _ => matches!(self, Self::Up(_) | Self::Coordinator(_) | Self::Gateway(_)),
        }
    }
}
