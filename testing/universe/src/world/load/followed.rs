//! A dataset that follows objects which change: once all is well, its records are what the objects say.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_client::{Client, PutCondition};
use forebay_oracle::Rule;
use forebay_oracle::load::{GIVEN_UP_AFTER, objects, pause};
use forebay_runtime::time::{sleep, timeout};
use forebay_shard::{Key, Value};
use forebay_shard_store::{Columns, Literal, Store};
use forebay_shards::{ReadRecords, Records, Shards, create, latest_manifest};
use forebay_types::{Error, ErrorKind, ForebayPath, Result};
use rand::Rng;
use rand::rngs::StdRng;

use super::sets::columns;
use crate::world::course::Course;

const DATASET: &str = "/fresh/followed.shards";
const FROM: &str = "/fresh/followed/";
const SIZE: f64 = 0.5;
/// Objects, and how far the keys of one are from those of the next.
const OBJECTS: u64 = 3;
const APART: u64 = 100;
/// Records of a version at most.
const RECORDS: u64 = 8;
const PAUSE: Duration = Duration::from_secs(3);
/// No worker looks by itself: none of a world knows what the objects are.
const BY_ORDER: Duration = Duration::from_secs(365 * 24 * 3600);
/// A refresh goes on for so long. What it has asked for is done or not this long afterwards, and the next one may begin.
const GOES_ON: Duration = Duration::from_secs(20);
const DONE_AFTER: Duration = Duration::from_secs(65);
/// The same once nothing stands in its way.
const RESTS: Duration = Duration::from_secs(10);
const LOOKED_WITHIN: Duration = Duration::from_secs(30);
const TRIED_EVERY: Duration = Duration::from_secs(1);

/// Reads lines as `101,text`.
struct Lines;

impl ReadRecords for Lines {
    fn read(&self, file: &Path, _columns: &Columns, each: &mut dyn FnMut(Records) -> Result<()>) -> Result<()> {
        let records = records_of(&std::fs::read_to_string(file)?);
        each(records.into_iter().map(|(key, text)| (Key::U64(key), vec![Value::Text(text)])).collect())
    }
}

fn records_of(lines: &str) -> BTreeMap<u64, String> {
    let record = |line: &str| line.split_once(',').and_then(|(key, text)| Some((key.parse::<u64>().ok()?, text.to_owned())));
    lines.lines().filter_map(record).collect()
}

fn path() -> ForebayPath {
    DATASET.parse().expect("a path")
}

/// Who refreshes it says so in this object, and keeps others from it.
fn held() -> ForebayPath {
    format!("{DATASET}/refresh").parse().expect("a path")
}

fn object(number: u64) -> ForebayPath {
    format!("{FROM}{number}").parse().expect("a path")
}

/// Some keys of the object's own, which are others with each version.
fn version(number: u64, version: u64) -> Bytes {
    let keys = (0..RECORDS).filter(|place| !(place + version).is_multiple_of(3)).map(|place| number * APART + place);
    let lines: String = keys.map(|key| format!("{key},of version {version}\n")).collect();
    lines.into()
}

/// Makes the dataset, then changes its objects and refreshes it until the load ends.
pub(super) async fn follows(client: Client, course: Arc<Course>, mut chance: StdRng) {
    for number in 0_u64.. {
        if !course.calls.goes_on() {
            return;
        }
        if matches!(latest_manifest(&client, &path()).await, Ok(Some(_))) {
            break;
        }
        let made = make(&client, &course.folder.join(format!("followed-{number}"))).await;
        tracing::debug!(number, ?made, "the dataset that follows objects");
        sleep(TRIED_EVERY).await;
    }
    let mut held_since = None;
    for step in 1_u64.. {
        pause(&mut chance, course.paced(PAUSE)).await;
        if !course.calls.goes_on() {
            return;
        }
        let number = chance.random_range(0..OBJECTS);
        let at = object(number);
        let changed = match chance.random_ratio(1, 6) {
            true => timeout(GOES_ON, client.delete(&at)).await.map(|deleted| deleted.is_ok()),
            false => {
                let put = client.put(&at, version(number, step), PutCondition::Any);
                timeout(GOES_ON, put).await.map(|put| put.is_ok())
            }
        };
        tracing::debug!(step, ?changed, "an object that is followed");
        // Whoever ends while he refreshes keeps others from it for ten minutes, unless he is known to be gone.
        if held_since.is_some_and(|since: Instant| since.elapsed() > DONE_AFTER) {
            let _ = timeout(GIVEN_UP_AFTER, client.delete(&held())).await;
            held_since = None;
        }
        if held_since.is_none() {
            let refreshed = timeout(GOES_ON, refresh(&client, &course)).await;
            tracing::debug!(step, ?refreshed, "a refresh");
            held_since = (!matches!(refreshed, Ok(Ok(())))).then(Instant::now);
        }
    }
}

async fn refresh(client: &Client, course: &Course) -> Result<()> {
    let scratch = course.folder.join("refresh");
    std::fs::create_dir_all(&scratch)?;
    let refreshed = forebay_shards::refresh(client, &path(), Arc::new(Lines), &scratch).await?;
    if let Some(error) = refreshed.errors.first() { Err(Error::retry(error.clone())) } else { Ok(()) }
}

async fn make(client: &Client, folder: &Path) -> Result<()> {
    let mut building = Store::build(folder, columns()?, SIZE)?;
    // That came from no object.
    building.push(Key::U64(OBJECTS * APART), vec![Value::Text("as it was built".to_owned())])?;
    building.finish()?;
    let mut creating = create(client, &path(), columns()?, vec![SIZE], false).await?;
    creating.follow(vec![FROM.to_owned()], BY_ORDER)?;
    creating.push(folder, |_| {}).await?;
    creating.finish().await.map(drop)
}

/// Once nothing goes wrong any more: after one more refresh it says what the objects say.
pub(super) async fn looks(client: &Client, course: &Course) {
    sleep(RESTS).await;
    let mut last = Error::retry("it was not asked for");
    let looked = async {
        while let Err(error) = look(client, course).await {
            last = error;
            // Nobody refreshes it any more, whatever is said there.
            let _ = client.delete(&held()).await;
            sleep(TRIED_EVERY).await;
        }
    };
    if timeout(LOOKED_WITHIN, looked).await.is_err() {
        course.wrong(Rule::Recovers, format!("{DATASET} can't be refreshed: {last}"));
    }
}

async fn look(client: &Client, course: &Course) -> Result<()> {
    if latest_manifest(client, &path()).await?.is_none() {
        return Ok(());
    }
    refresh(client, course).await?;
    let shards = Shards::open(client, &path()).await?;
    for number in 0..OBJECTS {
        let said = match objects::get(client, &object(number), 0, u64::from(u32::MAX), None).await {
            Ok((bytes, _)) => records_of(&String::from_utf8_lossy(&bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        for key in (0..RECORDS).map(|place| number * APART + place) {
            let record = shards.get(&Literal::Number(key.into()), None).await?;
            let text = record.as_ref().and_then(|record| record["text"].as_str());
            if text != said.get(&key).map(String::as_str) {
                let expected = said.get(&key);
                course
                    .wrong(Rule::OneVersion, format!("{DATASET}: the record of {key} is {text:?}, its object has {expected:?}"));
            }
        }
    }
    Ok(())
}
