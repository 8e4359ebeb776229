//! Puts, gets and searches of many at once, while random workers are killed: in an order that explains what each was told.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_bench_harness::{Bar, line};
use forebay_oracle::{RecordCall, RecordOp, Rule, is_certain, records};
use forebay_shard::Key;
use forebay_shard_store::ChangeIf;
use forebay_shards::Shards;
use forebay_types::{Error, ErrorKind, Result};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value as Json, json};

use super::data::{Data, literal};
use super::rig::{Rig, Settings};
use super::wait::until_at_rest;

/// Keys that all change, and those who do.
const KEYS: usize = 24;
const CLIENTS: usize = 6;
/// Between two kills, and how long a worker is away.
const KILLED_EVERY: Duration = Duration::from_secs(3);
const AWAY_FOR: Duration = Duration::from_millis(500);
/// The column that is changed.
const COLUMN: &str = "l_comment";

/// So many operations; the coordinator is one of those that are killed where that is asked for.
pub(crate) async fn figures(data: &Data, operations: usize, is_coordinator_killed: bool) -> Result<()> {
    let mut rig = Rig::start(Settings::default()).await?;
    let shards = rig.create(data, "history.shards", 4, vec![0.5, 0.5]).await?;
    until_at_rest(&shards, data).await?;
    let clients = Clients {
        data,
        shards: &shards,
        first: data.records.keys.iter().copied().max().unwrap_or(0) + 1,
        count: AtomicUsize::new(0),
        failed: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    let killing = async {
        let (mut chance, mut kills) = (StdRng::seed_from_u64(59), 0u64);
        while clients.count.load(Relaxed) < operations {
            tokio::time::sleep(KILLED_EVERY).await;
            let workers = rig.workers.len();
            let place = chance.random_range(0..workers + usize::from(is_coordinator_killed));
            if place == workers {
                rig.kill_coordinator()
            } else {
                rig.workers[place].kill()
            }
            tokio::time::sleep(AWAY_FOR).await;
            if place == workers {
                rig.restart_coordinator()?
            } else {
                rig.restart(place)?
            }
            kills += 1;
        }
        clients.stop.store(true, Relaxed);
        Ok::<_, Error>(kills)
    };
    let (done, kills) = futures::join!(futures::future::join_all((0..CLIENTS).map(|client| clients.run(client))), killing);
    let done: Vec<RecordCall> = done.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    let violations = records(&done);
    violations.iter().for_each(|violation| eprintln!("{violation}"));
    let count = |rule| violations.iter().filter(|violation| violation.rule == rule).count() as f64;
    let searches = done.iter().filter(|done| matches!(done.op, RecordOp::Found(..))).count();
    let uncertain = done.iter().filter(|done| done.ended.is_none()).count();
    let killed = if is_coordinator_killed { "workers and the coordinator" } else { "workers" };
    let what = format!(
        "{} puts, deletes, gets and {searches} searches at once, {} kills of {killed}, {uncertain} uncertain",
        done.len() - searches,
        kills?
    );
    line(format!("{what}: keys in no order that explains them"), count(Rule::Linearizable), "keys", Bar::ValueAtMost(0.0));
    line(format!("{what}: keys whose order was not found out in time"), count(Rule::Decided), "keys", Bar::ValueAtMost(0.0));
    let failed = clients.failed.load(Relaxed) as f64;
    line(format!("{what}: gets and searches that failed"), failed, "answers", Bar::ValueAtMost(0.0));
    Ok(())
}

struct Clients<'a> {
    data: &'a Data,
    shards: &'a Shards,
    /// The first of the keys, which nobody had before.
    first: u64,
    count: AtomicUsize,
    failed: AtomicU64,
    stop: AtomicBool,
}

impl Clients<'_> {
    async fn run(&self, client: usize) -> Result<Vec<RecordCall>> {
        let (mut chance, mut done) = (StdRng::seed_from_u64(61 + client as u64), Vec::new());
        let mut last: BTreeMap<usize, String> = BTreeMap::new();
        for step in 0.. {
            if self.stop.load(Relaxed) {
                break;
            }
            let key = chance.random_range(0..KEYS);
            let began = Instant::now();
            let (op, certain) = match chance.random_range(0..10) {
                0..4 => match self.shards.record(&Key::U64(self.first + key as u64), None).await {
                    Ok(record) => (RecordOp::Read(record.map(|record| self.value_of(&record)).transpose()?), true),
                    Err(error) => {
                        self.fails(&error)?;
                        continue;
                    }
                },
                4..7 => {
                    let value = format!("of client {client}, step {step}");
                    let put = self.shards.put(self.record(key, &value).as_object().expect("a record"), ChangeIf::Always).await;
                    last.insert(key, value.clone());
                    (RecordOp::Write(Some(value)), is_certain(put)?)
                }
                7 => (
                    RecordOp::Write(None),
                    is_certain(self.shards.delete(&literal(self.first + key as u64)?, ChangeIf::Always).await)?,
                ),
                _ => {
                    let Some(value) = last.get(&key).cloned() else { continue };
                    match self.shards.search(&json!({"attr": COLUMN, "eq": value}), None, Some(10)).await {
                        Ok(keys) => (RecordOp::Found(value, keys.contains(&Key::U64(self.first + key as u64))), true),
                        Err(error) => {
                            self.fails(&error)?;
                            continue;
                        }
                    }
                }
            };
            done.push(RecordCall { key: self.first + key as u64, began, ended: certain.then(Instant::now), op });
            self.count.fetch_add(1, Relaxed);
        }
        Ok(done)
    }

    fn record(&self, key: usize, value: &str) -> Json {
        let mut record = self.data.json(key);
        record[super::data::KEY] = json!(self.first + key as u64);
        record[COLUMN] = value.into();
        record
    }

    fn value_of(&self, record: &forebay_shard::Record) -> Result<String> {
        let (place, _) = self.shards.columns().attribute(COLUMN)?;
        Ok(String::from_utf8_lossy(record.bytes(place).unwrap_or_default()).into_owned())
    }

    /// One that asks again is not wrong, but it counts.
    fn fails(&self, error: &Error) -> Result<()> {
        self.failed.fetch_add(1, Relaxed);
        if error.kind() == ErrorKind::Retry { Ok(()) } else { Err(error.clone()) }
    }
}
