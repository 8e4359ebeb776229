//! What runs until it is told to stop.

use clap::Subcommand;

use super::{RoleFlags, WorkerArgs};

/// What runs until it is told to stop.
#[derive(Subcommand)]
pub(crate) enum RoleCommand {
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
}

#[derive(clap::Args)]
pub(crate) struct UpArgs {
    /// Run distributed SQL too: a scheduler, and so many workers, each with an executor beside it
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "WORKERS", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) cluster: Option<u16>,
    #[command(flatten)]
    pub(crate) role: RoleFlags,
}

impl RoleCommand {
    /// The flags that configure it; none for what is done to a worker that runs.
    pub(crate) fn flags(&self) -> Option<&RoleFlags> {
        match self {
            Self::Up(args) => Some(&args.role),
            Self::Worker(args) => args.command.is_none().then_some(&args.role),
            Self::Coordinator(flags) | Self::Gateway(flags) => Some(flags),
            #[cfg(feature = "cluster")]
            Self::Scheduler(flags) | Self::Executor(flags) => Some(flags),
        }
    }
}
