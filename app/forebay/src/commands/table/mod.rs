//! `forebay table`: table files, of this machine without a cluster, of mounts with one.

mod convert;
mod engine;
mod inspect;
mod suggest;

use crate::cli::TableCommand;
use crate::config::Config;
use crate::exit::Outcome;

pub(crate) async fn run(config: &Config, command: TableCommand) -> Outcome {
    match command {
        TableCommand::Convert(args) => convert::run(config, &args).await,
        TableCommand::Inspect(args) => inspect::run(config, &args).await,
        TableCommand::Suggest(args) => suggest::run(config, &args).await,
    }
}
