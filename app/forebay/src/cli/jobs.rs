//! Flags of `forebay jobs` and `forebay transfers`, which exist where distributed SQL is built in.

use clap::{Args, Subcommand};

#[derive(Args)]
pub(crate) struct JobsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<JobsCommand>,
    /// One JSON object a job, or a task
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// What to do with jobs.
#[derive(Subcommand)]
pub(crate) enum JobsCommand {
    /// List the tasks that run and the last ones that are over: when, and beside which worker
    Tasks,
    /// End a job
    Cancel {
        /// Its id, as `forebay jobs` shows it
        id: String,
    },
}

#[derive(Args)]
pub(crate) struct TransfersArgs {
    /// One JSON object a transfer
    #[arg(long)]
    pub(crate) json: bool,
}
