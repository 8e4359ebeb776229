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

/// Says that fewer records are kept than were read: the column is no key of its own, most often.
fn tell_of_repeated(read: u64, records: u64) {
    if read > records {
        let repeated = read - records;
        eprintln!(
            "{repeated} of {read} records that were read are not kept: later ones have the same keys, and the last of a key counts"
        );
    }
}

/// A key as it stands on the command line: text, or bytes as x'00ff'.
fn key_literal(text: &str) -> Outcome<Literal> {
    Ok(Literal::parse(text)?)
}

/// A key on a line of its own, as [`key_literal`] reads it.
fn key_line(key: &serde_json::Value) -> String {
    match key {
        serde_json::Value::String(text) if text.starts_with("x'") || text.contains(char::is_control) => hex(text.as_bytes()),
        key => plain(key),
    }
}

/// A value for people: text without quotes, bytes as x'00ff'.
fn plain(value: &serde_json::Value) -> String {
    match Literal::from_json(value) {
        Ok(Literal::Text(text)) => text,
        Ok(Literal::Null) => String::new(),
        Ok(Literal::Bytes(bytes)) => hex(&bytes),
        _ => value.to_string(),
    }
}

fn hex(bytes: &[u8]) -> String {
    format!("x'{}'", forebay_types::hex(bytes))
}

fn open(path: &std::path::Path) -> Outcome<Store> {
    Ok(Store::open(path)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_that_is_printed_is_one_that_is_read() {
        for key in [json!("a b"), json!(""), json!("x'00'"), json!("two\nlines"), json!({"base64": "AP8="}), json!("ü")] {
            let line = key_line(&key);
            assert!(!line.contains('\n'), "{line}");
            let bytes = |literal| match literal {
                Literal::Text(text) => text.into_bytes(),
                Literal::Bytes(bytes) => bytes,
                other => panic!("{other:?}"),
            };
            assert_eq!(bytes(key_literal(&line).unwrap()), bytes(Literal::from_json(&key).unwrap()), "{line}");
        }
        assert_eq!(key_line(&json!({"base64": "AP8="})), "x'00ff'");
        assert_eq!([json!(-7), json!(true), json!(null), json!(1.5)].map(|value| plain(&value)), ["-7", "true", "", "1.5"]);
    }
}
