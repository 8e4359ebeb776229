//! A whole small cluster in process, over a real S3 server.

use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_block_store::StoreSettings;
use forebay_client::{Address, AdminRequest, Client, ClientSettings, PutCondition};
use forebay_coordinator::{Coordinator, CoordinatorSettings, PlacementSettings};
use forebay_testing::{S3Server, S3Settings};
use forebay_types::{BitRate, ForebayPath, MountOptions, ObjectInfo, Validate};
use forebay_worker::{Tuning, Worker, WorkerSettings};

use crate::relay::Relay;

const BUCKET: &str = "data";

pub struct Cluster {
    pub s3: S3Server,
    pub coordinator: Option<Coordinator>,
    pub workers: Vec<Worker>,
    address: Address,
    folder: tempfile::TempDir,
    placement: PlacementSettings,
    lease: Duration,
    beat: Duration,
    /// Of the tiers of workers that are started from now on.
    pub dram_bytes: u64,
    pub disk_bytes: u64,
    /// By which address they reach the coordinator, when not by its own.
    pub by: Option<Address>,
    /// Where they are; this host when not said.
    pub location: Option<String>,
}

impl Cluster {
    /// Starts it with the mount `lake`, validated at every open.
    pub async fn start(workers: usize) -> Self {
        Self::start_with(workers, |_| {}).await
    }

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

    pub async fn start_as(
        workers: usize,
        change: impl FnOnce(&mut MountOptions),
        placement: PlacementSettings,
        lease: Duration,
        beat: Duration,
    ) -> Self {
        let settings = S3Settings { buckets: vec![BUCKET.into()], anonymous: true, ..S3Settings::default() };
        let s3 = S3Server::start(settings).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("metadata.db").display());
        let settings = CoordinatorSettings { placement: placement.clone(), lease, ..coordinator(url) };
        let coordinator = Coordinator::start(settings).await.unwrap();
        let address = coordinator.address();
        let mut cluster = Self {
            s3,
            coordinator: Some(coordinator),
            workers: Vec::new(),
            address,
            folder,
            placement,
            lease,
            beat,
            dram_bytes: 256 << 20,
            disk_bytes: 0,
            by: None,
            location: None,
        };
        for _ in 0..workers {
            cluster.add_worker().await;
        }
        let mut options = MountOptions {
            endpoint: Some(cluster.s3.endpoint()),
            anonymous: true,
            validate: Validate::Always,
            ..MountOptions::default()
        };
        change(&mut options);
        let client = cluster.client(|_| {}).await;
        let add = AdminRequest::MountAdd { name: "lake".parse().unwrap(), url: format!("s3://{BUCKET}"), options };
        client.control(add).await.unwrap();
        cluster
    }

    pub async fn add_worker(&mut self) {
        self.start_worker(self.workers.len()).await;
    }

    /// Starts the worker of a folder, again if it ran before.
    pub async fn start_worker(&mut self, ix: usize) {
        let folder = self.folder.path().join(format!("worker{ix}"));
        let store = StoreSettings::new(folder.join("tiers"), self.dram_bytes).with_disk(self.disk_bytes);
        let mut settings = WorkerSettings::new(self.by.as_ref().unwrap_or(&self.address).clone(), local(), store);
        settings.unix_socket = Some(folder.join("worker.sock"));
        settings.location = self.location.clone();
        let reclaim_after = Duration::from_millis(500);
        let tuning = Tuning { beat: self.beat, reclaim_after, ..Tuning::default() };
        // Tasks of the one before let its folder go a moment after it has stopped.
        let began = Instant::now();
        let worker = loop {
            match Worker::start_with(settings.clone(), tuning.clone()).await {
                Err(error) if error.message().contains("in use") && began.elapsed() < Duration::from_secs(10) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                worker => break worker.unwrap(),
            }
        };
        self.workers.push(worker);
    }

    /// A way to the coordinator that can be cut.
    pub async fn relay(&self) -> Relay {
        Relay::to(&self.address).await
    }

    /// A client that knows all workers.
    pub async fn client(&self, change: impl FnOnce(&mut ClientSettings)) -> Client {
        let mut settings = ClientSettings::new(self.address.clone());
        settings.storage.max_retries = 1;
        change(&mut settings);
        let client = Client::connect(settings).await.unwrap();
        assert_eq!(client.view().workers.len(), self.workers.len());
        client
    }

    /// An object that is there without the cluster's doing.
    pub fn store(&self, key: &str, bytes: &[u8]) {
        self.s3.put(BUCKET, key, bytes).unwrap();
    }

    pub async fn stop_workers(&mut self) {
        for worker in self.workers.drain(..) {
            worker.shutdown().await;
        }
    }

    /// At its old address, with its old database.
    pub async fn start_coordinator(&mut self) {
        let (listen, placement, lease) = (self.address.clone(), self.placement.clone(), self.lease);
        let settings = CoordinatorSettings { listen, placement, lease, ..coordinator(self.metadata_url()) };
        self.coordinator = Some(Coordinator::start(settings).await.unwrap());
    }

    fn metadata_url(&self) -> String {
        format!("sqlite:{}", self.folder.path().join("metadata.db").display())
    }

    pub async fn stop_coordinator(&mut self) {
        if let Some(coordinator) = self.coordinator.take() {
            coordinator.shutdown().await;
        }
    }

    /// Bytes that all workers have under pins.
    pub fn pinned(&self) -> u64 {
        self.workers.iter().map(|worker| worker.report().dram.2).sum()
    }
}

fn coordinator(metadata_url: String) -> CoordinatorSettings {
    CoordinatorSettings::new(local(), metadata_url)
}

fn local() -> Address {
    Address::Tcp("127.0.0.1:0".into())
}

pub fn path(key: &str) -> ForebayPath {
    format!("/lake/{key}").parse().unwrap()
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

pub fn rate(bytes_per_sec: u64) -> Option<BitRate> {
    Some(BitRate::from_bytes_per_sec(bytes_per_sec))
}

pub async fn put(client: &Client, key: &str, bytes: Vec<u8>) -> ObjectInfo {
    client.put(&path(key), Bytes::from(bytes), PutCondition::Any).await.unwrap()
}

pub async fn pause(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}
