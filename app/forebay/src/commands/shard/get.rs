use forebay_types::Error;

use super::{key_literal, open, plain};
use crate::cli::ShardGetArgs;
use crate::exit::Outcome;
use crate::output::Output;

/// Prints records; a key without one is an error, after the others were printed.
pub(super) fn run(args: &ShardGetArgs) -> Outcome {
    let shard = open(&args.common.shard)?;
    let mut output = Output::new(args.common.json);
    let mut missing = Vec::new();
    for (place, text) in args.keys.keys.iter().enumerate() {
        let key = shard.records()?.key_of(&key_literal(text)?)?;
        let Some(record) = shard.get_json(&key, args.columns.columns.as_deref())? else {
            missing.push(text.as_str());
            continue;
        };
        if args.common.json {
            output.record(&record)?;
            continue;
        }
        if place > 0 {
            output.line("")?;
        }
        let object = record.as_object().into_iter().flatten();
        let rows: Vec<Vec<String>> = object.map(|(name, value)| vec![name.clone(), plain(value)]).collect();
        output.table(&[], &[], &rows)?;
    }
    output.finish()?;
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::not_found(format!("{}: there is no record of {}", args.common.shard.display(), missing.join(", "))).into())
}
