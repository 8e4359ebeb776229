//! A small cluster in this process, over a real S3 server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_client::{AdminRequest, Client, ClientSettings};
use forebay_coordinator::{CoordinatorSettings, PlacementSettings};
use forebay_data_folder::DataFolder;
use forebay_demo::S3Server;
use forebay_node::Node;
use forebay_transport::Security;
use forebay_types::{MountOptions, Validate, WorkerId};
use forebay_worker::{Tuning, Worker, WorkerSettings};
use tempfile::TempDir;

/// The bucket of a cluster's S3 server.
pub const BUCKET: &str = "data";

const DRAM_BYTES: u64 = 256 << 20;
/// Tasks of a worker that was killed let its folder go within this.
const FREE_WITHIN: Duration = Duration::from_secs(10);

/// Coordinator, workers, and an S3 server whose bucket is [`BUCKET`].
pub struct TestCluster {
    /// Shared storage.
    pub s3: S3Server,
    /// What runs.
    pub node: Node,
    /// What workers are that start from now on, but for their folders.
    pub worker: WorkerSettings,
    /// The same.
    pub tuning: Tuning,
    /// Who was started last in which folder.
    places: BTreeMap<usize, WorkerId>,
    coordinator: CoordinatorSettings,
    folder: TempDir,
}

impl TestCluster {
    /// One with the mount `lake`, validated at every open.
    pub async fn start(workers: usize) -> Self {
        Self::start_with(workers, |_| {}).await
    }

    /// The same with other options of the mount.
    pub async fn start_with(workers: usize, change: impl FnOnce(&mut MountOptions)) -> Self {
        Self::start_as(workers, change, PlacementSettings::default(), CoordinatorSettings::LEASE, Duration::from_secs(1)).await
    }

    /// One that plans replicas several times a second, of objects that don't change.
    pub async fn start_quick(workers: usize, lease: Duration, change: impl FnOnce(&mut MountOptions)) -> Self {
        let (window, poll) = (Duration::from_millis(400), Duration::from_millis(100));
        let placement = PlacementSettings { window, poll, ..PlacementSettings::default() };
        let change = |options: &mut MountOptions| {
            options.validate = Validate::Immutable;
            change(options);
        };
        Self::start_as(workers, change, placement, lease, Duration::from_millis(50)).await
    }

    /// One whose workers report every `beat`.
    pub async fn start_as(
        workers: usize,
        change: impl FnOnce(&mut MountOptions),
        placement: PlacementSettings,
        lease: Duration,
        beat: Duration,
    ) -> Self {
        let mut cluster = Self::empty(|settings| (settings.placement, settings.lease) = (placement, lease)).await;
        cluster.tuning = Tuning { beat, reclaim_after: Duration::from_millis(500), ..Tuning::default() };
        for _ in 0..workers {
            cluster.add_worker().await;
        }
        let mut options = MountOptions { validate: Validate::Always, ..cluster.s3.mount_options() };
        change(&mut options);
        add_mount(&cluster.client(|_| {}).await, "lake", &format!("s3://{BUCKET}"), options).await;
        cluster
    }

    /// A coordinator without workers and mounts.
    pub async fn empty(change: impl FnOnce(&mut CoordinatorSettings)) -> Self {
        let (s3, folder) = (S3Server::of_bucket(BUCKET).unwrap(), tempfile::tempdir().unwrap());
        let mut coordinator = Node::coordinator_in(folder.path(), Security::default());
        change(&mut coordinator);
        let node = Node::lead(coordinator.clone()).await.unwrap();
        coordinator.listen = node.coordinator_at().clone();
        let worker = node.worker_in(folder.path(), DRAM_BYTES);
        Self { s3, node, worker, tuning: Tuning::default(), places: BTreeMap::new(), coordinator, folder }
    }

    /// Starts one more worker.
    pub async fn add_worker(&mut self) {
        self.start_worker(self.node.workers.len()).await;
    }

    /// Starts a worker in the folder of a place, again if one ran there before.
    pub async fn start_worker(&mut self, place: usize) {
        let (folder, mut settings) = (self.worker_folder(place), self.worker.clone());
        settings.store.folder = DataFolder::tiers_in(&folder);
        settings.unix_socket = settings.unix_socket.map(|_| DataFolder::socket_in(&folder));
        let began = Instant::now();
        let id = loop {
            match self.node.start_worker_with(settings.clone(), self.tuning.clone()).await {
                Ok(worker) => break worker.id(),
                Err(error) => assert!(error.message().contains("in use") && began.elapsed() < FREE_WITHIN, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        self.places.insert(place, id);
    }

    /// The folder of a place.
    pub fn worker_folder(&self, place: usize) -> PathBuf {
        self.folder.path().join(format!("worker{place}"))
    }

    /// The place of a worker that runs or ran.
    pub fn place_of(&self, worker: WorkerId) -> usize {
        *self.places.iter().find(|(_, id)| **id == worker).expect("it was started here").0
    }

    /// Takes the worker of a place out: it ends at once when it is dropped.
    pub fn take_worker(&mut self, place: usize) -> Arc<Worker> {
        let id = self.places[&place];
        let at = self.node.workers.iter().position(|worker| worker.id() == id).expect("it runs");
        self.node.workers.remove(at)
    }

    /// Stops all workers in good order.
    pub async fn stop_workers(&mut self) {
        for worker in std::mem::take(&mut self.node.workers) {
            worker.shutdown().await;
        }
    }

    /// Starts it again at its old address, with its old database.
    pub async fn start_coordinator(&mut self) {
        self.node.coordinator = Node::lead(self.coordinator.clone()).await.unwrap().coordinator;
    }

    /// Stops it in good order.
    pub async fn stop_coordinator(&mut self) {
        if let Some(coordinator) = self.node.coordinator.take() {
            coordinator.shutdown().await;
        }
    }

    /// A client that knows all workers.
    pub async fn client(&self, change: impl FnOnce(&mut ClientSettings)) -> Client {
        let mut settings = self.node.client_settings();
        settings.storage.max_retries = 1;
        change(&mut settings);
        let client = Client::connect(settings).await.unwrap();
        assert_eq!(client.view().workers.len(), self.node.workers.len());
        client
    }

    /// An object that is there without the cluster's doing.
    pub fn store(&self, key: &str, bytes: &[u8]) {
        self.s3.put(BUCKET, key, bytes).unwrap();
    }

    /// Bytes that all workers have under pins.
    pub fn pinned(&self) -> u64 {
        self.node.workers.iter().map(|worker| worker.report().dram.2).sum()
    }

    /// Where all of it lies.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Adds a mount.
pub async fn add_mount(client: &Client, name: &str, url: &str, options: MountOptions) {
    let add = AdminRequest::MountAdd { name: name.parse().unwrap(), url: url.to_string(), options };
    client.control(add).await.unwrap();
}

/// Bytes that a seed says.
pub fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
