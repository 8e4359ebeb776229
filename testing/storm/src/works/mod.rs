//! What is done to a dataset of shards while it is asked and changed: other shards, merges, refreshes.

mod merge;
mod refresh;
mod reshard;

use std::io;

use forebay_oracle::Violation;
use tokio::task::JoinHandle;

use crate::cluster::Cluster;
use crate::load;
use merge::Merging;
use refresh::Refreshing;
use reshard::Resharding;

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
pub enum Working {
    /// See [`Work::Reshards`].
    Reshards(Resharding),
    /// See [`Work::Merges`].
    Merges(Merging),
    /// See [`Work::Refreshes`].
    Refreshes(Refreshing),
}

/// Work that goes on; none once it is stopped.
type Task = Option<JoinHandle<()>>;

impl Working {
    /// Begins; `seed` says when processes are killed.
    pub async fn begin(work: Work, cluster: &Cluster, seed: u64) -> io::Result<Self> {
        Ok(match work {
            Work::Reshards => Self::Reshards(Resharding::begin(cluster.commands(), load::dataset(), seed)),
            Work::Merges => Self::Merges(Merging::begin(cluster.owner().await?, &load::dataset())?),
            Work::Refreshes => Self::Refreshes(Refreshing::begin(cluster, seed).await?),
        })
    }

    /// Nothing more is begun, and what is under way is killed.
    pub async fn stop(&mut self) {
        let task = match self {
            Self::Reshards(work) => &mut work.task,
            Self::Merges(work) => &mut work.task,
            Self::Refreshes(work) => &mut work.task,
        };
        if let Some(task) = task.take() {
            task.abort();
            // Ended as it was told to.
            let _ = task.await;
        }
    }

    /// What does not hold of it, once it is stopped and all that was wrong is over. An error where nothing was done: then nothing was tried.
    pub async fn end(self) -> io::Result<Vec<Violation>> {
        match self {
            Self::Reshards(work) => work.end().map(|()| Vec::new()),
            Self::Merges(work) => work.end().map(|()| Vec::new()),
            Self::Refreshes(work) => work.end().await,
        }
    }
}
