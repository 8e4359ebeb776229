//! `forebay shard search`, `scan` and `count`.

use forebay_api::Count;
use forebay_shard::Key;
use forebay_shard_store::{Condition, Store};
use serde_json::{Value as Json, json};

use super::source::Source;
use super::{key_line, key_literal, plain};
use crate::cli::{ShardCountArgs, ShardScanArgs, ShardSearchArgs};
use crate::config::Config;
use crate::exit::{Failure, Outcome};
use crate::output::{Output, show};
use crate::terminal::visible;

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
    let (after, columns) = (args.after.as_deref(), args.columns.columns.as_deref());
    print_all(&source, &condition, (after, args.limit), usize::MAX, columns, args.common.json).await
}

/// Prints the keys of all records, or columns of them.
pub(super) async fn scan(config: &Config, args: &ShardScanArgs) -> Outcome {
    let source = Source::open(config, &args.common.shard).await?;
    // What all records meet.
    let all = Condition::And(Vec::new());
    let (after, columns) = (args.after.as_deref(), args.columns.columns.as_deref());
    print_all(&source, &all, (after, args.limit), KEYS_AT_ONCE, columns, args.common.json).await
}

/// Prints what meets a condition after a key, up to a limit, of so many keys at once.
async fn print_all(
    source: &Source,
    condition: &Condition,
    (after, limit): (Option<&str>, Option<usize>),
    at_once: usize,
    columns: Option<&[String]>,
    json: bool,
) -> Outcome {
    let mut after = after.map(|text| Ok::<_, Failure>(source.records()?.key_of(&key_literal(text)?)?)).transpose()?;
    let mut left = limit.unwrap_or(usize::MAX);
    let mut output = Output::new(json);
    // What was changed since it was found may not meet the condition any more: the next ones come in its place.
    while left > 0 {
        let most = left.min(at_once);
        let keys = source.search(condition, after.as_ref(), (most < usize::MAX).then_some(most)).await?;
        left -= print(source, condition, &keys, columns, &mut output).await?;
        if keys.len() < most {
            break;
        }
        after = keys.last().cloned();
    }
    output.finish()
}

/// Prints keys, or columns of their records that still meet the condition; says how many.
async fn print(
    source: &Source,
    condition: &Condition,
    keys: &[Key],
    asked: Option<&[String]>,
    output: &mut Output,
) -> Outcome<usize> {
    let all = source.records()?;
    let Some(asked) = asked else {
        for key in keys {
            let key = all.key_json(key);
            if output.json { output.record(&json!({&all.key().name: key}))? } else { output.line(&key_line(&key))? }
        }
        return Ok(keys.len());
    };
    let columns: Vec<String> = match asked {
        [every] if every == "*" => all.all().iter().map(|column| column.name.clone()).collect(),
        asked => asked.to_vec(),
    };
    let (mut printed, mut rest, mut at_once) = (0, keys, RECORDS_AT_ONCE);
    while !rest.is_empty() {
        let (read, records) = source.get_found(&rest[..rest.len().min(at_once)], condition, &columns).await?;
        print_records(&records, &columns, output)?;
        printed += records.len();
        // Smaller ones may come behind large ones.
        at_once = (2 * read).min(RECORDS_AT_ONCE);
        rest = &rest[read..];
    }
    Ok(printed)
}

fn print_records(records: &[Json], columns: &[String], output: &mut Output) -> Outcome {
    for record in records {
        if output.json {
            output.record(record)?;
        } else {
            // A record is one line, whatever is in it.
            let cell = |name: &String| visible(&plain(&record[name.as_str()]), &[]).into_owned();
            let cells: Vec<String> = columns.iter().map(cell).collect();
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
