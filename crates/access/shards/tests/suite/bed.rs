//! A small cluster with a dataset, and the same records in one shard of a folder.

use std::time::{Duration, Instant};

use forebay_block_store::StoreSettings;
use forebay_client::{AdminRequest, Client, ClientSettings};
use forebay_coordinator::{Coordinator, CoordinatorSettings};
use forebay_shard::{Key, Value};
use forebay_shard_store::{Column, ColumnKind, Columns, Store, shard_of};
use forebay_shards::{Shards, create};
use forebay_testing::{S3Server, S3Settings};
use forebay_transport::Address;
use forebay_types::{ForebayPath, MountOptions};
use forebay_worker::{Tuning, Worker, WorkerSettings};

use crate::changes::Reference;

pub const BUCKET: &str = "data";
pub const RECORDS: i64 = 3000;

pub struct Bed {
    pub s3: S3Server,
    pub client: Client,
    pub workers: Vec<Option<Worker>>,
    coordinator: Coordinator,
    folder: tempfile::TempDir,
    shard_bytes: u64,
    disk_bytes: u64,
    tuning: Tuning,
}

impl Bed {
    pub async fn start(workers: usize) -> Self {
        Self::start_with(workers, 1 << 30).await
    }

    /// With so much disk for shards on each worker.
    pub async fn start_with(workers: usize, shard_bytes: u64) -> Self {
        Self::start_as(workers, shard_bytes, Duration::from_secs(10)).await
    }

    /// One that looks at its queues so often.
    pub async fn start_as(workers: usize, shard_bytes: u64, navigate_every: Duration) -> Self {
        Self::start_tuned(workers, (shard_bytes, 0), Tuning { navigate_every, ..Tuning::default() }).await
    }

    /// The same with a disk tier.
    pub async fn start_with_disk(shard_bytes: u64, disk_bytes: u64, navigate_every: Duration) -> Self {
        Self::start_tuned(1, (shard_bytes, disk_bytes), Tuning { navigate_every, ..Tuning::default() }).await
    }

    /// One that deletes what no manifest names any more so soon.
    pub async fn start_collecting(workers: usize, garbage_after: Duration) -> Self {
        Self::start_tuned(workers, (1 << 30, 0), Tuning { garbage_after, ..Tuning::default() }).await
    }

    async fn start_tuned(workers: usize, (shard_bytes, disk_bytes): (u64, u64), tuning: Tuning) -> Self {
        let tuning = Tuning { beat: Duration::from_millis(100), ..tuning };
        let settings = S3Settings { buckets: vec![BUCKET.into()], anonymous: true, ..S3Settings::default() };
        let s3 = S3Server::start(settings).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("metadata.db").display());
        let lease = Duration::from_secs(2);
        let settings = CoordinatorSettings { lease, ..CoordinatorSettings::new(local(), url) };
        let coordinator = Coordinator::start(settings).await.unwrap();
        let client = Client::connect(ClientSettings::new(coordinator.address())).await.unwrap();
        let options = MountOptions { endpoint: Some(s3.endpoint()), anonymous: true, ..MountOptions::default() };
        let add = AdminRequest::MountAdd { name: "lake".parse().unwrap(), url: format!("s3://{BUCKET}"), options };
        client.control(add).await.unwrap();
        let mut bed = Self { s3, client, workers: Vec::new(), coordinator, folder, shard_bytes, disk_bytes, tuning };
        for place in 0..workers {
            bed.workers.push(None);
            bed.start_worker(place).await;
        }
        bed
    }

    /// Starts a worker, again in the folder of the one before.
    pub async fn start_worker(&mut self, place: usize) {
        let folder = self.folder.path().join(format!("worker{place}"));
        let store = StoreSettings::new(folder.join("tiers"), 64 << 20).with_disk(self.disk_bytes);
        let mut settings = WorkerSettings::new(self.coordinator.address(), local(), store);
        settings.shard_bytes = self.shard_bytes;
        let began = Instant::now();
        let worker = loop {
            match Worker::start_with(settings.clone(), self.tuning.clone()).await {
                // Tasks of the one before let its folder go a moment after it has stopped.
                Err(error) if error.message().contains("in use") && began.elapsed() < Duration::from_secs(10) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                worker => break worker.unwrap(),
            }
        };
        self.workers[place] = Some(worker);
        self.client.refresh_view().await.unwrap();
    }

    /// Makes a dataset of [`RECORDS`] records.
    pub async fn create(&self, name: &str, shards: usize, replicas: Vec<f64>) -> Shards {
        let path = path(name);
        store(&self.client, &path, shards, replicas, false, self.folder.path()).await.unwrap();
        Shards::open(&self.client, &path).await.unwrap()
    }

    /// All records in one shard of a folder, to compare with.
    pub fn reference(&self) -> Store {
        let path = self.folder.path().join("reference");
        build(&path, |_| true);
        Store::open(&path).unwrap()
    }

    /// The same, to be changed as the dataset is.
    pub fn reference_to_change(&self) -> Reference {
        let path = self.folder.path().join("changed");
        build(&path, |_| true);
        Reference(Store::open_to_change(&path).unwrap())
    }

    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }
}

pub async fn store(
    client: &Client,
    path: &ForebayPath,
    shards: usize,
    replicas: Vec<f64>,
    replace: bool,
    folder: &std::path::Path,
) -> forebay_types::Result<u64> {
    let mut creating = create(client, path, columns(), replicas, replace).await?;
    for shard in 0..shards {
        let part = folder.join(format!("part{shard}of{shards}"));
        if !part.exists() {
            build(&part, |key| shard_of(key, shards) == shard);
        }
        creating.push(&part, |_| {}).await?;
    }
    creating.finish().await
}

fn build(path: &std::path::Path, is_in: impl Fn(&Key) -> bool) {
    let mut building = Store::build(path, columns(), 0.01).unwrap();
    for (key, values) in (0..RECORDS).map(record).filter(|(key, _)| is_in(key)) {
        building.push(key, values).unwrap();
    }
    building.finish().unwrap();
}

pub fn columns() -> Columns {
    let column = |name: &str, kind| Column { name: name.into(), kind };
    let all = vec![column("id", ColumnKind::Int), column("name", ColumnKind::Text), column("note", ColumnKind::Text)];
    Columns::new(all, "id").unwrap()
}

/// Keys on both sides of zero; names that several share; notes with words in them.
fn record(number: i64) -> (Key, Vec<Value>) {
    let key = number - RECORDS / 4;
    let text = |text: String| Value::Text(text);
    let note =
        format!("line {number} {} of {}", ["spring", "summer", "autumn", "winter"][number as usize % 4], number * 7919 % 1000);
    (Key::U64(key as u64), vec![text(format!("clerk{:03}", number * 31 % 97)), text(note)])
}

pub fn path(name: &str) -> ForebayPath {
    format!("/lake/{name}").parse().unwrap()
}

fn local() -> Address {
    Address::Tcp("127.0.0.1:0".into())
}
