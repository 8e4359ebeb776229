//! A cluster of this process: a coordinator, workers with an executor beside each, and a scheduler.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use forebay_block_store::StoreSettings;
use forebay_client::{Client, ClientSettings, Wait};
use forebay_coordinator::{Coordinator, CoordinatorSettings};
use forebay_distributed::{
    Cluster, ClusterSettings, Executor, ExecutorSettings, Policy, Scheduler, SchedulerControl, SchedulerSettings, Shuffle,
};
use forebay_sql::{Engine, EngineSettings};
use forebay_transport::{Address, Security};
use forebay_types::Result;
use forebay_worker::{Worker, WorkerSettings};
use tempfile::TempDir;

/// How a cluster is set up.
#[derive(Clone)]
pub struct Shape {
    pub workers: usize,
    /// Of each executor.
    pub slots: usize,
    pub order: Policy,
    /// The data scheduler is on.
    pub ahead: bool,
    pub shuffle: Shuffle,
    /// Of each worker's DRAM tier.
    pub dram_bytes: u64,
    /// Of each worker's disk tier; 0 for none.
    pub disk_bytes: u64,
    /// The part of the tiers that temporary data may take.
    pub temporary_share: Option<f64>,
    /// Clients read and write where the data lies; off: over TCP, as from another host.
    pub in_place: bool,
    /// Executors keep their files here; in a folder of the cluster's when not set.
    pub results: Option<PathBuf>,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            workers: 4,
            slots: 2,
            order: Policy::Fifo,
            ahead: true,
            shuffle: Shuffle::default(),
            dram_bytes: 1 << 30,
            disk_bytes: 0,
            temporary_share: None,
            in_place: true,
            results: None,
        }
    }
}

pub struct LocalCluster {
    pub client: Client,
    /// Of the executors: what they have read in place stays theirs until they let go of it.
    pub readers: Vec<Client>,
    pub executors: Vec<Executor>,
    pub workers: Vec<Worker>,
    scheduler: Scheduler,
    coordinator: Coordinator,
    _folder: TempDir,
}

impl LocalCluster {
    /// Starts all of it; nothing is mounted.
    pub async fn start(shape: &Shape) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let local = || Address::Tcp("127.0.0.1:0".to_string());
        let metadata_url = format!("sqlite:{}", folder.path().join("metadata.db").display());
        let coordinator = Coordinator::start(CoordinatorSettings::new(local(), metadata_url)).await?;
        let mut workers = Vec::new();
        for ix in 0..shape.workers {
            let mut store = StoreSettings::new(folder.path().join(format!("worker-{ix}")), shape.dram_bytes);
            if shape.disk_bytes > 0 {
                store = store.with_disk(shape.disk_bytes);
            }
            let mut settings = WorkerSettings::new(coordinator.address(), local(), store);
            settings.unix_socket = Some(folder.path().join(format!("{ix}.sock")));
            settings.temporary_share = shape.temporary_share.unwrap_or(settings.temporary_share);
            workers.push(Worker::start(settings).await?);
        }
        let connect =
            || Client::connect(ClientSettings { in_place: shape.in_place, ..ClientSettings::new(coordinator.address()) });
        let client = connect().await?;
        let listen = || "127.0.0.1:0".to_string();
        let settings = SchedulerSettings {
            listen: listen(),
            advertise: None,
            security: Security::default(),
            order: shape.order,
            ahead: shape.ahead,
            shuffle: shape.shuffle,
            slow_query: None,
        };
        let scheduler = Scheduler::start(connect().await?, settings).await?;
        let results = shape.results.clone().unwrap_or_else(|| folder.path().to_path_buf());
        let (mut executors, mut readers) = (Vec::new(), Vec::new());
        for (ix, worker) in workers.iter().enumerate() {
            let settings = ExecutorSettings {
                scheduler: scheduler.address().to_string(),
                follows: false,
                security: Security::default(),
                listen: listen(),
                advertise: None,
                slots: shape.slots,
                folder: results.join(format!("executor-{ix}")),
                worker: Some(worker.id()),
                engine: EngineSettings::default(),
            };
            let reader = connect().await?;
            executors.push(Executor::start(reader.clone(), settings).await?);
            readers.push(reader);
        }
        Ok(Self { client, readers, executors, workers, scheduler, coordinator, _folder: folder })
    }

    /// An engine whose queries run on the cluster, in at most so many tasks a stage.
    pub async fn engine(&self, priority: i32, partitions: usize) -> Result<Engine> {
        let settings = ClusterSettings {
            scheduler: self.scheduler.address().to_string(),
            finds: None,
            wait: Wait::default(),
            security: Security::default(),
            priority,
            partitions: Some(partitions),
        };
        Ok(Engine::over_cluster(self.client.clone(), EngineSettings::default(), Arc::new(Cluster::connect(settings).await?)))
    }

    /// Questions to the scheduler.
    pub fn control(&self) -> Result<SchedulerControl> {
        Cluster::control(&self.scheduler.address().to_string(), &Security::default())
    }

    /// What all executors' tasks took to write and to fetch what passes between stages.
    pub fn shuffle_times(&self) -> (Duration, Duration) {
        let times = self.executors.iter().map(Executor::shuffle_times);
        times.fold(Default::default(), |(write, fetch), times| (write + times.write, fetch + times.fetch))
    }

    /// Stops everything, the last started first.
    pub async fn stop(self) {
        drop((self.executors, self.scheduler));
        for worker in &self.workers {
            worker.shutdown().await;
        }
        self.coordinator.shutdown().await;
    }
}
