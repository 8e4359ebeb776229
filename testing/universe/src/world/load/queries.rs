//! Queries over ranges of objects, run by executors: each row of an answer is there once, and is what one version has, the one that the query
//! was planned with.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use forebay_client::Client;
use forebay_jobs::{RUN_AGAIN, Ticket};
use forebay_oracle::Rule;
use forebay_oracle::contents::{self, RANGE_BYTES_MIN};
use forebay_oracle::history::Door;
use forebay_oracle::load::{GIVEN_UP_AFTER, objects, pause};
use forebay_runtime::time::{sleep, timeout};
use forebay_types::{ErrorKind, ObjectInfo, Result};
use rand::Rng;
use rand::rngs::StdRng;
use xxhash_rust::xxh3::xxh3_64;

use super::{ALL, START_MAX, STILL, path};
use crate::world::course::Course;
use crate::world::queries::{Ended, Fetch, OfScheduler, Piece, Query, Row, ToScheduler, ask, scheduler_address};

const PAUSE: Duration = Duration::from_millis(1_500);
/// Objects of a query at most, ranges of each, and partitions of the stage between the first and the last.
const OBJECTS: usize = 3;
const RANGES: usize = 4;
const PARTITIONS: usize = 4;
const RANGE_BYTES_MAX: u64 = 16_000;
/// How often a query is run whose job was lost, and the time before.
const TRIES: usize = 8;
const AGAIN_AFTER: Duration = Duration::from_millis(500);
const FETCHED_WITHIN: Duration = Duration::from_secs(10);
/// How long one may take that nothing stands in the way of any more.
const LOOKED_WITHIN: Duration = Duration::from_secs(60);

/// Why there is no answer.
#[derive(Debug)]
enum NoAnswer {
    /// What it was planned with has changed.
    Conflict(String),
    /// It may be asked again.
    Retry(String),
    /// It says something else.
    Other(String),
}

/// Asks queries until the load ends.
pub(super) async fn asks(client: Client, course: Arc<Course>, number: usize, mut chance: StdRng) {
    while course.calls.goes_on() {
        pause(&mut chance, course.paced(PAUSE)).await;
        // What is written once is read as often as all that changes.
        let keys = if chance.random() { STILL } else { ALL };
        let keys: BTreeSet<u32> = (0..chance.random_range(1..=OBJECTS)).map(|_| chance.random_range(keys.clone())).collect();
        let asked = timeout(GIVEN_UP_AFTER, query(&client, &course, &keys, &mut chance)).await;
        let came = asked.unwrap_or_else(|_| Err(NoAnswer::Retry(format!("no answer within {GIVEN_UP_AFTER:?}"))));
        match came {
            Ok(()) => course.queries.count("answered", 1),
            Err(NoAnswer::Conflict(error)) if keys.iter().all(|key| STILL.contains(key)) => {
                course.wrong(Rule::AsksAgain, format!("a query of client {number} over what does not change: {error}"));
            }
            Err(NoAnswer::Conflict(_)) => course.queries.count("conflict", 1),
            Err(NoAnswer::Retry(error)) => {
                tracing::debug!(number, error, "a query without an answer");
                course.queries.count("retry", 1);
            }
            Err(NoAnswer::Other(error)) => {
                course.wrong(Rule::AsksAgain, format!("a query of client {number} over {keys:?} says {error}"));
            }
        }
    }
}

/// Once nothing goes wrong any more: a query is answered.
pub(super) async fn looks(client: &Client, course: &Course, mut chance: StdRng) {
    let keys: BTreeSet<u32> = STILL.collect();
    let mut last = NoAnswer::Retry("it was not asked".to_owned());
    let looked = async {
        while let Err(error) = query(client, course, &keys, &mut chance).await {
            last = error;
            sleep(AGAIN_AFTER).await;
        }
    };
    match timeout(LOOKED_WITHIN, looked).await {
        Ok(()) => course.queries.count("answered", 1),
        Err(_) => course.wrong(Rule::Recovers, format!("a query is not answered though nothing is wrong: {last:?}")),
    }
}

/// Runs a query, and holds its rows against what its versions have.
async fn query(client: &Client, course: &Course, keys: &BTreeSet<u32>, chance: &mut StdRng) -> Result<(), NoAnswer> {
    let begin_us = course.calls.recorder.now_us();
    let mut pieces = Vec::new();
    let mut pins = Vec::new();
    for key in keys {
        let pin = client.open(&path(*key)).await.map_err(|error| sorted(error.kind(), &error.to_string()))?;
        for _ in 0..chance.random_range(1..=RANGES) {
            let start = chance.random_range(0..START_MAX);
            let len = chance.random_range(RANGE_BYTES_MIN..RANGE_BYTES_MAX).min(pin.version.size - start);
            pieces.push(Piece { key: *key, version: pin.version.clone(), start, len });
        }
        pins.push((*key, pin));
    }
    let versions: Vec<ObjectInfo> = pins.iter().map(|(_, pin)| pin.clone()).collect();
    let ticket = Ticket { sql: format!("ranges of {keys:?}"), pins: versions, ..Ticket::silent(client.operation()) };
    let query = Query { ticket, pieces, stages: vec![chance.random_range(1..=PARTITIONS), 1] };
    let rows = answered(client, course, &query).await?;
    if let Some(what) = differs(&query, &rows) {
        course.wrong(Rule::RowsOnce, what);
        return Ok(());
    }
    for (key, pin) in pins {
        let etag = objects::tag(pin.version.tag.as_str());
        // One says it of all, since they are of one version.
        let of_it = rows.iter().find(|row| query.pieces[row.place].key == key);
        let Some((row, piece)) = of_it.map(|row| (row, &query.pieces[row.place])) else { continue };
        let bytes = contents::bytes(key, row.version).slice(piece.start as usize..(piece.start + piece.len) as usize);
        course.calls.recorder.add_read(begin_us, Door::Remote, (key, piece.start, piece.len), Ok((bytes, etag)));
    }
    Ok(())
}

fn sorted(kind: ErrorKind, error: &str) -> NoAnswer {
    let error = format!("{kind}: {error}");
    match kind {
        ErrorKind::Conflict => NoAnswer::Conflict(error),
        ErrorKind::Retry => NoAnswer::Retry(error),
        _ => NoAnswer::Other(error),
    }
}

/// The rows of a query, which is run again as often as its job was lost.
async fn answered(client: &Client, course: &Course, query: &Query) -> Result<Vec<Row>, NoAnswer> {
    let mut at = scheduler_address(0);
    let mut tries = 1;
    loop {
        // What the coordinator does not know, or can't say now, changes nothing.
        if let Ok(Some(known)) = client.scheduler().await {
            at = known;
        }
        let error = match ask(&at, &ToScheduler::Run(query.clone()), GIVEN_UP_AFTER).await {
            Ok(OfScheduler::Over(Ended::Done(outputs))) => {
                let mut rows = Vec::new();
                for output in &outputs {
                    let fetch = Fetch { file: output.file.clone() };
                    let fetched = ask::<Option<Vec<Row>>>(&output.address, &fetch, FETCHED_WITHIN).await;
                    let Ok(Some(of_output)) = fetched else { break };
                    rows.push(of_output);
                }
                if rows.len() == outputs.len() {
                    return Ok(rows.concat());
                }
                "its results are gone".to_owned()
            }
            Ok(OfScheduler::Over(Ended::Failed(error))) if error.contains(RUN_AGAIN) => error,
            Ok(OfScheduler::Over(Ended::Failed(error))) => {
                return Err(match error.split_once(':').map_or("", |(kind, _)| kind) {
                    "conflict" => NoAnswer::Conflict(error),
                    "retry" => NoAnswer::Retry(error),
                    _ => NoAnswer::Other(error),
                });
            }
            Ok(OfScheduler::Work(_)) => return Err(NoAnswer::Other("a scheduler gave a task to who asks for rows".to_owned())),
            // The scheduler is away, or has ended, and the job with it: another one comes.
            Err(_) => {
                sleep(AGAIN_AFTER).await;
                continue;
            }
        };
        if tries == TRIES {
            return Err(NoAnswer::Retry(error));
        }
        course.queries.count("again", 1);
        tries += 1;
        sleep(AGAIN_AFTER).await;
    }
}

/// What is wrong with the rows of an answer.
fn differs(query: &Query, rows: &[Row]) -> Option<String> {
    let mut sorted: Vec<&Row> = rows.iter().collect();
    sorted.sort_unstable();
    let places: Vec<usize> = sorted.iter().map(|row| row.place).collect();
    if !places.iter().copied().eq(0..query.pieces.len()) {
        return Some(format!("a query of {} rows is answered with {places:?}", query.pieces.len()));
    }
    for (row, piece) in sorted.iter().zip(&query.pieces) {
        let (key, range) = (piece.key, piece.start as usize..(piece.start + piece.len) as usize);
        let of_version = (row.version > 0).then(|| contents::bytes(key, row.version));
        let is_right = of_version.and_then(|bytes| Some(xxh3_64(bytes.get(range)?))) == Some(row.hash);
        if !is_right {
            return Some(format!("a row of object {key} is of no version: {row:?}"));
        }
        let others = sorted.iter().zip(&query.pieces).filter(|(_, other)| other.key == key);
        if others.clone().any(|(other, _)| other.version != row.version) {
            return Some(format!(
                "rows of object {key} are of two versions: {:?}",
                others.map(|(row, _)| row.version).collect::<Vec<_>>()
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use forebay_types::{Key, MountId, ObjectVersion, OperationId, VersionTag};

    use super::*;

    fn row(place: usize, key: u32, version: u32) -> Row {
        Row { place, version, hash: xxh3_64(&contents::bytes(key, version)[..64]) }
    }

    #[test]
    fn an_answer_has_each_row_once_and_of_one_version() {
        let key = STILL.start;
        let version =
            ObjectVersion { mount: MountId(1), key: Key::new("a").unwrap(), tag: VersionTag::etag("\"1\""), size: 100_000 };
        let piece = |key| Piece { key, version: version.clone(), start: 0, len: 64 };
        let query = Query { ticket: Ticket::silent(OperationId(1)), pieces: vec![piece(key), piece(key)], stages: vec![1] };
        let right = [row(1, key, 3), row(0, key, 3)];
        assert_eq!(differs(&query, &right), None, "in any order");
        let twice = [&right[..], &[row(1, key, 3)]].concat();
        let is_wrong = |rows: &[Row]| differs(&query, rows).is_some();
        assert!(is_wrong(&right[..1]) && is_wrong(&twice) && is_wrong(&[row(0, key, 3), row(0, key, 3)]));
        assert!(is_wrong(&[row(0, key, 3), row(1, key, 4)]), "of two versions");
        assert!(is_wrong(&[row(0, key, 3), row(1, key + 1, 3)]), "of another object");
        assert!(is_wrong(&[row(0, key, 3), Row { version: 0, ..row(1, key, 3) }]));
    }
}
