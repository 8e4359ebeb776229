use forebay_shard_store::{Condition, Store};
use serde_json::json;

use super::{key_literal, open, plain};
use crate::cli::{ShardCountArgs, ShardSearchArgs};
use crate::exit::Outcome;
use crate::output::Output;

/// Prints keys, or columns of their records.
pub(super) fn run(args: &ShardSearchArgs) -> Outcome {
    let shard = open(&args.common.shard)?;
    let condition = Condition::parse(&args.condition)?;
    let mut output = Output::new(args.common.json);
    if shard.is_text() {
        for offset in shard.search_text(&condition, args.limit)? {
            if args.common.json { output.record(&json!({"offset": offset}))? } else { output.line(&offset.to_string())? }
        }
        return output.finish();
    }
    let after = args.after.as_deref().map(|text| Ok::<_, crate::exit::Failure>(shard.records()?.key_of(&key_literal(text)?)?));
    let after = after.transpose()?;
    let columns = columns(&shard, args.columns.columns.as_deref())?;
    for key in shard.search(&condition, after.as_ref(), args.limit)? {
        if args.common.json {
            match shard.get_json(&key, Some(&columns))? {
                Some(record) => output.record(&record)?,
                // It was deleted since: then it doesn't meet the condition any more.
                None => continue,
            }
        } else if args.columns.columns.is_none() {
            output.line(&plain(&shard.records()?.key_json(&key)))?;
        } else if let Some(record) = shard.get_json(&key, Some(&columns))? {
            let cells: Vec<String> = columns.iter().map(|name| plain(&record[name.as_str()])).collect();
            output.line(&cells.join("\t"))?;
        }
    }
    output.finish()
}

/// The columns to print: the key's by itself when none are asked for.
fn columns(shard: &Store, asked: Option<&[String]>) -> Outcome<Vec<String>> {
    let columns = shard.records()?;
    Ok(match asked {
        None => vec![columns.key().name.clone()],
        Some([all]) if all == "*" => columns.all().iter().map(|column| column.name.clone()).collect(),
        Some(asked) => asked.to_vec(),
    })
}

/// Prints how many records meet a condition.
pub(super) fn count(args: &ShardCountArgs) -> Outcome {
    let shard = open(&args.common.shard)?;
    let condition = args.condition.as_deref().map(Condition::parse).transpose()?;
    let count = match &condition {
        Some(condition) if shard.is_text() => shard.count_text(condition)?,
        Some(condition) => shard.count(condition)?,
        None => shard.count_all()?,
    };
    let mut output = Output::new(args.common.json);
    if args.common.json {
        output.record(&json!({"count": count}))?
    } else {
        output.line(&count.to_string())?
    }
    output.finish()
}
