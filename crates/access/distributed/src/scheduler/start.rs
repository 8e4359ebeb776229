use std::net::SocketAddr;
use std::sync::Arc;

use arrow_flight::flight_service_server::FlightServiceServer;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpcServer;
use ballista_core::utils::{GrpcServerConfig, create_grpc_server};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::create_scheduler;
use forebay_client::Client;
use forebay_scheduling::{Policy as Order, ScheduleSettings};
use forebay_sql::{Engine, EngineSettings};
use forebay_transport::Security;
use forebay_types::{Error, Result, ResultExt};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use super::Books;
use super::answers::Answers;
use super::carrier::Carrier;
use super::gate::{Gate, Server};
use super::policy::Policy;
use super::watch::{SILENT, watch};
use crate::ports::{Ways, incoming};
use crate::settings::{MESSAGE_BYTES_MAX, producer};

/// How a scheduler runs.
#[derive(Clone, Debug)]
pub struct SchedulerSettings {
    /// `host:port` for clients and executors.
    pub listen: String,
    /// Token and TLS of the cluster.
    pub security: Security,
    /// The order of jobs.
    pub order: Order,
    /// Has the input of tasks brought before they start; off: tasks fetch what they read.
    pub ahead: bool,
}

/// A running scheduler. Its jobs end with it.
pub struct Scheduler {
    address: SocketAddr,
    _tasks: [AbortOnDropHandle<()>; 2],
}

impl Scheduler {
    /// Listens for queries and for executors that ask for tasks.
    pub async fn start(client: Client, settings: SchedulerSettings) -> Result<Self> {
        let place = || format!("can't listen at {}; choose another address with --scheduler-listen", settings.listen);
        let listener = TcpListener::bind(&settings.listen).await.context(place)?;
        let address = listener.local_addr().context(place)?;

        let ways = Ways::new(&settings.security)?;
        let books = Books::new(ScheduleSettings { policy: settings.order, ..Default::default() });
        let books = Arc::new(Mutex::new(books));
        let carrier = Carrier::new(Arc::clone(&books), client.clone(), settings.ahead);
        let engine = Engine::over_client(client.clone(), EngineSettings::default());
        let policy = Policy::new(Arc::clone(&books), Arc::clone(&carrier), client.clone(), engine);
        let config = SchedulerConfig {
            scheduling_policy: TaskSchedulingPolicy::PullStaged,
            task_distribution: TaskDistributionPolicy::Custom(Arc::new(policy)),
            override_config_producer: Some(producer(&ways)),
            override_create_grpc_client_endpoint: ways.overrides(),
            external_host: address.ip().to_string(),
            bind_port: address.port(),
            grpc_server_max_decoding_message_size: MESSAGE_BYTES_MAX as u32,
            grpc_server_max_encoding_message_size: MESSAGE_BYTES_MAX as u32,
            executor_timeout_seconds: SILENT.as_secs(),
            expire_dead_executor_interval_seconds: 1,
            no_executors_grace_period_seconds: 60,
            finished_job_state_clean_up_interval_seconds: 600,
            ..SchedulerConfig::default()
        };
        let failed = |error: ballista_core::error::BallistaError| Error::internal(format!("the scheduler can't start: {error}"));
        let cluster = BallistaCluster::new_from_config(&config).await.map_err(failed)?;
        let server: Server = create_scheduler(cluster, Arc::new(config)).await.map_err(failed)?;

        let gate = SchedulerGrpcServer::new(Gate { inner: server.clone(), books: Arc::clone(&books), client })
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        let answers = Answers { server: server.clone(), books: Arc::clone(&books), carrier: Arc::clone(&carrier) };
        let services =
            create_grpc_server(&GrpcServerConfig::default()).add_service(gate).add_service(FlightServiceServer::new(answers));
        let incoming = incoming(listener, &settings.security)?;
        let serving = tokio::spawn(async move {
            if let Err(error) = services.serve_with_incoming(incoming).await {
                tracing::warn!(%error, "the scheduler no longer listens");
            }
        });
        let watching = tokio::spawn(watch(server, books, carrier));
        tracing::info!(%address, order = ?settings.order, ahead = settings.ahead, "scheduler listens");
        Ok(Self { address, _tasks: [AbortOnDropHandle::new(serving), AbortOnDropHandle::new(watching)] })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
