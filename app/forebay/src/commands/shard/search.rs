//! `forebay shard search` and `count`.

use forebay_api::Count;
use forebay_shard::Key;
use forebay_shard_store::{Condition, Store};
use serde_json::json;

use super::source::Source;
use super::{key_literal, plain};
use crate::cli::{ShardCountArgs, ShardSearchArgs};
use crate::config::Config;
use crate::exit::Outcome;
use crate::output::Output;

/// Records that are read at once for their columns.
const RECORDS_AT_ONCE: usize = 1000;

/// Prints keys, or columns of their records.
pub(super) async fn run(config: &Config, args: &ShardSearchArgs) -> Outcome {
    let source = Source::open(config, &args.common.shard).await?;
    let condition = Condition::parse(&args.condition)?;
    if let Source::File(store) = &source
        && store.is_text()
    {
        return search_text(store, &condition, args);
    }
    let after = args.after.as_deref().map(|text| Ok::<_, crate::exit::Failure>(source.records()?.key_of(&key_literal(text)?)?));
    let after = after.transpose()?;
    let keys = source.search(&condition, after.as_ref(), args.limit).await?;
    let mut output = Output::new(args.common.json);
    let only_keys = args.columns.columns.is_none();
    if only_keys {
        let columns = source.records()?;
        for key in &keys {
            let key = columns.key_json(key);
            match args.common.json {
                true => output.record(&json!({&columns.key().name: key}))?,
                false => output.line(&plain(&key))?,
            }
        }
        return output.finish();
    }
    let columns = columns(&source, args.columns.columns.as_deref())?;
    for keys in keys.chunks(RECORDS_AT_ONCE) {
        print_records(&source, keys, &columns, &mut output).await?;
    }
    output.finish()
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

/// The columns to print.
fn columns(source: &Source, asked: Option<&[String]>) -> Outcome<Vec<String>> {
    let columns = source.records()?;
    Ok(match asked {
        None => vec![columns.key().name.clone()],
        Some([all]) if all == "*" => columns.all().iter().map(|column| column.name.clone()).collect(),
        Some(asked) => asked.to_vec(),
    })
}

/// Prints how many records meet a condition.
pub(super) async fn count(config: &Config, args: &ShardCountArgs) -> Outcome {
    let source = Source::open(config, &args.common.shard).await?;
    let condition = args.condition.as_deref().map(Condition::parse).transpose()?;
    let count = source.count(condition.as_ref()).await?;
    let mut output = Output::new(args.common.json);
    if args.common.json {
        output.record(&Count { count })?
    } else {
        output.line(&count.to_string())?
    }
    output.finish()
}
