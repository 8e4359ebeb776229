//! What is done to a dataset of shards while it is asked and changed: other shards, merges, refreshes.

mod refresh;

use std::io::{self, Error};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use forebay_client::Client;
use forebay_oracle::Violation;
use forebay_shards::Shards;
use forebay_types::ForebayPath;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::cluster::{Cluster, Commands, Ran};
use crate::load;
use refresh::Refreshing;

const PAUSE: Duration = Duration::from_millis(300);
/// How long a merge asks again by itself.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many shards it is to have, one after the other.
const COUNTS: [&str; 4] = ["3", "1", "4", "2"];
/// A process that takes longer is killed, in milliseconds.
const GOES_ON_MS: Range<u64> = 200..6_000;

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The dataset of records is given other shards again and again, by processes that are killed in the midst of it.
    Reshards,
    /// Its shards are merged again and again, by the workers that are told to.
    Merges,
    /// Another one is refreshed again and again, by processes that are killed in the midst of it.
    Refreshes,
}

/// One of them that goes on.
pub struct Working {
    work: Work,
    /// None once it is stopped.
    task: Option<JoinHandle<()>>,
    seen: Arc<Mutex<Seen>>,
    refreshing: Option<Refreshing>,
}

/// What became of one after the other.
#[derive(Default)]
struct Seen {
    /// Those that did something: were done, or killed in the midst of it.
    tried: usize,
    /// What was said of the last one that did nothing.
    refused: String,
}

impl Seen {
    fn add(&mut self, done: Result<(), String>) {
        if let Err(refused) = done { self.refused = refused } else { self.tried += 1 }
    }

    /// What became of a process; none where it was killed.
    fn ran(&mut self, ran: io::Result<Option<Ran>>) {
        self.add(match ran {
            Ok(None | Some(Ran { code: Some(0), .. })) => Ok(()),
            Ok(Some(ran)) => Err(ran.stderr),
            Err(error) => Err(error.to_string()),
        });
    }
}

impl Working {
    /// Begins; `seed` says when processes are killed.
    pub async fn begin(work: Work, cluster: &Cluster, seed: u64) -> io::Result<Self> {
        let seen = Arc::<Mutex<Seen>>::default();
        let (told, dataset, mut refreshing) = (Arc::clone(&seen), load::dataset(), None);
        let task = match work {
            Work::Reshards => tokio::spawn(reshards(cluster.commands(), dataset, seed, told)),
            Work::Merges => tokio::spawn(merges(cluster.client(true).await?, dataset.parse().map_err(Error::other)?, told)),
            Work::Refreshes => {
                let made = Refreshing::make(cluster).await?;
                tokio::spawn(refreshing.insert(made).clone().run(told, seed))
            }
        };
        Ok(Self { work, task: Some(task), seen, refreshing })
    }

    /// Nothing more is begun, and what is under way is killed.
    pub async fn stop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            // Ended as it was told to.
            let _ = task.await;
        }
    }

    /// What does not hold of it, once it is stopped and all that was wrong is over. An error where nothing was done: then nothing was tried.
    pub async fn end(self) -> io::Result<Vec<Violation>> {
        let what = match self.work {
            Work::Reshards => "the dataset was given no other shards",
            Work::Merges => "no shard was merged",
            Work::Refreshes => "the dataset was not refreshed",
        };
        let Seen { tried, refused } = std::mem::take(&mut *self.seen.lock());
        match self.refreshing {
            _ if tried == 0 => Err(Error::other(format!("{what}: {refused}"))),
            Some(refreshing) => refreshing.end().await,
            None => Ok(Vec::new()),
        }
    }
}

/// A dataset is given other shards by processes, one after the other, of which many are killed in the midst of it: `seed` says when.
async fn reshards(commands: Commands, dataset: String, seed: u64, seen: Arc<Mutex<Seen>>) {
    let mut chance = StdRng::seed_from_u64(seed);
    for count in COUNTS.into_iter().cycle() {
        let within = Duration::from_millis(chance.random_range(GOES_ON_MS));
        let ran = commands.run(&["shard", "reshard", &dataset, "--shards", count], &[], within).await;
        seen.lock().ran(ran);
        sleep(PAUSE).await;
    }
}

/// Merges of a dataset's shards, one after the other, whether there is much to merge or not.
async fn merges(client: Client, dataset: ForebayPath, seen: Arc<Mutex<Seen>>) {
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
