//! A small cluster with a dataset, and the same records in one shard of a folder.

use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_client::Client;
use forebay_shard::{Key, KeyMap, Value};
use forebay_shard_store::{Column, ColumnKind, Columns, Store};
use forebay_shards::{ShardStatus, Shards, create};
pub use forebay_testbed::BUCKET;
use forebay_testbed::{TestCluster, add_mount};
use forebay_types::ForebayPath;
use forebay_worker::{Tuning, Worker};

use crate::changing::changes::Reference;

pub const RECORDS: i64 = 3000;

pub struct Bed {
    pub client: Client,
    pub cluster: TestCluster,
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

    /// One worker without room for shards, and windows of popularity that are so long and plan nothing.
    pub async fn start_counting(window: Duration) -> Self {
        Self::start_in_windows(1, (1000, 0), Tuning::default(), Some(window)).await
    }

    async fn start_tuned(workers: usize, bytes: (u64, u64), tuning: Tuning) -> Self {
        Self::start_in_windows(workers, bytes, tuning, None).await
    }

    async fn start_in_windows(
        workers: usize,
        (shard_bytes, disk_bytes): (u64, u64),
        tuning: Tuning,
        window: Option<Duration>,
    ) -> Self {
        let mut cluster = TestCluster::empty(|settings| {
            settings.lease = Duration::from_secs(2);
            if let Some(window) = window {
                let placement = &mut settings.placement;
                (placement.policy, placement.window, placement.poll) = (None, window, window / 3);
            }
        })
        .await;
        cluster.tuning = Tuning { beat: Duration::from_millis(100), ..tuning };
        (cluster.worker.store.dram_bytes, cluster.worker.store.disk_bytes) = (64 << 20, disk_bytes);
        cluster.worker.unix_socket = None;
        cluster.worker.shard_bytes = shard_bytes;
        let client = cluster.node.client().await.unwrap();
        add_mount(&client, "lake", &format!("s3://{BUCKET}"), cluster.s3.mount_options()).await;
        let mut bed = Self { client, cluster };
        for place in 0..workers {
            bed.start_worker(place).await;
        }
        bed
    }

    /// Starts a worker, again in the folder of the one before.
    pub async fn start_worker(&mut self, place: usize) {
        self.cluster.start_worker(place).await;
        self.client.refresh_view().await.unwrap();
    }

    /// Takes a worker out: it ends at once when it is dropped.
    pub fn take_worker(&mut self, place: usize) -> Arc<Worker> {
        self.cluster.take_worker(place)
    }

    /// Makes a dataset of [`RECORDS`] records.
    pub async fn create(&self, name: &str, shards: usize, replicas: Vec<f64>) -> Shards {
        let path = path(name);
        store(&self.client, &path, shards, replicas, false, self.folder()).await.unwrap();
        Shards::open(&self.client, &path).await.unwrap()
    }

    /// The same, of whose shards a map says which keys they have.
    pub async fn create_by(&self, name: &str, map: &KeyMap, replicas: Vec<f64>) -> Shards {
        let path = path(name);
        store_by(&self.client, &path, map, replicas, false, self.folder()).await.unwrap();
        Shards::open(&self.client, &path).await.unwrap()
    }

    /// All records in one shard of a folder, to compare with.
    pub fn reference(&self) -> Store {
        let path = self.folder().join("reference");
        build(&path, |_| true);
        Store::open(&path).unwrap()
    }

    /// The same, to be changed as the dataset is.
    pub fn reference_to_change(&self) -> Reference {
        let path = self.folder().join("changed");
        build(&path, |_| true);
        Reference(Store::open_to_change(&path).unwrap())
    }

    pub fn folder(&self) -> &std::path::Path {
        self.cluster.folder()
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
    store_by(client, path, &KeyMap::Hash(shards), replicas, replace, folder).await
}

async fn store_by(
    client: &Client,
    path: &ForebayPath,
    map: &KeyMap,
    replicas: Vec<f64>,
    replace: bool,
    folder: &std::path::Path,
) -> forebay_types::Result<u64> {
    let mut creating = create(client, path, columns(), replicas, replace).await?;
    creating.by(map);
    let of = if map.splits().is_some() { "ranges" } else { "of" };
    for shard in 0..map.shards() {
        let part = folder.join(format!("part{shard}{of}{}", map.shards()));
        if !part.exists() {
            build(&part, |key| map.shard_of(key) == shard);
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

/// What workers say of a dataset's shards once it is so.
pub async fn until(shards: &Shards, what: &str, is_so: impl Fn(&[ShardStatus]) -> bool) -> Vec<ShardStatus> {
    let began = Instant::now();
    loop {
        let status = shards.status().await.unwrap();
        if is_so(&status) {
            return status;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "not within two minutes: {what}: {status:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
