//! What is done to a dataset of shards while it is asked and changed: other shards, merges, refreshes.

mod merge;
mod refresh;
mod reshard;

use std::io::{self, Error};
use std::sync::Arc;

use forebay_oracle::Violation;
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, Ran};
use crate::load;
use refresh::Refreshing;

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
            Work::Reshards => tokio::spawn(reshard::run(cluster.commands(), dataset, seed, told)),
            Work::Merges => tokio::spawn(merge::run(cluster.client(true).await?, dataset.parse().map_err(Error::other)?, told)),
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
