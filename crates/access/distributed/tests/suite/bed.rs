use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use forebay_block_store::StoreSettings;
use forebay_client::{Address, Client, ClientSettings, ControlRequest, Security};
use forebay_coordinator::{Coordinator, CoordinatorSettings};
use forebay_distributed::{
    Cluster, ClusterSettings, Executor, ExecutorSettings, Policy, Scheduler, SchedulerControl, SchedulerSettings,
};
use forebay_sql::{Engine, EngineSettings};
use forebay_testing::{S3Server, S3Settings};
use forebay_types::{MountOptions, Validate};
use forebay_worker::{Worker, WorkerSettings};
use tempfile::TempDir;

pub const BUCKET: &str = "river";

/// A cluster with `/lake` mounted.
pub struct Bed {
    pub s3: S3Server,
    pub client: Client,
    pub scheduler: Scheduler,
    pub executors: Vec<Option<Executor>>,
    pub workers: Vec<Option<Worker>>,
    _coordinator: Coordinator,
    folder: TempDir,
}

fn local() -> Address {
    Address::Tcp("127.0.0.1:0".to_string())
}

impl Bed {
    /// So many workers, each with an executor of two slots beside it.
    pub async fn start(count: usize) -> Self {
        Self::with(count, MountOptions::default(), true).await
    }

    pub async fn with(count: usize, options: MountOptions, ahead: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let s3 =
            S3Server::start(S3Settings { buckets: vec![BUCKET.to_string()], anonymous: true, ..Default::default() }).unwrap();
        let metadata_url = format!("sqlite:{}", folder.path().join("meta.db").display());
        let mut settings = CoordinatorSettings::new(local(), metadata_url);
        settings.lease = Duration::from_secs(1);
        let coordinator = Coordinator::start(settings).await.unwrap();
        let mut workers = Vec::new();
        for ix in 0..count {
            let place = folder.path().join(format!("worker-{ix}"));
            let mut settings = WorkerSettings::new(coordinator.address(), local(), StoreSettings::new(&place, 256 << 20));
            settings.unix_socket = Some(folder.path().join(format!("{ix}.sock")));
            workers.push(Some(Worker::start(settings).await.unwrap()));
        }
        let client = connect(&coordinator).await;
        let options = MountOptions { endpoint: Some(s3.endpoint()), anonymous: true, validate: Validate::Always, ..options };
        let mount = ControlRequest::MountAdd { name: "lake".parse().unwrap(), url: format!("s3://{BUCKET}/pool"), options };
        client.control(mount).await.unwrap();
        let settings = SchedulerSettings { listen: "127.0.0.1:0".to_string(), security: open(), order: Policy::Fifo, ahead };
        let scheduler = Scheduler::start(connect(&coordinator).await, settings).await.unwrap();
        let mut bed = Self { s3, client, scheduler, executors: Vec::new(), workers, _coordinator: coordinator, folder };
        for ix in 0..count {
            let worker = bed.workers[ix].as_ref().map(Worker::id);
            let settings = ExecutorSettings {
                scheduler: bed.scheduler.address().to_string(),
                security: open(),
                listen: "127.0.0.1:0".to_string(),
                advertise: None,
                slots: 2,
                folder: bed.folder.path().join(format!("executor-{ix}")),
                worker,
                engine: EngineSettings::default(),
            };
            bed.executors.push(Some(Executor::start(connect(&bed._coordinator).await, settings).await.unwrap()));
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
        let scheduler = self.scheduler.address().to_string();
        let cluster =
            Cluster::connect(ClusterSettings { scheduler, security: open(), priority, partitions: Some(6) }).await.unwrap();
        Engine::over_cluster(self.client.clone(), EngineSettings::default(), Arc::new(cluster))
    }

    pub fn control(&self) -> SchedulerControl {
        Cluster::control(&self.scheduler.address().to_string(), &open()).unwrap()
    }

    pub fn put(&self, key: &str, bytes: &[u8]) {
        self.s3.put(BUCKET, &format!("pool/{key}"), bytes).unwrap();
    }

    /// The tables of TPC-H below `/lake/tpch`, and their views in these engines.
    pub async fn tpch(&self, scale: f64, engines: &[&Engine]) {
        let tables = forebay_tpch::prepare(self.folder.path(), scale, |_, _| {}).await.unwrap();
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

/// Neither token nor TLS.
pub fn open() -> Security {
    Security::default()
}

async fn connect(coordinator: &Coordinator) -> Client {
    let settings = ClientSettings { view_poll: Duration::from_millis(300), ..ClientSettings::new(coordinator.address()) };
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
