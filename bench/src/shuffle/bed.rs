use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use forebay_block_store::StoreSettings;
use forebay_client::{Client, ClientSettings};
use forebay_coordinator::{Coordinator, CoordinatorSettings};
use forebay_distributed::{Cluster, ClusterSettings, Executor, ExecutorSettings, Policy, Scheduler, SchedulerSettings, Shuffle};
use forebay_protocol::ControlRequest;
use forebay_sql::{Engine, EngineSettings};
use forebay_transport::{Address, Security};
use forebay_types::{Error, MountOptions, Result};
use forebay_worker::{Worker, WorkerSettings};
use tempfile::TempDir;

use super::work::Work;
use crate::cpu;
use crate::rig::MOUNT;

const EXECUTORS: usize = 4;

/// Four executors, each beside a worker and with a folder of its own, over a folder of files.
pub struct Bed {
    engine: Engine,
    executors: Vec<Executor>,
    scheduler: Scheduler,
    workers: Vec<Worker>,
    coordinator: Coordinator,
    _folder: TempDir,
}

/// What a run took.
#[derive(Clone, Debug)]
pub struct Measured {
    pub secs: f64,
    pub write_secs: f64,
    pub fetch_secs: f64,
    pub cpu_secs: f64,
    pub bytes_passed: u64,
    pub answer: String,
}

impl Bed {
    pub async fn start(shuffle: Shuffle, results: &Path, data: &Path, work: &Work, tcp: bool) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let local = || Address::Tcp("127.0.0.1:0".to_string());
        let metadata_url = format!("sqlite:{}", folder.path().join("metadata.db").display());
        let coordinator = Coordinator::start(CoordinatorSettings::new(local(), metadata_url)).await?;
        // Room for all that passes, in either tier.
        let bytes = (work.bytes / EXECUTORS as u64 * 2).max(512 << 20);
        let mut workers = Vec::new();
        for ix in 0..EXECUTORS {
            let mut store = StoreSettings::new(folder.path().join(format!("worker-{ix}")), bytes);
            if shuffle == Shuffle::Nodes(forebay_client::StorageClass::Disk) {
                store = store.with_disk(bytes);
            }
            let mut settings = WorkerSettings::new(coordinator.address(), local(), store);
            settings.unix_socket = Some(folder.path().join(format!("{ix}.sock")));
            settings.temporary_share = 0.8;
            workers.push(Worker::start(settings).await?);
        }
        let connect = || {
            let settings = ClientSettings { in_place: !tcp, ..ClientSettings::new(coordinator.address()) };
            Client::connect(settings)
        };
        let client = connect().await?;
        let url = format!("file://{}", data.display());
        client.control(ControlRequest::MountAdd { name: MOUNT.parse()?, url, options: MountOptions::default() }).await?;
        client.refresh_view().await?;
        let security = Security::default();
        let listen = || "127.0.0.1:0".to_string();
        let settings = SchedulerSettings {
            listen: listen(),
            advertise: None,
            security: security.clone(),
            order: Policy::Fifo,
            ahead: true,
            shuffle,
        };
        let scheduler = Scheduler::start(connect().await?, settings).await?;
        let mut executors = Vec::new();
        for (ix, worker) in workers.iter().enumerate() {
            let settings = ExecutorSettings {
                scheduler: scheduler.address().to_string(),
                security: security.clone(),
                listen: listen(),
                advertise: None,
                slots: work.slots,
                folder: results.join(format!("executor-{ix}")),
                worker: Some(worker.id()),
                engine: EngineSettings::default(),
            };
            executors.push(Executor::start(connect().await?, settings).await?);
        }
        let partitions = Some(work.partitions);
        let settings = ClusterSettings { scheduler: scheduler.address().to_string(), security, priority: 0, partitions };
        let engine = Engine::over_cluster(client, EngineSettings::default(), Arc::new(Cluster::connect(settings).await?));
        work.views(&engine).await?;
        Ok(Self { engine, executors, scheduler, workers, coordinator, _folder: folder })
    }

    /// Runs it, when everything that it reads has been read once.
    pub async fn measure(&self, work: &Work) -> Result<Measured> {
        let control = Cluster::control(&self.scheduler.address().to_string(), &Security::default())?;
        if work.is_warmed_up() {
            work.run(&self.engine).await?;
        }
        let before = control.jobs().await?.len();
        let (times, cpu, start) = (self.times(), cpu::own()?, Instant::now());
        let answer = work.run(&self.engine).await?;
        let secs = start.elapsed().as_secs_f64();
        let (after, cpu) = (self.times(), (cpu::own()?.saturating_sub(cpu)).as_secs_f64());
        let jobs = control.jobs().await?;
        if jobs.len() < before + work.queries() {
            return Err(Error::internal("a query did not run on the cluster"));
        }
        let bytes_passed = jobs[before..].iter().map(|job| job.bytes_passed).sum();
        let (write_secs, fetch_secs) = (after.0 - times.0, after.1 - times.1);
        Ok(Measured { secs, write_secs, fetch_secs, cpu_secs: cpu, bytes_passed, answer })
    }

    /// Seconds of all executors' tasks for writing and fetching.
    fn times(&self) -> (f64, f64) {
        let times = self.executors.iter().map(Executor::shuffle_times);
        times.fold((0.0, 0.0), |(write, fetch), times| (write + times.write.as_secs_f64(), fetch + times.fetch.as_secs_f64()))
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
