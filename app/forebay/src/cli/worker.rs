//! Flags of `forebay worker`, which is a role, and of the commands that drain and resume one that runs.

use clap::{Args, Subcommand};

use super::RoleFlags;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    pub(crate) role: RoleFlags,
    #[command(subcommand)]
    pub(crate) command: Option<WorkerCommand>,
}

/// What is done to a worker that runs.
#[derive(Subcommand)]
pub(crate) enum WorkerCommand {
    /// Move a worker's temporary data to others and give it nothing new, so that it can be stopped without loss
    Drain(WorkerDrainArgs),
    /// Let a worker that is being drained take part again; what has moved stays where it is
    Resume(WorkerResumeArgs),
}

#[derive(Args)]
pub(crate) struct WorkerDrainArgs {
    /// The worker's id or address, as in `forebay status`
    #[arg(value_name = "ID|ADDRESS")]
    pub(crate) worker: String,
    /// Wait until nothing is left on it
    #[arg(long)]
    pub(crate) wait: bool,
    /// One JSON object a change
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct WorkerResumeArgs {
    /// The worker's id or address, as in `forebay status`
    #[arg(value_name = "ID|ADDRESS")]
    pub(crate) worker: String,
}
