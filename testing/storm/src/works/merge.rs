//! Merges of a dataset's shards, one after the other, whether there is much to merge or not.

use std::io::{self, Error};
use std::sync::Arc;
use std::time::Duration;

use forebay_client::Client;
use forebay_shards::Shards;
use forebay_types::ForebayPath;
use parking_lot::Mutex;
use tokio::time::sleep;

use super::Task;

const PAUSE: Duration = Duration::from_millis(300);
/// How long a merge asks again by itself.
const PATIENCE: Duration = Duration::from_secs(20);

/// The merges.
pub struct Merging {
    pub(super) task: Task,
    seen: Arc<Mutex<Seen>>,
}

/// What became of them.
#[derive(Default)]
struct Seen {
    done: usize,
    /// What was said of the last one that was not done.
    refused: String,
}

impl Merging {
    pub(super) fn begin(client: Client, dataset: &str) -> io::Result<Self> {
        let path: ForebayPath = dataset.parse().map_err(Error::other)?;
        let seen = Arc::<Mutex<Seen>>::default();
        let told = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            for number in 0_usize.. {
                let merged = merge(&client, &path, number).await;
                {
                    let mut seen = told.lock();
                    match merged {
                        Ok(()) => seen.done += 1,
                        Err(error) => seen.refused = error.to_string(),
                    }
                }
                sleep(PAUSE).await;
            }
        });
        Ok(Self { task: Some(task), seen })
    }

    pub(super) fn end(&self) -> io::Result<()> {
        let seen = self.seen.lock();
        match seen.done {
            0 => Err(Error::other(format!("no shard was merged: {}", seen.refused))),
            _ => Ok(()),
        }
    }
}

async fn merge(client: &Client, path: &ForebayPath, number: usize) -> forebay_types::Result<()> {
    let shards = Shards::open(client, path).await?.with_patience(PATIENCE);
    shards.merge_shard(number % shards.dataset().shards.len()).await
}
