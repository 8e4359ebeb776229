//! Datasets of shards, by a program that ends in the midst of making one as often as not: what has a manifest has its records.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay_client::Client;
use forebay_oracle::Rule;
use forebay_oracle::load::pause;
use forebay_runtime::time::{sleep, timeout};
use forebay_shard::{Key, Value};
use forebay_shard_store::{Column, ColumnKind, Columns, Literal, Store};
use forebay_shards::{Shards, create, latest_manifest};
use forebay_types::{Error, ForebayPath, Result};
use rand::Rng;
use rand::rngs::StdRng;

use crate::world::course::Course;

const PAUSE: Duration = Duration::from_secs(6);
/// The program goes on for so long, in milliseconds.
const GOES_ON_MS: std::ops::Range<u64> = 50..1_000;
const RECORDS: u64 = 20;
const SIZE: f64 = 0.5;
/// How long a record may take that nothing stands in the way of any more, and how often it is asked for.
const READ_WITHIN: Duration = Duration::from_secs(60);
const READ_EVERY: Duration = Duration::from_secs(2);

/// Makes datasets until the load ends; how many were begun.
pub(super) async fn makes(client: Client, course: Arc<Course>, mut chance: StdRng) {
    while course.calls.goes_on() {
        pause(&mut chance, course.paced(PAUSE)).await;
        let number = course.begin_set();
        let goes_on = Duration::from_millis(chance.random_range(GOES_ON_MS));
        let made = timeout(goes_on, make(&client, &course.folder.join(format!("set-{number}")), number)).await;
        tracing::debug!(number, ?made, "a dataset");
    }
}

async fn make(client: &Client, folder: &Path, number: u64) -> Result<()> {
    let mut building = Store::build(folder, columns()?, SIZE)?;
    for key in 0..RECORDS {
        building.push(Key::U64(key), vec![Value::Text(text(number, key))])?;
    }
    building.finish()?;
    let mut creating = create(client, &path(number), columns()?, vec![SIZE], false).await?;
    creating.push(folder, |_| {}).await?;
    creating.finish().await.map(drop)
}

/// Once nothing goes wrong any more: all that there is can be read.
pub(super) async fn looks(client: &Client, course: &Course) {
    for number in 0..course.sets() {
        let mut last = Error::retry("it was not asked for");
        let looked = async {
            while let Err(error) = look(client, course, number).await {
                last = error;
                sleep(READ_EVERY).await;
            }
        };
        if timeout(READ_WITHIN, looked).await.is_err() {
            course.wrong(Rule::NotLost, format!("dataset {number} can't be read: {last}"));
        }
    }
}

async fn look(client: &Client, course: &Course, number: u64) -> Result<()> {
    if latest_manifest(client, &path(number)).await?.is_none() {
        return Ok(());
    }
    let shards = Shards::open(client, &path(number)).await?;
    let key = number % RECORDS;
    let record = shards.get(&Literal::Number(key.into()), None).await?;
    let read = record.as_ref().and_then(|record| record["text"].as_str());
    if read != Some(&text(number, key)) {
        course.wrong(Rule::OneVersion, format!("dataset {number}: the record of {key} is {record:?}"));
    }
    Ok(())
}

/// Of all datasets.
pub(super) fn columns() -> Result<Columns> {
    Columns::new(vec![Column::new("id", ColumnKind::Uint), Column::new("text", ColumnKind::Text)], "id")
}

fn text(number: u64, key: u64) -> String {
    format!("record {key} of dataset {number}")
}

fn path(number: u64) -> ForebayPath {
    format!("/fresh/sets/{number}").parse().expect("a path")
}
