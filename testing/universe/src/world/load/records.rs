//! Records of a dataset that all clients put, delete, read and search, while programs merge it, give it other shards and order something of its
//! replicas. Such a program ends in the midst of it as often as not.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_client::Client;
use forebay_oracle::load::{GIVEN_UP_AFTER, of_client, pause};
use forebay_oracle::{RecordCall, RecordOp, Rule};
use forebay_runtime::time::{sleep, timeout};
use forebay_shard::{Key, KeyMap, Value};
use forebay_shard_store::{
    Acknowledged, ChangeIf, DatasetOrders, DatasetPin, Literal, LogObject, LogPlace, Store, manifest_number,
};
use forebay_shards::{ReshardTo, Shards, create, latest_manifest};
use forebay_types::{Error, ForebayPath, Result};
use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Value as Json, json};

use super::sets::columns;
use crate::world::course::{Course, FIRST_KEY, KEYS};

const DATASET: &str = "/fresh/records.shards";
const SHARDS: usize = 2;
const SIZES: [f64; 2] = [0.5, 0.5];
/// Records that nobody changes.
const STILL: u64 = 20;
const CALL_PAUSE: Duration = Duration::from_millis(1_500);
const WORK_PAUSE: Duration = Duration::from_secs(4);
/// A program that works on the dataset goes on for so long, in milliseconds.
const GOES_ON_MS: Range<u64> = 50..5_000;
/// How long a call asks again by itself.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long all may take that nothing stands in the way of any more, and how often it is tried.
const LOOKED_WITHIN: Duration = Duration::from_secs(40);
const TRIED_EVERY: Duration = Duration::from_secs(1);

fn path() -> ForebayPath {
    DATASET.parse().expect("a path")
}

fn text_of(record: &Json) -> String {
    record["text"].as_str().unwrap_or_default().to_owned()
}

/// Calls of a client until the load ends.
pub(super) async fn asks(client: Client, course: Arc<Course>, number: usize, mut chance: StdRng) {
    let shards = loop {
        if !course.calls.goes_on() {
            return;
        }
        match Shards::open(&client, &path()).await {
            Ok(shards) => break shards.with_patience(PATIENCE),
            Err(_) => sleep(TRIED_EVERY).await,
        }
    };
    let mut last: BTreeMap<u64, String> = BTreeMap::new();
    for step in 0_u64.. {
        pause(&mut chance, course.paced(CALL_PAUSE)).await;
        if !course.calls.goes_on() {
            break;
        }
        let key = course.records.keys.lock().at(chance.random_range(0..KEYS));
        match chance.random_range(0..10) {
            0..4 => drop(read(&shards, &course, key).await),
            4..7 => {
                let text = format!("of client {number}, step {step}");
                last.insert(key, text.clone());
                write(&shards, &course, key, Some(text)).await;
            }
            7 => write(&shards, &course, key, None).await,
            _ => {
                if let Some(text) = last.get(&key) {
                    search(&shards, &course, key, text.clone()).await;
                }
            }
        }
    }
}

fn done(course: &Course, key: u64, began: Instant, is_certain: bool, op: RecordOp) {
    let ended = is_certain.then(Instant::now);
    course.records.calls.lock().push(RecordCall { key, began, ended, op });
}

async fn read(shards: &Shards, course: &Course, key: u64) -> Result<()> {
    let began = Instant::now();
    let asked = timeout(GIVEN_UP_AFTER, shards.get(&Literal::Number(key.into()), None)).await;
    let record = asked.map_err(|_| Error::retry("no answer"))??;
    done(course, key, began, true, RecordOp::Read(record.as_ref().map(text_of)));
    Ok(())
}

/// Puts a record with a text, or deletes it.
async fn write(shards: &Shards, course: &Course, key: u64, text: Option<String>) {
    let began = Instant::now();
    let record = json!({"id": key, "text": text});
    let changing = async {
        match (&text, record.as_object()) {
            (Some(_), Some(record)) => shards.put(record, ChangeIf::Always).await,
            _ => shards.delete(&Literal::Number(key.into()), ChangeIf::Always).await,
        }
    };
    let is_certain = match timeout(GIVEN_UP_AFTER, changing).await {
        Ok(Ok(_)) => true,
        Ok(Err(error)) if of_client(&error).no_effect => return,
        _ => false,
    };
    if !is_certain {
        course.records.keys.lock().leave(key);
    }
    done(course, key, began, is_certain, RecordOp::Write(text));
}

/// Whether a search for a text finds the record that was put with it.
async fn search(shards: &Shards, course: &Course, key: u64, text: String) {
    let began = Instant::now();
    let condition = json!({"attr": "text", "eq": text});
    if let Ok(Ok(keys)) = timeout(GIVEN_UP_AFTER, shards.search(&condition, None, Some(10))).await {
        done(course, key, began, true, RecordOp::Found(text, keys.contains(&Key::U64(key))));
    }
}

/// Makes the dataset, then works on it until the load ends.
pub(super) async fn works(client: Client, course: Arc<Course>, mut chance: StdRng) {
    let ack = if course.crowd.has_two_disks { Acknowledged::TwoWorkers } else { Acknowledged::Storage };
    for number in 0_u64.. {
        if !course.calls.goes_on() {
            return;
        }
        if matches!(latest_manifest(&client, &path()).await, Ok(Some(_))) {
            break;
        }
        let made = make(&client, ack, &course.folder.join(format!("records-{number}"))).await;
        tracing::debug!(number, ?made, "the dataset of records");
        sleep(TRIED_EVERY).await;
    }
    for number in 0_u64.. {
        pause(&mut chance, course.paced(WORK_PAUSE)).await;
        if !course.calls.goes_on() {
            return;
        }
        let goes_on = Duration::from_millis(chance.random_range(GOES_ON_MS));
        let (which, count) = (chance.random_range(0..6), chance.random_range(1..4));
        let scratch = course.folder.join(format!("recut-{number}"));
        let worked = timeout(goes_on, work(&client, ack, (which, count), &scratch)).await;
        tracing::debug!(number, which, count, ?worked, "work on the dataset of records");
    }
}

async fn work(client: &Client, ack: Acknowledged, (which, count): (u32, u32), scratch: &Path) -> Result<()> {
    match which {
        0 | 1 => Shards::open(client, &path()).await?.with_patience(PATIENCE).merge_shard(which as usize).await,
        2 | 3 => {
            std::fs::create_dir_all(scratch)?;
            forebay_shards::reshard(client, &path(), ReshardTo::Shards(count), scratch, |_| {}).await.map(drop)
        }
        _ => {
            // Now and then by the store, also where two disks do so.
            let ack = if count == 2 { Acknowledged::Storage } else { ack };
            let orders = DatasetOrders { pin: (count > 1).then(DatasetPin::default), frozen: count > 2, ack };
            Shards::set_orders(client, &path(), |ordered| *ordered = orders).await.map(drop)
        }
    }
}

async fn make(client: &Client, ack: Acknowledged, folder: &Path) -> Result<()> {
    let mut creating = create(client, &path(), columns()?, SIZES.to_vec(), false).await?;
    creating.acknowledge(ack);
    for shard in 0..SHARDS {
        let part = folder.join(format!("{shard}"));
        std::fs::create_dir_all(folder)?;
        let mut building = Store::build(&part, columns()?, SIZES[0])?;
        for number in (0..STILL).filter(|number| KeyMap::Hash(SHARDS).shard_of(&Key::U64(*number)) == shard) {
            building.push(Key::U64(number), vec![Value::Text(still(number))])?;
        }
        building.finish()?;
        creating.push(&part, |_| {}).await?;
    }
    creating.finish().await.map(drop)
}

fn still(number: u64) -> String {
    format!("record {number} as it was built")
}

/// Once nothing goes wrong any more: all records can be read, and one chain of manifests leads to files that are there.
pub(super) async fn looks(client: &Client, course: &Course) {
    let mut last = Error::retry("it was not asked for");
    let looked = async {
        while let Err(error) = look(client, course).await {
            last = error;
            sleep(TRIED_EVERY).await;
        }
    };
    if timeout(LOOKED_WITHIN, looked).await.is_err() {
        course.wrong(Rule::NotLost, format!("{DATASET} can't be read: {last}"));
    }
}

async fn look(client: &Client, course: &Course) -> Result<()> {
    if latest_manifest(client, &path()).await?.is_none() {
        return Ok(());
    }
    let shards = Shards::open(client, &path()).await?.with_patience(PATIENCE);
    for number in 0..STILL {
        let record = shards.get(&Literal::Number(number.into()), None).await?;
        if record.as_ref().map(text_of) != Some(still(number)) {
            course.wrong(Rule::OneVersion, format!("record {number}, which nobody changes, is {record:?}"));
        }
    }
    let keys = FIRST_KEY..course.records.keys.lock().next();
    for key in keys {
        read(&shards, course, key).await?;
    }
    if course.crowd.has_two_disks {
        look_at_log(client, course, &shards).await?;
    }
    let manifests: Vec<u64> = names(client, "manifest-").await?.iter().filter_map(|name| manifest_number(name)).collect();
    if !manifests.iter().copied().eq(1..=manifests.len() as u64) {
        course.wrong(Rule::NotLost, format!("{DATASET} has the manifests {manifests:?}"));
    }
    let files = names(client, "data/").await?;
    // Of a later manifest than that of before, if somebody has written one.
    let opened = Shards::open(client, &path()).await?;
    if let Some(missing) = opened.dataset().objects().find(|name| !files.contains(*name)) {
        course.wrong(Rule::NotLost, format!("{DATASET} names {missing} in manifest {}, which is not there", opened.manifest()));
    }
    Ok(())
}

/// Nobody writes any more, so no claim is there; how much was written under claims.
async fn look_at_log(client: &Client, course: &Course, shards: &Shards) -> Result<()> {
    if shards.status().await?.iter().any(|shard| shard.claim.is_some()) {
        return Err(Error::retry("a shard that nobody changes is claimed"));
    }
    let mut objects = 0;
    for info in client.list_all(&format!("{DATASET}/log/").parse()?).await? {
        let Some((_, number)) = LogPlace::parse(&info.version.key) else { continue };
        let bytes = client.read(client.operation(), &info.version, 0..info.version.size).await?;
        let is_kept = LogObject::claim_in(&bytes, number, DATASET)?.is_some_and(|claim| claim.number < number);
        objects += u64::from(is_kept);
    }
    course.set_on_two_disks(objects);
    Ok(())
}

/// The last parts of the names that begin so in the dataset's folder.
async fn names(client: &Client, begin: &str) -> Result<BTreeSet<String>> {
    let objects = client.list_all(&format!("{DATASET}/{begin}").parse()?).await?;
    Ok(objects.iter().filter_map(|info| info.version.key.as_str().rsplit('/').next().map(str::to_owned)).collect())
}
