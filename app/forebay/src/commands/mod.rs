//! One command of the command line a file.

mod cat;
mod connect;
mod copy;
mod du;
mod free;
#[cfg(feature = "cluster")]
pub(crate) mod jobs;
mod load;
mod ls;
mod mount;
mod node;
mod pin;
pub(crate) mod plan;
mod refresh;
mod rm;
mod segments;
mod shard;
pub(crate) mod simulate;
mod stat;
mod status;
pub(crate) mod table;
mod token;
mod top;
mod tree;
mod worker;

use crate::cli::{Command, WorkerArgs};
use crate::config::Config;
use crate::exit::Outcome;
pub(crate) use connect::connect;
pub(crate) use shard::run as shard;

/// Runs a command that talks to a running cluster.
pub(crate) async fn run(config: &Config, command: Command) -> Outcome {
    let client = connect(config).await?;
    match command {
        Command::Mount(command) => mount::run(&client, command).await,
        Command::Token(command) => token::run(&client, command).await,
        Command::Ls(args) => ls::run(&client, args).await,
        Command::Stat(args) => stat::run(&client, args).await,
        Command::Cat(args) => cat::run(&client, args).await,
        Command::Cp(args) => copy::run(&client, args).await,
        Command::Rm(args) => rm::run(&client, args).await,
        Command::Du(args) => du::run(&client, args).await,
        Command::Load(args) => load::run(&client, args).await,
        Command::Pin(args) => pin::run(&client, args).await,
        Command::Free(args) => free::run(&client, args).await,
        Command::Refresh(args) => refresh::run(&client, args).await,
        Command::Node(command) => node::run(&client, command).await,
        Command::Status { segments: true, limit, json } => segments::run(&client, limit, json).await,
        Command::Status { json, .. } => status::run(&client, json).await,
        Command::Worker(WorkerArgs { command: Some(command), .. }) => worker::run(&client, command).await,
        Command::Top { interval } => top::run(&client, interval).await,
        #[cfg(feature = "cluster")]
        Command::Scheduler(_) | Command::Executor(_) | Command::Jobs(_) | Command::Transfers(_) => {
            unreachable!("handled before a client is connected")
        }
        Command::Up(_)
        | Command::Worker(_)
        | Command::Coordinator(_)
        | Command::Gateway(_)
        | Command::Shard(_)
        | Command::Simulate(_)
        | Command::Sql(_)
        | Command::Table(_)
        | Command::Plan(_)
        | Command::Demo(_)
        | Command::DemoS3Server(_)
        | Command::Config { .. }
        | Command::Completions { .. } => unreachable!("handled before a client is connected"),
    }
}
