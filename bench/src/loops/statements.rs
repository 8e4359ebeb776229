//! SQL by Flight SQL, and by a cluster of one executor, over a rig's node.

use std::fmt::Display;
use std::sync::Arc;

use arrow_flight::sql::client::FlightSqlServiceClient;
use datafusion::arrow::array::RecordBatch;
use forebay_bench_harness::security;
use forebay_client::Wait;
use forebay_distributed::{
    Cluster, ClusterSettings, CopyRules, Executor, ExecutorSettings, Policy, Scheduler, SchedulerSettings, Shuffle,
};
use forebay_flight::{Connect, FlightServer, FlightSettings};
use forebay_sql::{Engine, EngineSettings};
use forebay_types::{Error, Result, WorkerId};
use futures::TryStreamExt;
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};

use crate::rig::Node;

/// A Flight SQL server of this process, and a client of it.
pub(super) struct Flight {
    client: FlightSqlServiceClient<Channel>,
    _server: FlightServer,
}

impl Flight {
    /// Every caller has this engine.
    pub(super) async fn start(engine: &Engine) -> Result<Self> {
        let engine = engine.clone();
        let connect: Connect = Arc::new(move |_| {
            let engine = engine.clone();
            Box::pin(async move { Ok(engine) })
        });
        let server = FlightServer::start(FlightSettings { listen: anywhere(), tls: None }, connect).await?;
        let endpoint = Endpoint::from_shared(format!("http://{}", server.address())).map_err(failed)?;
        let mut client = FlightSqlServiceClient::new(endpoint.connect().await.map_err(failed)?);
        client.set_token("whoever calls has the engine".to_string());
        Ok(Self { client, _server: server })
    }

    /// Runs a statement, and takes all of its rows.
    pub(super) async fn once(&self, sql: &str) -> Result<()> {
        let mut client = self.client.clone();
        let info = client.execute(sql.to_string(), None).await.map_err(failed)?;
        for endpoint in info.endpoint {
            let ticket = endpoint.ticket.ok_or_else(|| Error::internal("rows without a ticket"))?;
            let rows = client.do_get(ticket).await.map_err(failed)?;
            rows.try_collect::<Vec<RecordBatch>>().await.map_err(failed)?;
        }
        Ok(())
    }
}

/// A scheduler, and an executor beside the node's worker.
pub(super) struct Executors {
    engine: Engine,
    _executor: Executor,
    _scheduler: Scheduler,
    _folder: TempDir,
}

impl Executors {
    pub(super) async fn start(node: &Node, worker: WorkerId) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let settings = SchedulerSettings {
            listen: anywhere(),
            advertise: None,
            security: security(),
            order: Policy::Fifo,
            ahead: true,
            shuffle: Shuffle::default(),
            task_bytes: 4 << 20,
            copies: Some(CopyRules::default()),
            slow_query: None,
        };
        let scheduler = Scheduler::start(node.client(true).await?, settings).await?;
        let address = scheduler.address().to_string();
        let settings = ExecutorSettings {
            scheduler: address.clone(),
            follows: false,
            security: security(),
            listen: anywhere(),
            advertise: None,
            slots: 4,
            folder: folder.path().join("executor"),
            worker: Some(worker),
            engine: EngineSettings::default(),
        };
        let executor = Executor::start(node.client(true).await?, settings).await?;
        let settings = ClusterSettings {
            scheduler: address,
            finds: None,
            wait: Wait::default(),
            security: security(),
            priority: 0,
            partitions: Some(1),
        };
        let cluster = Arc::new(Cluster::connect(settings).await?);
        let engine = Engine::over_cluster(node.client(true).await?, EngineSettings::default(), cluster);
        Ok(Self { engine, _executor: executor, _scheduler: scheduler, _folder: folder })
    }

    /// Runs a statement, and takes all of its rows.
    pub(super) async fn once(&self, sql: &str) -> Result<()> {
        self.engine.execute(sql).await?.collect().await.map(|_| ())
    }
}

fn anywhere() -> String {
    "127.0.0.1:0".to_string()
}

fn failed(error: impl Display) -> Error {
    Error::internal(error.to_string())
}
