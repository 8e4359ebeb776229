//! `forebay shard`: shards on this machine's disk. Needs no cluster.

mod batch;
mod build;
mod get;
mod input;
mod inspect;
mod search;
mod tune;
mod update;

use forebay_shard_store::{Literal, Store};

use crate::cli::ShardCommand;
use crate::exit::Outcome;

/// Runs one of the commands; they compute and wait for disks, so it blocks.
pub(crate) fn run(command: ShardCommand) -> Outcome {
    match command {
        ShardCommand::Build(args) => build::run(&args),
        ShardCommand::Get(args) => get::run(&args),
        ShardCommand::Search(args) => search::run(&args),
        ShardCommand::Count(args) => search::count(&args),
        ShardCommand::Tune(args) => tune::run(&args),
        ShardCommand::Put(args) => update::put(&args),
        ShardCommand::Delete(args) => update::delete(&args),
        ShardCommand::Merge(args) => update::merge(&args),
        ShardCommand::Inspect(args) => inspect::run(&args),
        ShardCommand::Batch(args) => batch::run(&args),
    }
}

/// A key as it stands on the command line: text, or bytes as x'00ff'.
fn key_literal(text: &str) -> Outcome<Literal> {
    Ok(Literal::parse(text)?)
}

/// A value for people: text without quotes.
fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Opens a shard to read it.
fn open(path: &std::path::Path) -> Outcome<Store> {
    Ok(Store::open(path)?)
}
