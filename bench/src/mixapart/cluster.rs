use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_block_store::StoreSettings;
use forebay_client::{Client, ClientSettings};
use forebay_coordinator::{Coordinator, CoordinatorSettings};
use forebay_distributed::{
    Cluster, ClusterSettings, Executor, ExecutorSettings, JobState, Policy, Scheduler, SchedulerControl, SchedulerSettings,
    Shuffle,
};
use forebay_protocol::ControlRequest;
use forebay_sql::{Engine, EngineSettings};
use forebay_transport::{Address, Security};
use forebay_types::{BitRate, Error, MountOptions, Result};
use forebay_worker::{Worker, WorkerSettings};
use tempfile::TempDir;

use crate::cpu;
use crate::rig::{MOUNT, S3};

/// Workers, each with an executor, and slots of each executor.
#[derive(Clone, Copy)]
pub struct Shape {
    pub workers: usize,
    pub slots: usize,
    pub order: Policy,
    /// The data scheduler is on.
    pub ahead: bool,
}

/// A cluster of this process over an S3 server of its own.
pub struct Bed {
    pub s3: S3,
    pub client: Client,
    /// Of the executors: what they have read in place stays theirs until they let go of it.
    readers: Vec<Client>,
    executors: Vec<Executor>,
    scheduler: Scheduler,
    workers: Vec<Worker>,
    coordinator: Coordinator,
    _folder: TempDir,
}

impl Bed {
    pub async fn start(shape: Shape) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let s3 = S3::start(None, std::time::Duration::ZERO)?;
        let local = || Address::Tcp("127.0.0.1:0".to_string());
        let metadata_url = format!("sqlite:{}", folder.path().join("metadata.db").display());
        let coordinator = Coordinator::start(CoordinatorSettings::new(local(), metadata_url)).await?;
        let mut workers = Vec::new();
        for ix in 0..shape.workers {
            let store = StoreSettings::new(folder.path().join(format!("worker-{ix}")), 1 << 30);
            let mut settings = WorkerSettings::new(coordinator.address(), local(), store);
            settings.unix_socket = Some(folder.path().join(format!("{ix}.sock")));
            workers.push(Worker::start(settings).await?);
        }
        let connect = || Client::connect(ClientSettings::new(coordinator.address()));
        let client = connect().await?;
        crate::rig::mount(&client, s3.endpoint(), None).await?;
        let security = Security::default();
        let listen = || "127.0.0.1:0".to_string();
        let (order, ahead) = (shape.order, shape.ahead);
        let shuffle = Shuffle::default();
        let settings = SchedulerSettings { listen: listen(), advertise: None, security: security.clone(), order, ahead, shuffle };
        let scheduler = Scheduler::start(connect().await?, settings).await?;
        let (mut executors, mut readers) = (Vec::new(), Vec::new());
        for (ix, worker) in workers.iter().enumerate() {
            let settings = ExecutorSettings {
                scheduler: scheduler.address().to_string(),
                security: security.clone(),
                listen: listen(),
                advertise: None,
                slots: shape.slots,
                folder: folder.path().join(format!("executor-{ix}")),
                worker: Some(worker.id()),
                engine: EngineSettings::default(),
            };
            let reader = connect().await?;
            executors.push(Executor::start(reader.clone(), settings).await?);
            readers.push(reader);
        }
        Ok(Self { s3, client, readers, executors, scheduler, workers, coordinator, _folder: folder })
    }

    /// An engine whose queries run on the cluster, in at most so many tasks a stage.
    pub async fn engine(&self, priority: i32, partitions: usize) -> Result<Engine> {
        let settings = ClusterSettings {
            scheduler: self.scheduler.address().to_string(),
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

    /// The job that ended last.
    pub async fn last_job(&self) -> Result<JobState> {
        self.control()?.jobs().await?.pop().ok_or_else(|| Error::internal("no job ran on the cluster"))
    }

    /// The mount's bound, which holds when this returns.
    pub async fn bound(&self, bytes_per_sec: Option<u64>) -> Result<()> {
        let options = MountOptions {
            endpoint: Some(self.s3.endpoint().to_string()),
            bandwidth: bytes_per_sec.map(BitRate::from_bytes_per_sec),
            ..MountOptions::default()
        };
        self.client.control(ControlRequest::MountSet { name: MOUNT.parse()?, options }).await?;
        // Workers hear of it with their next heartbeat.
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok(())
    }

    /// Drops what is cached of these keys.
    pub async fn free(&self, keys: &[String]) -> Result<()> {
        let versions = self.versions(keys).await?;
        for client in self.readers.iter().chain([&self.client]) {
            client.free(&versions).await?;
        }
        Ok(())
    }

    /// Brings all of these keys under the bound, as `forebay load` does.
    pub async fn load(&self, keys: &[String]) -> Result<Run> {
        let versions = self.versions(keys).await?;
        self.measure(async { self.client.load(versions, false, |_| ()).await.map(|_| String::new()) }).await
    }

    /// Runs something that has an answer.
    pub async fn measure(&self, run: impl Future<Output = Result<String>>) -> Result<Run> {
        let cpu = || Ok::<_, Error>(cpu::own()? + self.s3.cpu()?);
        let (start, before) = (Instant::now(), cpu()?);
        let answer = run.await?;
        let secs = start.elapsed().as_secs_f64();
        Ok(Run { secs, cpu_secs: (cpu()?.saturating_sub(before)).as_secs_f64(), answer })
    }

    /// Bytes that the workers have read from the sockets of shared storage.
    pub fn socket_bytes_in(&self) -> u64 {
        let reports = self.workers.iter().map(|worker| worker.report());
        reports.flat_map(|report| report.storage).map(|(_, counters)| counters.socket_bytes_in).sum()
    }

    async fn versions(&self, keys: &[String]) -> Result<Vec<forebay_types::ObjectVersion>> {
        let mut versions = Vec::new();
        for key in keys {
            versions.push(self.client.open(&crate::rig::path(key)?).await?.version);
        }
        Ok(versions)
    }

    /// Stops everything, the last started first.
    pub async fn stop(self) {
        drop(self.executors);
        drop(self.scheduler);
        for worker in &self.workers {
            worker.shutdown().await;
        }
        self.coordinator.shutdown().await;
    }
}

/// What a run took, with the CPU time of this process and of the S3 server.
pub struct Run {
    pub secs: f64,
    pub cpu_secs: f64,
    pub answer: String,
}
