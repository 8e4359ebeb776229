//! Changes and answers of many clients at many workers can be put into one order, whoever is killed meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_oracle::{RecordCall, RecordOp, Violation};
use forebay_shard_store::{Acknowledged, ChangeIf, LogObject, LogPlace};
use forebay_shards::{ReshardTo, Shards, reshard};
use forebay_types::{ErrorKind, WorkerId};
use parking_lot::Mutex;
use serde_json::json;

use super::changes::{literal, record, record_at};
use crate::bed::{Bed, path};

/// Keys that all clients change and read.
const KEYS: i64 = 6;
const CLIENTS: usize = 6;

struct Client {
    bed: Arc<tokio::sync::RwLock<Bed>>,
    shards: Shards,
    /// As it is asked at one worker alone, which names the shards of then.
    opened: Mutex<Shards>,
    done: Arc<Mutex<Vec<RecordCall>>>,
    number: usize,
}

impl Client {
    async fn step(&self, step: usize) {
        let key = forebay_runtime::random_range(0..KEYS);
        let began = Instant::now();
        let name = format!("client {} step {step}", self.number);
        let (op, ended) = match forebay_runtime::random_range(0..10) {
            0..5 => {
                let Some(name) = self.read(key).await else { return };
                (RecordOp::Read(name), true)
            }
            5..8 => {
                let put = self.shards.put(&record(key, &name), ChangeIf::Always).await;
                (RecordOp::Write(Some(name)), is_certain(put))
            }
            8 if step.is_multiple_of(3) => {
                // Says the same in other files, or can't now.
                let _ = self.shards.clone().with_patience(Duration::from_secs(5)).merge_shard(step % 2).await;
                return;
            }
            8 => (RecordOp::Write(None), is_certain(self.shards.delete(&literal(key), ChangeIf::Always).await)),
            _ => return self.swap(key, name).await,
        };
        self.done.lock().push(RecordCall { key: key as u64, began, ended: ended.then(Instant::now), op });
    }

    /// What a random worker says; nothing where it doesn't.
    async fn read(&self, key: i64) -> Option<Option<String>> {
        let bed = self.bed.read().await;
        let workers: Vec<WorkerId> = bed.client.view().workers.iter().map(|worker| worker.id).collect();
        let worker = workers[forebay_runtime::random_range(0..workers.len())];
        let shards = self.opened.lock().clone();
        let read = record_at(&bed.client, &shards, worker, key).await;
        if read.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound)
            && let Ok(opened) = Shards::open(&bed.client, shards.path()).await
        {
            *self.opened.lock() = opened;
        }
        read.ok()
    }

    /// Reads a record, and changes it if nobody else has meanwhile.
    async fn swap(&self, key: i64, name: String) {
        let Ok(there) = self.shards.get_versioned(&literal(key)).await else { return };
        let before = there.record.map(|record| record["name"].as_str().unwrap().to_string());
        let began = Instant::now();
        let put = self.shards.put(&record(key, &name), ChangeIf::Version(there.version)).await;
        if put.as_ref().is_err_and(|error| error.kind() == ErrorKind::Conflict) {
            return;
        }
        let ended = is_certain(put).then(Instant::now);
        self.done.lock().push(RecordCall { key: key as u64, began, ended, op: RecordOp::Swap(before, name) });
    }
}

fn is_certain(result: forebay_types::Result<u64>) -> bool {
    forebay_oracle::is_certain(result).unwrap()
}

/// 500 operations in the suite; `FOREBAY_TEST_OPERATIONS` for more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_and_answers_at_all_workers_are_linearizable_by_key() {
    println!("{}", are_linearizable(false, Acknowledged::Storage).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_are_where_two_disks_are_enough_to_acknowledge_them() {
    println!("{}", are_linearizable(false, Acknowledged::TwoWorkers).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_are_while_the_dataset_comes_to_have_other_shards_too() {
    println!("{}", are_linearizable(true, Acknowledged::Storage).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_are_while_logs_that_one_worker_writes_come_to_be_those_of_other_shards() {
    println!("{}", are_linearizable(true, Acknowledged::TwoWorkers).await);
}

/// What was done, in words.
async fn are_linearizable(is_resharded: bool, ack: Acknowledged) -> String {
    let wanted: usize = std::env::var("FOREBAY_TEST_OPERATIONS").map_or(500, |text| text.parse().unwrap());
    let bed = Bed::start(3).await;
    let shards = bed.create("orders.shards", 2, vec![0.5, 0.5, 0.5]).await;
    let shards = shards.order(|orders| orders.ack = ack).await.unwrap();
    for key in 0..KEYS {
        shards.delete(&literal(key), ChangeIf::Always).await.unwrap();
    }
    bed.cluster.s3.set_latency(Duration::from_millis(3));
    let (bed, done) = (Arc::new(tokio::sync::RwLock::new(bed)), Arc::new(Mutex::new(Vec::new())));
    let (steps, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let opened = Mutex::new(shards.clone());
            let client = Client { bed: Arc::clone(&bed), shards: shards.clone(), opened, done: Arc::clone(&done), number };
            let (steps, stop) = (Arc::clone(&steps), Arc::clone(&stop));
            tokio::spawn(async move {
                while !stop.load(Relaxed) {
                    client.step(steps.fetch_add(1, Relaxed)).await;
                }
            })
        })
        .collect();
    let searcher = tokio::spawn(search_for_own(shards.clone(), Arc::clone(&stop)));
    let reshards = tokio::spawn(reshard_on(Arc::clone(&bed), is_resharded, Arc::clone(&stop)));
    let mut kills = 0;
    while done.lock().len() < wanted {
        tokio::time::sleep(Duration::from_millis(2500)).await;
        let place = forebay_runtime::random_range(0..3);
        let worker = bed.write().await.take_worker(place);
        drop(worker);
        tokio::time::sleep(Duration::from_millis(300)).await;
        bed.write().await.start_worker(place).await;
        kills += 1;
    }
    stop.store(true, Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    let (searches, reshards) = (searcher.await.unwrap(), reshards.await.unwrap());
    assert_eq!(reshards > 0, is_resharded);
    let client = bed.read().await.client.clone();
    assert_eq!(under_claims(&client).await > 0, ack == Acknowledged::TwoWorkers);
    let done = done.lock();
    let unknown = done.iter().filter(|done| done.ended.is_none()).count();
    let violations = forebay_oracle::records(&done);
    assert!(violations.is_empty(), "{}", violations.iter().map(Violation::to_string).collect::<Vec<_>>().join("\n"));
    format!("{} operations, {unknown} of them uncertain, {searches} searches, {kills} kills, {reshards} reshards", done.len())
}

/// How many objects of the dataset's logs were written under claims.
async fn under_claims(client: &forebay_client::Client) -> usize {
    let mut count = 0;
    for info in client.list_all(&path("orders.shards/log/")).await.unwrap() {
        let Some((_, number)) = LogPlace::parse(&info.version.key) else { continue };
        let bytes = client.read(client.operation(), &info.version, 0..info.version.size).await.unwrap();
        count += usize::from(LogObject::claim_in(&bytes, number, "log").unwrap().is_some());
    }
    count
}

/// Has the dataset have more or fewer shards, again and again; gives how often.
async fn reshard_on(bed: Arc<tokio::sync::RwLock<Bed>>, is_wanted: bool, stop: Arc<AtomicBool>) -> usize {
    let mut reshards = 0;
    while is_wanted && !stop.load(Relaxed) {
        let (client, scratch) = {
            let bed = bed.read().await;
            (bed.client.clone(), bed.folder().join("scratch"))
        };
        let to = ReshardTo::Shards(2 + reshards as u32 % 3);
        // Of one that was given up somewhere the next one ends what it began.
        let resharded = reshard(&client, &path("orders.shards"), to, &scratch, |_| {}).await;
        reshards += usize::from(resharded.is_ok());
        let _ = std::fs::remove_dir_all(&scratch);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    reshards
}

/// Searches for what it has just written, at a key that is nobody else's.
async fn search_for_own(shards: Shards, stop: Arc<AtomicBool>) -> usize {
    let mut searches = 0;
    while !stop.load(Relaxed) {
        let name = format!("own {searches}");
        if is_certain(shards.put(&record(1_000_000, &name), ChangeIf::Always).await) {
            let keys = shards.search(&json!({"attr": "name", "eq": name}), None, None).await.unwrap();
            assert_eq!(keys, [forebay_shard::Key::U64(1_000_000)], "{name}");
            searches += 1;
        }
    }
    searches
}
