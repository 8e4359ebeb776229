//! `forebay shard`: shards on this machine's disk, which need no cluster, and datasets of shards that workers serve.

mod batch;
mod build;
mod create;
mod get;
mod inspect;
mod orders;
mod refresh;
mod reshard;
mod search;
mod source;
mod status;
mod update;

use forebay_shard_store::{Literal, Store};

use crate::cli::ShardCommand;
use crate::config::Config;
use crate::exit::Outcome;
use crate::{block_on, interruptible};

/// Runs one of the commands. Interrupted at any point a shard is left whole, so the signal may end most of them as they are.
pub(crate) fn run(config: &Config, command: ShardCommand) -> Outcome {
    match command {
        ShardCommand::Build(args) => build::run(&args),
        ShardCommand::Create(args) => block_on(interruptible(create::run(config, &args))),
        ShardCommand::Refresh(args) => block_on(interruptible(refresh::run(config, &args))),
        ShardCommand::Status(args) => block_on(interruptible(status::run(config, &args))),
        ShardCommand::Pin(args) => block_on(interruptible(orders::pin(config, &args))),
        ShardCommand::Unpin(args) => block_on(interruptible(orders::unpin(config, &args))),
        ShardCommand::Freeze(args) => block_on(interruptible(orders::freeze(config, &args))),
        ShardCommand::Thaw(args) => block_on(interruptible(orders::thaw(config, &args))),
        ShardCommand::Ack(args) => block_on(interruptible(orders::ack(config, &args))),
        ShardCommand::Forgo(args) => block_on(interruptible(orders::forgo(config, &args))),
        ShardCommand::Reshard(args) => reshard::run(config, &args),
        ShardCommand::Get(args) => block_on(get::run(config, &args)),
        ShardCommand::Search(args) => block_on(search::run(config, &args)),
        ShardCommand::Scan(args) => block_on(search::scan(config, &args)),
        ShardCommand::Count(args) => block_on(search::count(config, &args)),
        ShardCommand::Tune(args) => update::tune(&args),
        ShardCommand::Put(args) => block_on(update::put(config, &args)),
        ShardCommand::Delete(args) => block_on(update::delete(config, &args)),
        ShardCommand::Merge(args) => block_on(update::merge(config, &args)),
        ShardCommand::Inspect(args) => inspect::run(&args),
        ShardCommand::Batch(args) => block_on(batch::run(config, &args)),
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
