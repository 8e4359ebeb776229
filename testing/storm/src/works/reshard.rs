//! A dataset that is given other shards again and again, by processes of which many are killed in the midst of it.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::time::sleep;

use super::Seen;
use crate::cluster::Commands;

/// How many shards it is to have, one after the other.
const COUNTS: [&str; 4] = ["3", "1", "4", "2"];
/// A process that takes longer is killed, in milliseconds.
const GOES_ON_MS: Range<u64> = 200..6_000;
const PAUSE: Duration = Duration::from_millis(300);

/// The processes, one after the other; `seed` says when they are killed.
pub(super) async fn run(commands: Commands, dataset: String, seed: u64, seen: Arc<Mutex<Seen>>) {
    let mut chance = StdRng::seed_from_u64(seed);
    for count in COUNTS.into_iter().cycle() {
        let within = Duration::from_millis(chance.random_range(GOES_ON_MS));
        let ran = commands.run(&["shard", "reshard", &dataset, "--shards", count], &[], within).await;
        seen.lock().ran(ran);
        sleep(PAUSE).await;
    }
}
