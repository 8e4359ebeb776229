//! Merges of a dataset's shards, one after the other, whether there is much to merge or not.

use std::sync::Arc;
use std::time::Duration;

use forebay_client::Client;
use forebay_shards::Shards;
use forebay_types::ForebayPath;
use parking_lot::Mutex;
use tokio::time::sleep;

use super::Seen;

const PAUSE: Duration = Duration::from_millis(300);
/// How long a merge asks again by itself.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) async fn run(client: Client, dataset: ForebayPath, seen: Arc<Mutex<Seen>>) {
    for number in 0_usize.. {
        let merged = merge(&client, &dataset, number).await;
        seen.lock().add(merged.map_err(|error| error.to_string()));
        sleep(PAUSE).await;
    }
}

async fn merge(client: &Client, path: &ForebayPath, number: usize) -> forebay_types::Result<()> {
    let shards = Shards::open(client, path).await?.with_patience(PATIENCE);
    shards.merge_shard(number % shards.dataset().shards.len()).await
}
