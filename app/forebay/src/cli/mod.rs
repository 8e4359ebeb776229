//! The command line: what can be typed, and nothing of what it does.

mod client;
mod demo;
mod files;
mod flags;
#[cfg(feature = "cluster")]
mod jobs;
mod model;
mod mounts;
mod node;
mod role;
mod shard;
mod sql;
mod table;
mod token;
mod worker;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::config::{Setting, Written};

pub(crate) use client::{ClientCommand, RecordArgs, TopArgs};
pub(crate) use demo::{DemoArgs, DemoServerArgs};
pub(crate) use files::{CatArgs, CpArgs, DuArgs, ExplainArgs, LoadArgs, LsArgs, PathsArgs, PinArgs, RmArgs, StatArgs};
use flags::{GlobalFlags, RoleFlags};
#[cfg(feature = "cluster")]
pub(crate) use jobs::{JobsArgs, JobsCommand, TransfersArgs};
pub(crate) use model::{
    DataScheduler, GetafixArgs, JobOrder, MixApartArgs, PlanCommand, PlanReplicasArgs, PlanShardsArgs, PlanTasksArgs,
    SimulateCommand, SimulateShardsArgs, TraceCommand, TraceConvertArgs,
};
pub(crate) use mounts::{MountAddArgs, MountCommand, MountFlags, MountSetArgs};
pub(crate) use node::{
    NodeBatchArgs, NodeBytesArgs, NodeCommand, NodeLsArgs, NodeMkdirArgs, NodeQuotaArgs, NodeRmArgs, NodeStatArgs,
};
pub(crate) use role::{RoleCommand, UpArgs};
pub(crate) use shard::{
    By, ShardAckArgs, ShardArgs, ShardBatchArgs, ShardBuildArgs, ShardCommand, ShardCountArgs, ShardCreateArgs, ShardDeleteArgs,
    ShardGetArgs, ShardOrderArgs, ShardPathArgs, ShardPinArgs, ShardPutArgs, ShardRefreshArgs, ShardReshardArgs, ShardScanArgs,
    ShardSearchArgs, ShardStatusArgs, ShardTuneArgs,
};
pub(crate) use sql::{SqlArgs, no_comment_is_a_flag};
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

impl Cli {
    /// What the command line says of settings.
    pub(crate) fn settings(&self) -> Vec<(&'static Setting, Written)> {
        let role = match &self.command {
            Command::Configured(ConfiguredCommand::Role(command)) => command.flags(),
            Command::Configured(ConfiguredCommand::Sql(sql)) => Some(&sql.role),
            Command::Configured(ConfiguredCommand::Doctor(doctor)) => Some(&doctor.role),
            _ => None,
        };
        self.global.said().chain(role.into_iter().flat_map(RoleFlags::said)).collect()
    }
}

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    #[command(flatten)]
    Configured(ConfiguredCommand),
    #[command(flatten)]
    Alone(AloneCommand),
}

/// What goes by the configuration.
#[derive(Subcommand)]
pub(crate) enum ConfiguredCommand {
    #[command(flatten)]
    Role(RoleCommand),
    /// List the jobs of distributed SQL, or cancel one
    #[cfg(feature = "cluster")]
    Jobs(JobsArgs),
    /// List what is being brought to workers for tasks that come
    #[cfg(feature = "cluster")]
    Transfers(TransfersArgs),
    #[command(flatten)]
    Client(ClientCommand),
    /// Run SQL over files below mounts
    Sql(SqlArgs),
    /// Record accesses of the running cluster: when, which object, which bytes and how, but not by whom; Ctrl-C ends it
    Record(RecordArgs),
    /// Convert, inspect and lay out tables: files that are scanned at the speed of memory
    #[command(subcommand)]
    Table(TableCommand),
    /// Build, serve and ask shards: compressed, searchable files of records
    #[command(subcommand)]
    Shard(ShardCommand),
    /// Work out what the cluster would decide, without one
    #[command(subcommand)]
    Plan(PlanCommand),
    /// Run TPC-H against an S3 server of its own and compare Forebay with the alternatives
    Demo(DemoArgs),
    /// Check this machine, its configuration, the cluster and the storages, and say what to do
    Doctor(DoctorArgs),
    /// Print the effective configuration, and where each value is from
    Config {
        /// One JSON object a key
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// One JSON object a check
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten, next_help_heading = "What would run here, as for `forebay up`")]
    pub(crate) role: RoleFlags,
}

/// What asks no configuration.
#[derive(Subcommand)]
pub(crate) enum AloneCommand {
    /// The demo's S3 server, in a process of its own
    #[command(hide = true)]
    DemoS3Server(DemoServerArgs),
    /// Run what Forebay decides by in a model of a cluster
    #[command(subcommand)]
    Simulate(SimulateCommand),
    /// Convert traces of accesses that others have published
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Write a manual page for each command into a folder
    Man {
        /// The folder, made where it is not there
        folder: PathBuf,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}
