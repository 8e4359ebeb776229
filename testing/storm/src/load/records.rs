//! Records of a dataset of shards: changed by the client's API, asked for by that and over the coordinator's HTTP.
//!
//! Some records are never changed: what is said of them is what they were built of. The others have no record at first, and all clients
//! change and read them; a key is used for a while, then the next one, so that histories stay short enough to be searched for an order.

use std::collections::BTreeMap;
use std::io::{self, Error};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_client::Client;
use forebay_oracle::history::{Door, Failure, Recorder, What};
use forebay_oracle::load::{Keys, Shared, answered, pause};
use forebay_oracle::{RecordCall, RecordOp, Rule, Violation, records};
use forebay_shard::{Key, KeyMap, Value};
use forebay_shard_store::{Acknowledged, ChangeIf, Column, ColumnKind, Columns, Literal, Store};
use forebay_shards::{Shards, create, latest_manifest};
use forebay_types::{ForebayPath, Result};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value as Json, json};
use tokio::task::JoinSet;

use super::http::Http;
use crate::cluster::{Cluster, FRESH};

const SHARDS: usize = 2;
/// Copies of a shard, each as large as this part of the input.
const REPLICAS: [f64; 2] = [0.5, 0.5];
/// Records that are never changed; keys of the others come after these.
const STILL: u64 = 2_000;
/// Keys that are changed at a time.
const CHANGED: usize = 24;
/// More keys than a load uses.
const KEYS_MAX: u64 = 100_000;
/// Calls on one key, after which there is a next one.
const CALLS: u32 = 60;
const CLIENTS: usize = 6;
const CALL_PAUSE: Duration = Duration::from_millis(40);
/// How long a call asks again by itself.
const PATIENCE: Duration = Duration::from_secs(20);
/// What fails for a moment says one of these. A connection may break with the process that it leads to.
const ASKS_AGAIN: [&str; 5] = ["retry", "closed", "conflict", "connection", "given up"];
/// What HTTP says where there is no record.
const NO_RECORD: &str = "there is no record of";

/// A load that runs.
pub struct Records {
    asker: Asker,
    clients: JoinSet<()>,
}

/// Who asks, and where it is taken down.
#[derive(Clone)]
struct Asker {
    shards: Shards,
    http: Arc<Http>,
    shared: Arc<Shared>,
    done: Arc<Done>,
    /// The first key that is changed.
    first: u64,
}

/// What was done with records, and what must not have been.
struct Done {
    calls: Mutex<Vec<RecordCall>>,
    wrong: Mutex<Vec<Violation>>,
    keys: Mutex<Keys>,
}

impl Records {
    /// Makes the dataset where there is none, has its changes acknowledged as is wanted, then starts all clients. No two loads of a cluster change
    /// the same keys.
    pub(super) async fn start(cluster: &Cluster, folder: &Path, ack: Acknowledged, seed: u64, number: u32) -> io::Result<Self> {
        let client = cluster.client(false).await?;
        let first = STILL + u64::from(number) * KEYS_MAX;
        let shards = open(&client, folder, ack).await.map_err(Error::other)?;
        let standby = cluster.beside.standby.as_ref().map(|standby| standby.process.http);
        let http = Arc::new(Http { address: cluster.coordinator.http, standby, token: cluster.owner_secret()? });
        let (calls, wrong, keys) = (Mutex::default(), Mutex::default(), Mutex::new(Keys::new(first, CHANGED, CALLS)));
        let done = Arc::new(Done { calls, wrong, keys });
        let asker = Asker { shards, http, shared: Arc::default(), done, first };
        let (mut clients, mut chance) = (JoinSet::new(), StdRng::seed_from_u64(seed));
        for number in 0..CLIENTS {
            clients.spawn(asker.clone().run(number, StdRng::seed_from_u64(chance.random())));
        }
        Ok(Self { asker, clients })
    }

    pub(super) fn recorder(&self) -> &Recorder {
        &self.asker.shared.recorder
    }

    /// Ends all clients, then reads every record once more that was ever changed.
    pub(super) async fn end(mut self) -> io::Result<(Recorder, Vec<Violation>)> {
        super::end(&self.asker.shared, &mut self.clients).await?;
        let keys = self.asker.first..self.asker.done.keys.lock().next();
        for key in keys {
            if let Err(failure) = self.asker.read(key, Door::Remote).await {
                self.asker.wrong(Rule::NotLost, format!("record {key} can't be read at the end: {}", failure.message));
            }
        }
        let Asker { shared, done, .. } = self.asker;
        let mut violations = std::mem::take(&mut *done.wrong.lock());
        violations.extend(records(&done.calls.lock()));
        Ok((super::recorded(shared)?, violations))
    }
}

impl Asker {
    async fn run(self, number: usize, mut chance: StdRng) {
        let mut last: BTreeMap<u64, String> = BTreeMap::new();
        for step in 0_u64.. {
            if !self.shared.goes_on() {
                break;
            }
            let place = chance.random_range(0..CHANGED);
            let door = if chance.random() { Door::Remote } else { Door::Http };
            match chance.random_range(0..10) {
                0..4 => drop(self.read(self.key(place), door).await),
                4..6 => self.read_still(chance.random_range(0..STILL), door).await,
                6..8 => {
                    let (key, value) = (self.key(place), format!("of client {number}, step {step}"));
                    last.insert(key, value.clone());
                    self.write(key, Some(value)).await;
                }
                8 => self.write(self.key(place), None).await,
                _ => {
                    let key = self.key(place);
                    if let Some(value) = last.get(&key) {
                        self.search(key, value.clone()).await;
                    }
                }
            }
            pause(&mut chance, CALL_PAUSE).await;
        }
    }

    fn key(&self, place: usize) -> u64 {
        self.done.keys.lock().at(place)
    }

    fn wrong(&self, rule: Rule, what: String) {
        self.done.wrong.lock().push(Violation::new(rule, what));
    }

    /// Takes down when it was asked, and what was said instead of an answer: which has to be that it can be asked again.
    fn take_down(&self, begin_us: u64, door: Door, what: What, error: Option<&Failure>) {
        if let Some(failure) = error.filter(|failure| !ASKS_AGAIN.contains(&failure.kind.as_str())) {
            self.wrong(Rule::AsksAgain, format!("{door:?} at {begin_us} us: {}: {}", failure.kind, failure.message));
        }
        self.shared.recorder.add(begin_us, door, what, error.cloned());
    }

    fn done(&self, key: u64, began: Instant, is_certain: bool, op: RecordOp) {
        self.done.calls.lock().push(RecordCall { key, began, ended: is_certain.then(Instant::now), op });
    }

    /// The text that a record has, by a door.
    async fn text(&self, key: u64, door: Door) -> std::result::Result<Option<String>, Failure> {
        let begin_us = self.shared.recorder.now_us();
        let text = match door {
            Door::Http => self.text_by_http(key).await,
            _ => answered(self.shards.get(&Literal::Number(key.into()), None)).await.map(|record| record.as_ref().map(text_of)),
        };
        self.take_down(begin_us, door, What::Read { key: key as u32, start: 0, seen: None }, text.as_ref().err());
        text
    }

    async fn text_by_http(&self, key: u64) -> std::result::Result<Option<String>, Failure> {
        match self.http.get(&format!("/api/v1/shards/get?dataset={}&key={key}", dataset())).await {
            Ok(line) => match serde_json::from_slice::<Json>(&line) {
                Ok(record) => Ok(Some(text_of(&record))),
                Err(error) => Err(Failure { kind: "no JSON".to_owned(), message: error.to_string(), no_effect: true }),
            },
            Err(failure) if failure.kind == "not found" && failure.message.contains(NO_RECORD) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    async fn read(&self, key: u64, door: Door) -> std::result::Result<(), Failure> {
        let began = Instant::now();
        let text = self.text(key, door).await?;
        self.done(key, began, true, RecordOp::Read(text));
        Ok(())
    }

    async fn read_still(&self, key: u64, door: Door) {
        if let Ok(text) = self.text(key, door).await
            && text.as_ref() != Some(&still(key))
        {
            self.wrong(Rule::OneVersion, format!("{door:?}: record {key}, which nobody changes, has {text:?}"));
        }
    }

    /// Puts a record with a text, or deletes it.
    async fn write(&self, key: u64, text: Option<String>) {
        let (began, begin_us) = (Instant::now(), self.shared.recorder.now_us());
        let record = json!({"id": key, "text": text});
        let changing = async {
            match (&text, record.as_object()) {
                (Some(_), Some(record)) => self.shards.put(record, ChangeIf::Always).await,
                _ => self.shards.delete(&Literal::Number(key.into()), ChangeIf::Always).await,
            }
        };
        let error = answered(changing).await.err();
        self.take_down(begin_us, Door::Remote, What::Write { key: key as u32, version: 0, etag: None }, error.as_ref());
        if error.as_ref().is_some_and(|failure| failure.no_effect) {
            return;
        }
        if error.is_some() {
            self.done.keys.lock().leave(key);
        }
        self.done(key, began, error.is_none(), RecordOp::Write(text));
    }

    /// Whether a search for a text finds the record that was put with it.
    async fn search(&self, key: u64, text: String) {
        let (began, begin_us) = (Instant::now(), self.shared.recorder.now_us());
        let condition = json!({"attr": "text", "eq": text});
        let found = answered(self.shards.search(&condition, None, Some(10))).await;
        let what = What::Read { key: key as u32, start: 0, seen: None };
        self.take_down(begin_us, Door::Remote, what, found.as_ref().err());
        if let Ok(keys) = found {
            self.done(key, began, true, RecordOp::Found(text, keys.contains(&Key::U64(key))));
        }
    }
}

/// The dataset, which is made where there is none.
async fn open(client: &Client, folder: &Path, ack: Acknowledged) -> Result<Shards> {
    let path: ForebayPath = dataset().parse()?;
    if latest_manifest(client, &path).await?.is_none() {
        make(client, &path, folder).await?;
    }
    Ok(Shards::set_orders(client, &path, |orders| orders.ack = ack).await?.with_patience(PATIENCE))
}

/// Stores the dataset, of shards that are built in the folder.
async fn make(client: &Client, path: &ForebayPath, folder: &Path) -> Result<()> {
    let mut creating = create(client, path, columns()?, REPLICAS.to_vec(), false).await?;
    for shard in 0..SHARDS {
        let part = folder.join(format!("shard-{shard}"));
        let mut building = Store::build(&part, columns()?, REPLICAS[0])?;
        for number in 0..STILL {
            let key = Key::U64(number);
            if KeyMap::Hash(SHARDS).shard_of(&key) == shard {
                building.push(key, vec![Value::Text(still(number))])?;
            }
        }
        building.finish()?;
        creating.push(&part, |_| {}).await?;
    }
    creating.finish().await.map(drop)
}

/// Where the dataset is.
pub fn dataset() -> String {
    format!("/{FRESH}/records.shards")
}

fn columns() -> Result<Columns> {
    Columns::new(vec![Column::new("id", ColumnKind::Uint), Column::new("text", ColumnKind::Text)], "id")
}

fn still(key: u64) -> String {
    format!("record {key} as it was built")
}

fn text_of(record: &Json) -> String {
    record["text"].as_str().unwrap_or_default().to_owned()
}
