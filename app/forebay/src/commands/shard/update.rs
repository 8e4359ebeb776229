use std::io::{BufReader, stdin};

use forebay_shard_store::{Change, JsonRecords, Store};
use forebay_types::{Error, Result};
use serde_json::{Map, Value};

use super::key_literal;
use crate::cli::{ShardDeleteArgs, ShardPathArgs, ShardPutArgs};
use crate::exit::Outcome;
use crate::progress;

/// Records that are made durable together.
const PUTS_TOGETHER: usize = 1024;

/// Puts records: those of the arguments, or of the standard input.
pub(super) fn put(args: &ShardPutArgs) -> Outcome {
    let shard = Store::open_to_change(&args.shard)?;
    let mut records: Box<dyn Iterator<Item = Result<Map<String, Value>>>> = if args.records.is_empty() {
        Box::new(JsonRecords::new(BufReader::new(stdin().lock()))?)
    } else {
        Box::new(args.records.iter().map(|text| {
            serde_json::from_str(text).map_err(|error| Error::invalid(format!("{text} is no record, a JSON object: {error}")))
        }))
    };
    loop {
        let changes = records.by_ref().take(PUTS_TOGETHER).map(|record| {
            let (key, values) = shard.records()?.record_of(&record?)?;
            Ok(Change::Put(key, values))
        });
        let changes = changes.collect::<Result<Vec<_>>>()?;
        if changes.is_empty() {
            break;
        }
        shard.change(changes)?;
    }
    shard.close()?;
    Ok(())
}

/// Deletes records; a key without one is no error.
pub(super) fn delete(args: &ShardDeleteArgs) -> Outcome {
    let shard = Store::open_to_change(&args.shard)?;
    let keys = args.keys.keys.iter().map(|text| Ok(Change::Delete(shard.records()?.key_of(&key_literal(text)?)?)));
    shard.change(keys.collect::<Outcome<Vec<_>>>()?)?;
    shard.close()?;
    Ok(())
}

/// Compresses updates into the shard.
pub(super) fn merge(args: &ShardPathArgs) -> Outcome {
    let shard = Store::open_to_change(&args.shard)?;
    let bar = progress::spinner("merging");
    shard.merge()?;
    bar.finish_and_clear();
    shard.close()?;
    Ok(())
}
