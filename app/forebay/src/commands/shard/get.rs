//! `forebay shard get`.

use forebay_types::Error;

use super::source::Source;
use super::{key_literal, plain};
use crate::cli::ShardGetArgs;
use crate::config::Config;
use crate::exit::Outcome;
use crate::output::Output;

/// Prints records; a key without one is an error, after the others were printed.
pub(super) async fn run(config: &Config, args: &ShardGetArgs) -> Outcome {
    let source = Source::open(config, &args.common.shard).await?;
    let mut output = Output::new(args.common.json);
    let key = |text: &String| Ok(source.records()?.key_of(&key_literal(text)?)?);
    let keys = args.keys.keys.iter().map(key).collect::<Outcome<Vec<_>>>()?;
    let records = source.get_many(&keys, args.columns.columns.as_deref()).await?;
    let mut missing = Vec::new();
    for (place, (text, record)) in args.keys.keys.iter().zip(records).enumerate() {
        let Some(record) = record else {
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
