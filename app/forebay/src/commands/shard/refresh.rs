//! `forebay shard refresh`.

use std::sync::Arc;
use std::time::Duration;

use forebay_shards::{Follows, Refreshed, Shards};
use forebay_types::{ResultExt, format_duration};
use serde_json::json;
use tempfile::TempDir;

use crate::cli::ShardRefreshArgs;
use crate::config::Config;
use crate::connect::connect;
use crate::exit::Outcome;
use crate::output::{Output, show};
use crate::progress;
use crate::records::Formats;

/// Has a dataset say what the objects say that it follows, or orders how often workers do that.
pub(super) async fn run(config: &Config, args: &ShardRefreshArgs) -> Outcome {
    let client = connect(config).await?;
    if let Some(every) = args.every {
        let shards = Shards::set_refresh(&client, &args.dataset, every.0).await?;
        shards.status().await?;
        let record = json!({"dataset": args.dataset.to_string(), "every_ms": every_ms(&shards)});
        return show(args.json, &record, |output| output.line(&format!("{}: {}", args.dataset, often(every_ms(&shards)))));
    }
    let scratch = TempDir::with_prefix("forebay-refresh-").context(|| "no temporary folder")?;
    let bar = progress::spinner("reading what has changed");
    let done = forebay_shards::refresh(&client, &args.dataset, Arc::new(Formats), scratch.path()).await;
    bar.finish_and_clear();
    let done = done?;
    show(args.json, &done, |output| tell(output, &format!("{}: ", args.dataset), &done))
}

fn tell(output: &mut Output, of: &str, done: &Refreshed) -> Outcome {
    let Refreshed { objects, added, replaced, gone, changes, errors } = done;
    let objects = format!("{objects} objects, of which {added} are new and {replaced} have changed; {gone} have gone");
    output.line(&format!("{of}{objects}; {changes} records written or deleted"))?;
    errors.iter().try_for_each(|error| output.line(&format!("not read, what was read before stays: {error}")))
}

/// What a dataset follows, in words.
pub(super) fn words(follows: &Follows) -> Vec<String> {
    let Follows { following, every_ms, objects, refresh } = follows;
    let mut lines = vec![format!("follows {} ({objects} objects): {}", following.join(", "), often(*every_ms))];
    let Some(state) = refresh else {
        lines.push("not refreshed since it was made".to_string());
        return lines;
    };
    if let Some(ago) = state.age() {
        let ago = format_duration(Duration::from_secs(ago.as_secs()));
        lines.push(format!("refreshed {ago} ago, {} records written or deleted", state.changes));
    }
    if state.is_held() {
        lines.push("it is being refreshed".to_string());
    }
    lines.extend(state.errors.iter().map(|error| format!("the last refresh left out: {error}")));
    lines
}

fn often(every_ms: u64) -> String {
    match every_ms {
        0 => "only when `forebay shard refresh` is called".to_string(),
        every => format!("looked at every {}", format_duration(Duration::from_millis(every))),
    }
}

fn every_ms(shards: &Shards) -> u64 {
    shards.dataset().following.as_ref().map_or(0, |following| following.every_ms)
}
