//! Clients that read files of the folder that may hang, by the client's API over TCP.

use std::sync::Arc;
use std::time::Duration;

use forebay_client::Client;
use forebay_oracle::contents::RANGE_BYTES_MIN;
use forebay_oracle::history::{Call, Door, What};
use forebay_oracle::load::{Shared, answered, objects, pause};
use forebay_oracle::{Rule, Violation};
use forebay_types::ForebayPath;
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::cluster::{FOLDER, FOLDER_KEYS};

const READ_PAUSE: Duration = Duration::from_millis(50);
/// Where ranges begin at the latest: every version is longer.
const START_MAX: u64 = 30_000;
const BYTES_MAX: u64 = 100_000;
/// What a read of something else may take while the folder hangs, in microseconds.
const UNHINDERED_US: u64 = 5_000_000;

/// Takes down that the files were there from the beginning.
pub(super) fn begin(shared: &Shared) {
    for key in FOLDER_KEYS {
        shared.recorder.add(shared.recorder.now_us(), Door::Store, What::Write { key, version: 1, etag: None }, None);
    }
}

/// Reads until the load ends.
pub(super) async fn reads(client: Client, shared: Arc<Shared>, mut chance: StdRng) {
    while shared.goes_on() {
        let key = *FOLDER_KEYS.choose(&mut chance).expect("there are some");
        let (start, bytes) = (chance.random_range(0..START_MAX), chance.random_range(RANGE_BYTES_MIN..BYTES_MAX));
        let path: ForebayPath = format!("/{FOLDER}/{key}").parse().expect("a legal path");
        let begin_us = shared.recorder.now_us();
        let read = answered(objects::get(&client, &path, start, bytes, None)).await;
        shared.recorder.add_read(begin_us, Door::Remote, (key, start, bytes), read);
        pause(&mut chance, READ_PAUSE).await;
    }
}

/// Reads of other mounts that a folder which hangs between two times has held up, or failed.
pub fn held_up(calls: &[Call], struck_us: u64, healed_us: u64) -> Option<Violation> {
    let is_held_up = |call: &&Call| {
        let is_other = matches!(&call.what, What::Read { key, .. } if !FOLDER_KEYS.contains(key));
        let is_during = (struck_us..healed_us).contains(&call.begin_us);
        is_other && is_during && (call.error.is_some() || call.end_us - call.begin_us > UNHINDERED_US)
    };
    let held_up: Vec<&Call> = calls.iter().filter(is_held_up).collect();
    let first = held_up.first()?;
    let what = format!("{} reads of others while a folder hung, the first: {:?}", held_up.len(), first);
    Some(Violation::new(Rule::Recovers, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_something_else_is_not_held_up() {
        let read = |key, begin_us, end_us| Call {
            begin_us,
            end_us,
            door: Door::Gateway,
            what: What::Read { key, start: 0, seen: None },
            error: None,
        };
        let (soon, late) = (20_100_000, 29_000_000);
        let fine = [read(1, 20_000_000, soon), read(FOLDER_KEYS[0], 20_000_000, late), read(1, 5_000_000, 15_000_000)];
        assert_eq!(held_up(&fine, 10_000_000, 30_000_000), None);
        assert!(held_up(&[read(1, 20_000_000, late)], 10_000_000, 30_000_000).is_some());
    }
}
