//! A dataset that is given other shards again and again, by processes of which many are killed in the midst of it.

use std::io::{self, Error};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::time::sleep;

use super::Task;
use crate::cluster::Commands;

/// How many shards it is to have, one after the other.
const COUNTS: [&str; 4] = ["3", "1", "4", "2"];
/// A process that takes longer is killed, in milliseconds.
const GOES_ON_MS: Range<u64> = 200..6_000;
const PAUSE: Duration = Duration::from_millis(300);

/// The processes, one after the other.
pub struct Resharding {
    pub(super) task: Task,
    seen: Arc<Mutex<Seen>>,
}

/// What became of them.
#[derive(Default)]
struct Seen {
    killed: usize,
    done: usize,
    /// What the last one said that was neither.
    refused: String,
}

impl Resharding {
    /// Begins with a dataset; `seed` says when its processes are killed.
    pub(super) fn begin(commands: Commands, dataset: String, seed: u64) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let told = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let mut chance = StdRng::seed_from_u64(seed);
            for count in COUNTS.into_iter().cycle() {
                let within = Duration::from_millis(chance.random_range(GOES_ON_MS));
                let ran = commands.run(&["shard", "reshard", &dataset, "--shards", count], &[], within).await;
                {
                    let mut seen = told.lock();
                    match ran {
                        Ok(None) => seen.killed += 1,
                        Ok(Some(ran)) if ran.code == Some(0) => seen.done += 1,
                        Ok(Some(ran)) => seen.refused = ran.stderr,
                        Err(error) => seen.refused = error.to_string(),
                    }
                }
                sleep(PAUSE).await;
            }
        });
        Self { task: Some(task), seen }
    }

    /// An error where none has done anything: then nothing was tried.
    pub(super) fn end(&self) -> io::Result<()> {
        let seen = self.seen.lock();
        match seen.killed + seen.done {
            0 => Err(Error::other(format!("the dataset was given no other shards: {}", seen.refused))),
            _ => Ok(()),
        }
    }
}
