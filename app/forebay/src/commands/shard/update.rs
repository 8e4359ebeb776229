//! `forebay shard put`, `delete`, `merge` and `tune`.

use std::io::{BufReader, stdin};
use std::time::Duration;

use forebay_shard_store::{ChangeIf, JsonRecords, Store, WantedChange, exact_json};
use forebay_shards::Shards;
use forebay_types::{Error, Result, format_bytes};
use serde_json::{Map, Value as Json, json};

use super::key_literal;
use super::source::Source;
use crate::cli::{ShardDeleteArgs, ShardPathArgs, ShardPutArgs, ShardTuneArgs};
use crate::config::Config;
use crate::exit::Outcome;
use crate::output::show;
use crate::progress;

/// Records that are made durable together.
const PUTS_TOGETHER: usize = 1024;
/// How long the merge of a shard is waited for.
const MERGE_WITHIN: Duration = Duration::from_secs(600);

/// A shard or a dataset, opened to be changed.
enum Target {
    File(Box<Store>),
    Served(Box<Shards>),
}

impl Target {
    async fn open(config: &Config, path: &std::path::Path) -> Outcome<Self> {
        Ok(match Source::open(config, path).await? {
            Source::File(_) => Self::File(Box::new(Store::open_to_change(path)?)),
            Source::Served(shards) => Self::Served(shards),
        })
    }

    /// Makes changes, each a JSON object as `forebay shard batch` has them.
    async fn change(&self, changes: &[Json]) -> Result<()> {
        let store = match self {
            Self::File(store) => store,
            Self::Served(shards) => return shards.change(changes).await.map(drop),
        };
        let parsed = changes.iter().map(|change| {
            let wanted = WantedChange::parse(store.records()?, change.to_string().as_bytes())?;
            match wanted.condition {
                ChangeIf::Always => Ok(wanted.change),
                _ => Err(Error::invalid("a shard in a folder has one writer and no versions: conditions are for datasets")),
            }
        });
        store.change(parsed.collect::<Result<_>>()?)
    }

    fn close(self) -> Result<()> {
        match self {
            Self::File(store) => store.close(),
            Self::Served(_) => Ok(()),
        }
    }
}

/// Puts records: those of the arguments, or of the standard input.
pub(super) async fn put(config: &Config, args: &ShardPutArgs) -> Outcome {
    let target = Target::open(config, &args.shard).await?;
    let mut records: Box<dyn Iterator<Item = Result<Map<String, Json>>>> = if args.records.is_empty() {
        Box::new(JsonRecords::new(BufReader::new(stdin().lock())))
    } else {
        Box::new(args.records.iter().map(|text| {
            let wrong = |error| Error::invalid(format!("{text} is no record, a JSON object: {error}"));
            exact_json(text.as_bytes()).map_err(wrong)
        }))
    };
    loop {
        let changes = records.by_ref().take(PUTS_TOGETHER).map(|record| {
            let mut change = with_version(json!({"put": record?}), args.condition.if_version);
            if args.if_absent {
                change["if_absent"] = true.into();
            }
            Ok(change)
        });
        let changes = changes.collect::<Result<Vec<_>>>()?;
        if changes.is_empty() {
            break;
        }
        target.change(&changes).await?;
    }
    Ok(target.close()?)
}

/// Deletes records; a key without one is no error.
pub(super) async fn delete(config: &Config, args: &ShardDeleteArgs) -> Outcome {
    let target = Target::open(config, &args.shard).await?;
    let version = args.condition.if_version;
    let change = |text: &String| Ok(with_version(json!({"delete": key_literal(text)?.to_json()}), version));
    target.change(&args.keys.keys.iter().map(change).collect::<Outcome<Vec<_>>>()?).await?;
    Ok(target.close()?)
}

fn with_version(mut change: Json, version: Option<u64>) -> Json {
    if let Some(version) = version {
        change["if_version"] = version.into();
    }
    change
}

/// Compresses updates into the shard, or into those of a dataset, one after the other.
pub(super) async fn merge(config: &Config, args: &ShardPathArgs) -> Outcome {
    match Target::open(config, &args.shard).await? {
        Target::File(shard) => {
            let bar = progress::spinner("merging");
            shard.merge()?;
            bar.finish_and_clear();
            shard.close()?;
        }
        Target::Served(shards) => {
            let shards = shards.with_patience(MERGE_WITHIN);
            let count = shards.dataset().shards.len();
            for shard in 0..count {
                let bar = progress::spinner(&format!("merging shard {} of {count}", shard + 1));
                shards.merge_shard(shard).await?;
                bar.finish_and_clear();
            }
        }
    }
    Ok(())
}

/// Trades bytes of a shard of this machine for speed, or back: adds or drops layers until the shard has the size.
pub(super) fn tune(args: &ShardTuneArgs) -> Outcome {
    let shard = Store::open_to_change(&args.common.shard)?;
    let bar = progress::spinner("tuning");
    shard.tune(args.size)?;
    bar.finish_and_clear();
    let inspection = shard.inspect()?;
    shard.close()?;
    let (size, bytes, input_bytes) = (inspection.ratio(), inspection.bytes, inspection.input_bytes);
    show(args.common.json, &json!({"size": size, "bytes": bytes, "input_bytes": input_bytes}), |output| {
        output.line(&format!("{size:.3} of the input: {} of {}", format_bytes(bytes), format_bytes(input_bytes)))
    })
}
