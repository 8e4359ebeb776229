//! A cluster of coordinator, workers, executors and scheduler in the test's process, with engines on it and beside it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use forebay_client::{Client, ClientSettings, Security, StorageClass, Wait};
use forebay_distributed::{
    Cluster, ClusterSettings, CopyRules, Executor, ExecutorSettings, Policy, Scheduler, SchedulerControl, SchedulerSettings,
    Shuffle,
};
use forebay_sql::{Engine, EngineMemory, EngineSettings};
use forebay_testbed::{BUCKET, TestCluster, add_mount};
use forebay_transport::Credential;
use forebay_types::{MountOptions, Validate};

/// A cluster with `/lake` mounted.
pub struct Bed {
    pub client: Client,
    scheduler: Option<Scheduler>,
    scheduler_address: SocketAddr,
    pub executors: Vec<Option<Executor>>,
    security: Security,
    pub test: TestCluster,
}

impl Bed {
    /// So many workers, each with an executor of two slots beside it.
    pub async fn start(count: usize) -> Self {
        Self::with(count, MountOptions::default(), true).await
    }

    pub async fn with(count: usize, options: MountOptions, ahead: bool) -> Self {
        Self::secured(count, options, ahead, Security::default()).await
    }

    pub async fn secured(count: usize, options: MountOptions, ahead: bool, security: Security) -> Self {
        Self::of(count, options, ahead, security, Shuffle::default(), EngineSettings::default(), (0, None)).await
    }

    /// The same with so much memory for the tasks of each executor.
    pub async fn with_memory(count: usize, bytes: u64) -> Self {
        let engine = EngineSettings { memory: EngineMemory::of_bytes(Some(bytes)), ..EngineSettings::default() };
        Self::of(count, MountOptions::default(), true, Security::default(), Shuffle::default(), engine, (0, None)).await
    }

    /// The same with what passes between stages in temporary nodes.
    pub async fn shuffling(count: usize, options: MountOptions) -> Self {
        Self::merging(count, options, Shuffle::Nodes(StorageClass::Dram), 0).await
    }

    /// The same where a task reads at least so many bytes of what other stages have left; with 0 each partition is a task.
    pub async fn merging(count: usize, options: MountOptions, shuffle: Shuffle, task_bytes: u64) -> Self {
        Self::of(count, options, true, Security::default(), shuffle, EngineSettings::default(), (task_bytes, None)).await
    }

    /// The same where tasks fetch what they read, and those that are late by these rules are run once more.
    pub async fn copying(count: usize, options: MountOptions, shuffle: Shuffle, rules: CopyRules) -> Self {
        Self::of(count, options, false, Security::default(), shuffle, EngineSettings::default(), (0, Some(rules))).await
    }

    async fn of(
        count: usize,
        options: MountOptions,
        ahead: bool,
        security: Security,
        shuffle: Shuffle,
        engine: EngineSettings,
        (task_bytes, copies): (u64, Option<CopyRules>),
    ) -> Self {
        let mut test = TestCluster::empty(|settings| {
            settings.lease = Duration::from_secs(2);
            settings.security = security.clone();
        })
        .await;
        for _ in 0..count {
            test.add_worker().await;
        }
        let client = connect(&test).await;
        let endpoint = Some(test.s3.endpoint());
        let options = MountOptions { endpoint, anonymous: true, validate: Validate::Always, ..options };
        add_mount(&client, "lake", &format!("s3://{BUCKET}/pool"), options).await;
        let listen = "127.0.0.1:0".to_string();
        let order = Policy::Fifo;
        let security_of = security.clone();
        let settings = SchedulerSettings {
            listen,
            advertise: None,
            security: security_of,
            order,
            ahead,
            shuffle,
            task_bytes,
            copies,
            slow_query: None,
        };
        let scheduler = Scheduler::start(connect(&test).await, settings).await.unwrap();
        let executors = Vec::new();
        let scheduler_address = scheduler.address();
        let scheduler = Some(scheduler);
        let mut bed = Self { client, scheduler, scheduler_address, executors, security, test };
        for ix in 0..count {
            let worker = Some(bed.test.node.workers[ix].id());
            let settings = ExecutorSettings {
                scheduler: bed.scheduler_address.to_string(),
                follows: false,
                security: bed.security.clone(),
                listen: "127.0.0.1:0".to_string(),
                advertise: None,
                slots: 2,
                folder: bed.executor_folder(ix),
                worker,
                engine: engine.clone(),
            };
            let client = connect(&bed.test).await;
            bed.executors.push(Some(Executor::start(client, settings).await.unwrap()));
        }
        bed
    }

    /// An engine of this process.
    pub fn here(&self) -> Engine {
        Engine::over_client(self.client.clone(), EngineSettings { target_partitions: Some(2), ..Default::default() })
    }

    /// An engine whose queries run on the cluster.
    pub async fn cluster(&self) -> Engine {
        self.cluster_with(0).await
    }

    pub async fn cluster_with(&self, priority: i32) -> Engine {
        let cluster = self.connect_cluster(priority).await;
        Engine::over_cluster(self.client.clone(), EngineSettings::default(), Arc::new(cluster))
    }

    /// The scheduler, as an engine reaches it.
    pub async fn connect_cluster(&self, priority: i32) -> Cluster {
        let scheduler = self.scheduler_address.to_string();
        let settings = ClusterSettings {
            scheduler,
            finds: None,
            wait: Wait::default(),
            security: self.security.clone(),
            priority,
            partitions: Some(6),
        };
        Cluster::connect(settings).await.unwrap()
    }

    pub fn control(&self) -> SchedulerControl {
        Cluster::control(&self.scheduler_address.to_string(), &self.security).unwrap()
    }

    /// Where an executor keeps what it has for others.
    pub fn executor_folder(&self, ix: usize) -> PathBuf {
        self.test.folder().join(format!("executor-{ix}"))
    }

    /// What its processes show.
    pub fn shows(&self) -> Credential {
        self.security.shows.clone().unwrap()
    }

    /// Where the scheduler listens.
    pub fn scheduler_at(&self) -> SocketAddr {
        self.scheduler_address
    }

    /// The scheduler dies.
    pub fn without_scheduler(mut self) -> Self {
        drop(self.scheduler.take());
        self
    }

    pub fn put(&self, key: &str, bytes: &[u8]) {
        self.test.store(&format!("pool/{key}"), bytes);
    }

    /// An engine of this process and one that asks the cluster, both with the tables of TPC-H.
    pub async fn both_with_tpch(&self, scale: f64) -> (Engine, Engine) {
        let (here, cluster) = (self.here(), self.cluster().await);
        self.tpch(scale, &[&here, &cluster]).await;
        (here, cluster)
    }

    /// The tables of TPC-H below `/lake/tpch`, and their views in these engines.
    pub async fn tpch(&self, scale: f64, engines: &[&Engine]) {
        let tables = forebay_tpch::prepare(self.test.folder(), scale, |_, _| {}).await.unwrap();
        for table in forebay_tpch::TABLES {
            for file in std::fs::read_dir(tables.folder.join(table)).unwrap() {
                let file = file.unwrap();
                let name = file.file_name().into_string().unwrap();
                self.put(&format!("tpch/{table}/{name}"), &std::fs::read(file.path()).unwrap());
            }
        }
        for engine in engines {
            for table in forebay_tpch::TABLES {
                rows(engine, &format!("create view {table} as select * from '/lake/tpch/{table}/*.parquet'")).await;
            }
        }
    }
}

async fn connect(test: &TestCluster) -> Client {
    let settings = ClientSettings { view_poll: Duration::from_millis(300), ..test.node.client_settings() };
    Client::connect(settings).await.unwrap()
}

/// The rows of a query, sorted: a line each.
pub async fn rows(engine: &Engine, sql: &str) -> Vec<String> {
    let mut query = engine.execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {} {error}", error.kind()));
    lines(&query.collect().await.unwrap_or_else(|error| panic!("{sql}: {} {error}", error.kind())))
}

pub fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let table = pretty_format_batches(batches).unwrap().to_string();
    let mut lines: Vec<String> = table
        .lines()
        .filter(|line| line.starts_with('|'))
        .skip(1)
        .map(|line| line.split('|').map(|cell| rounded(cell.trim())).collect::<Vec<_>>().join(" "))
        .collect();
    lines.sort();
    lines
}

/// Sums of floating point numbers differ in their last digits with the order of the summands.
fn rounded(cell: &str) -> String {
    match cell.parse::<f64>() {
        Ok(number) if cell.contains('.') => format!("{number:.4}"),
        _ => cell.to_string(),
    }
}
