//! `forebay shard batch`.

use forebay_shard_store::Batch;
use forebay_shards::Shards;

use super::source::Source;
use crate::cli::ShardBatchArgs;
use crate::config::Config;
use crate::exit::Outcome;
use crate::input::Operations;

/// No operation is longer.
const LINE_BYTES_MAX: u64 = 64 << 20;

enum Asked {
    File(Box<Batch>),
    Served(Box<Shards>),
}

/// Answers operations line by line, each as soon as it is done.
pub(super) async fn run(config: &Config, args: &ShardBatchArgs) -> Outcome {
    let mut asked = match Source::open(config, &args.shard).await? {
        Source::File(_) => Asked::File(Box::new(Batch::open(&args.shard)?)),
        Source::Served(shards) => Asked::Served(shards),
    };
    let mut operations = Operations::open(args.operations.as_deref(), LINE_BYTES_MAX).await?;
    while let Some(operation) = operations.next().await? {
        let answer = match &mut asked {
            Asked::File(batch) => batch.answer(operation),
            Asked::Served(shards) => shards.answer(operation).await,
        };
        operations.answer(&answer)?;
    }
    if let Asked::File(batch) = asked {
        batch.close()?;
    }
    Ok(())
}
