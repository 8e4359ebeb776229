//! `forebay shard search`, `scan` and `count`.

use forebay_api::Count;
use forebay_shard::Key;
use forebay_shard_store::{Condition, Store};
use serde_json::json;

use super::source::Source;
use super::{key_literal, plain};
use crate::cli::{ShardCountArgs, ShardScanArgs, ShardSearchArgs};
use crate::config::Config;
use crate::exit::Outcome;
use crate::output::{Output, show};

/// Records that are read at once for their columns.
const RECORDS_AT_ONCE: usize = 1000;
/// Keys that a scan asks for at once, so that it holds no more of them.
const KEYS_AT_ONCE: usize = 10_000;

/// Prints keys, or columns of their records.
pub(super) async fn run(config: &Config, args: &ShardSearchArgs) -> Outcome {
    let source = Source::open(config, &args.common.shard).await?;
    let condition = Condition::parse(&args.condition)?;
    if let Source::File(store) = &source
        && store.is_text()
    {
        return search_text(store, &condition, args);
    }
    let after = after(&source, args.after.as_deref())?;
    let keys = source.search(&condition, after.as_ref(), args.limit).await?;
    let mut output = Output::new(args.common.json);
    print(&source, &keys, args.columns.columns.as_deref(), &mut output).await?;
    output.finish()
}

/// Prints the keys of all records, or columns of them.
pub(super) async fn scan(config: &Config, args: &ShardScanArgs) -> Outcome {
    let source = Source::open(config, &args.common.shard).await?;
    // What all records meet.
    let all = Condition::And(Vec::new());
    let mut after = after(&source, args.after.as_deref())?;
    let mut left = args.limit.unwrap_or(usize::MAX);
    let mut output = Output::new(args.common.json);
    while left > 0 {
        let most = left.min(KEYS_AT_ONCE);
        let keys = source.search(&all, after.as_ref(), Some(most)).await?;
        print(&source, &keys, args.columns.columns.as_deref(), &mut output).await?;
        left -= keys.len();
        if keys.len() < most {
            break;
        }
        after = keys.last().cloned();
    }
    output.finish()
}

/// The key after which records begin.
fn after(source: &Source, asked: Option<&str>) -> Outcome<Option<Key>> {
    asked.map(|text| Ok(source.records()?.key_of(&key_literal(text)?)?)).transpose()
}

async fn print(source: &Source, keys: &[Key], asked: Option<&[String]>, output: &mut Output) -> Outcome {
    let all = source.records()?;
    let Some(asked) = asked else {
        for key in keys {
            let key = all.key_json(key);
            match output.json() {
                true => output.record(&json!({&all.key().name: key}))?,
                false => output.line(&plain(&key))?,
            }
        }
        return Ok(());
    };
    let columns: Vec<String> = match asked {
        [every] if every == "*" => all.all().iter().map(|column| column.name.clone()).collect(),
        asked => asked.to_vec(),
    };
    for keys in keys.chunks(RECORDS_AT_ONCE) {
        print_records(source, keys, &columns, output).await?;
    }
    Ok(())
}

/// Those that were deleted since they were found don't meet the condition any more.
async fn print_records(source: &Source, keys: &[Key], columns: &[String], output: &mut Output) -> Outcome {
    for record in source.get_many(keys, Some(columns)).await?.into_iter().flatten() {
        if output.json() {
            output.record(&record)?;
        } else {
            let cells: Vec<String> = columns.iter().map(|name| plain(&record[name.as_str()])).collect();
            output.line(&cells.join("\t"))?;
        }
    }
    Ok(())
}

fn search_text(store: &Store, condition: &Condition, args: &ShardSearchArgs) -> Outcome {
    let mut output = Output::new(args.common.json);
    for offset in store.search_text(condition, args.limit)? {
        if args.common.json { output.record(&json!({"offset": offset}))? } else { output.line(&offset.to_string())? }
    }
    output.finish()
}

/// Prints how many records meet a condition.
pub(super) async fn count(config: &Config, args: &ShardCountArgs) -> Outcome {
    let source = Source::open(config, &args.common.shard).await?;
    let condition = args.condition.as_deref().map(Condition::parse).transpose()?;
    let count = source.count(condition.as_ref()).await?;
    show(args.common.json, &Count { count }, |output| output.line(&count.to_string()))
}
