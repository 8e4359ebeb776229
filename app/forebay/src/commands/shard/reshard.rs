//! `forebay shard reshard`.

use std::cell::RefCell;
use std::path::Path;

use forebay_shards::{ReshardStep, ReshardTo, Resharded, Shards};
use forebay_types::{Error, ResultExt, format_bytes};
use indicatif::ProgressBar;
use tempfile::TempDir;

use crate::cli::ShardReshardArgs;
use crate::config::Config;
use crate::connect::connect;
use crate::exit::{Failure, Outcome};
use crate::output::show;
use crate::{block_on, interruptible, progress};

/// Has a dataset have more or fewer shards, one new one after the other.
pub(super) fn run(config: &Config, args: &ShardReshardArgs) -> Outcome {
    // Taken away when nothing writes to it any more.
    let scratch = TempDir::with_prefix("forebay-shard-").context(|| "no temporary folder")?;
    let outcome = block_on(interruptible(reshard(config, args, scratch.path())));
    if let Err(Failure::Interrupted) = &outcome {
        eprintln!("forebay: {}: it can be asked and changed as before: give the command again to go on", args.dataset);
    }
    outcome
}

async fn reshard(config: &Config, args: &ShardReshardArgs, scratch: &Path) -> Outcome {
    let to = match (args.shards, args.size, args.split, args.merge) {
        (Some(shards), ..) => ReshardTo::Shards(shards),
        (_, Some(size), ..) => ReshardTo::BytesEach(size.0),
        (.., Some(shard), _) => ReshardTo::Split(shard),
        (.., Some(shard)) => ReshardTo::Merge(shard),
        (None, None, None, None) => {
            return Err(Error::invalid("--shards, --size, --split or --merge says which shards there are to be").into());
        }
    };
    let client = connect(config).await?;
    let before = Shards::open(&client, &args.dataset).await?.dataset().shards.len();
    let bar: RefCell<Option<ProgressBar>> = RefCell::new(None);
    let show = |step: ReshardStep| {
        let before = bar.borrow_mut().replace(progress::spinner(&step.to_string()));
        before.iter().for_each(ProgressBar::finish_and_clear);
    };
    let resharded = forebay_shards::reshard(&client, &args.dataset, to, scratch, show).await;
    bar.borrow().iter().for_each(ProgressBar::finish_and_clear);
    print(args.json, &Resharded::of(&resharded?, before))
}

fn print(is_json: bool, resharded: &Resharded) -> Outcome {
    let Resharded { dataset, before, shards, bytes, .. } = resharded;
    show(is_json, resharded, |output| {
        output.line(&match before == shards {
            true => format!("{dataset}: it has {before} shards already"),
            false => format!("{dataset}: {shards} shards in place of {before}, {} in shared storage", format_bytes(*bytes)),
        })
    })
}
