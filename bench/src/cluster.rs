//! A cluster of this process: a coordinator, workers with an executor beside each, and a scheduler.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use forebay_client::{Client, ClientSettings, Wait};
use forebay_distributed::{
    Cluster, ClusterSettings, CopyRules, Executor, ExecutorSettings, Policy, Scheduler, SchedulerControl, SchedulerSettings,
    Shuffle,
};
use forebay_node::Node;
use forebay_sql::{Engine, EngineSettings};
use forebay_transport::Security;
use forebay_types::Result;
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
    /// What a task reads at least; 0: each partition is a task.
    pub task_bytes: u64,
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
            task_bytes: 4 << 20,
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
    pub node: Node,
    scheduler: Scheduler,
    _folder: TempDir,
}

impl LocalCluster {
    /// Starts all of it; nothing is mounted.
    pub async fn start(shape: &Shape) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut node = Node::lead_in(folder.path(), Security::default()).await?;
        for ix in 0..shape.workers {
            let mut worker = node.worker_in(&folder.path().join(format!("worker-{ix}")), shape.dram_bytes);
            worker.store.disk_bytes = shape.disk_bytes;
            worker.temporary_share = shape.temporary_share.unwrap_or(worker.temporary_share);
            node.start_worker(worker).await?;
        }
        let connect = || Client::connect(ClientSettings { in_place: shape.in_place, ..node.client_settings() });
        let client = connect().await?;
        let listen = || "127.0.0.1:0".to_string();
        let settings = SchedulerSettings {
            listen: listen(),
            advertise: None,
            security: Security::default(),
            order: shape.order,
            ahead: shape.ahead,
            shuffle: shape.shuffle,
            task_bytes: shape.task_bytes,
            copies: Some(CopyRules::default()),
            slow_query: None,
        };
        let scheduler = Scheduler::start(connect().await?, settings).await?;
        let results = shape.results.clone().unwrap_or_else(|| folder.path().to_path_buf());
        let (mut executors, mut readers) = (Vec::new(), Vec::new());
        for (ix, worker) in node.workers.iter().enumerate() {
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
        Ok(Self { client, readers, executors, node, scheduler, _folder: folder })
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

    /// Where the scheduler listens.
    pub fn scheduler_address(&self) -> SocketAddr {
        self.scheduler.address()
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
        self.node.shutdown().await;
    }
}
