//! One command of the command line a file.

mod cat;
mod copy;
pub(crate) mod doctor;
mod du;
mod free;
mod load;
mod ls;
mod man;
mod mount;
mod node;
mod pin;
pub(crate) mod plan;
mod refresh;
mod rm;
mod shard;
mod show;
pub(crate) mod simulate;
pub(crate) mod table;
mod token;
mod top;
pub(crate) mod trace;
mod worker;

use crate::cli::{ClientCommand, WorkerCommand};
use crate::config::Config;
use crate::connect::connect;
use crate::exit::Outcome;
use forebay_api::Price;
pub(crate) use man::write as manual;
pub(crate) use shard::run as shard;
#[cfg(feature = "cluster")]
pub(crate) use show::jobs;
use show::{explain, segments, stat, status};

/// Runs a command that talks to a running cluster.
pub(crate) async fn run(config: &Config, command: ClientCommand) -> Outcome {
    let client = connect(config).await?;
    match command {
        ClientCommand::Mount(command) => mount::run(&client, command).await,
        ClientCommand::Token(command) => token::run(&client, command).await,
        ClientCommand::Ls(args) => ls::run(&client, args).await,
        ClientCommand::Stat(args) => stat::run(&client, args).await,
        ClientCommand::Explain(args) => explain::run(&client, args).await,
        ClientCommand::Cat(args) => cat::run(&client, args).await,
        ClientCommand::Cp(args) => copy::run(&client, args).await,
        ClientCommand::Rm(args) => rm::run(&client, args).await,
        ClientCommand::Du(args) => du::run(&client, args).await,
        ClientCommand::Load(args) => load::run(&client, args).await,
        ClientCommand::Pin(args) => pin::run(&client, args).await,
        ClientCommand::Free(args) => free::run(&client, args).await,
        ClientCommand::Refresh(args) => refresh::run(&client, args).await,
        ClientCommand::Node(command) => node::run(&client, command).await,
        ClientCommand::Status { segments: true, limit, json } => segments::run(&client, limit, json).await,
        ClientCommand::Status { json, .. } => status::run(&client, json).await,
        ClientCommand::Savings { per_gb, per_1000_requests, json } => {
            status::savings(&client, Price { per_gb, per_1000_requests }, json).await
        }
        ClientCommand::Top(args) => top::run(config, &client, args).await,
    }
}

/// Does something to a worker that runs.
pub(crate) async fn worker(config: &Config, command: WorkerCommand) -> Outcome {
    worker::run(&connect(config).await?, command).await
}
