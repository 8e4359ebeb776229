//! Starts the scheduler process: puts gate, policy, carrier and answers together behind one checked port.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpcServer;
use ballista_core::utils::{GrpcServerConfig, create_grpc_server};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::create_scheduler;
use datafusion::error::DataFusionError;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;
use forebay_client::Client;
use forebay_jobs::serving::announce;
use forebay_jobs::{Books, Carrier, follow};
use forebay_protocol::SchedulerNumbers;
use forebay_rights::needs;
use forebay_scheduling::{CopyRules, Policy as Order, ScheduleSettings};
use forebay_sql::{CallMemory, Engine, EngineSettings, Reach, mend_functions};
use forebay_transport::Security;
use forebay_types::{Error, OperationId, Result};
use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;

use super::Server;
use super::answers::Answers;
use super::gate::Gate;
use super::policy::Policy;
use super::shuffles::Shuffles;
use super::watch::{MISSED, watch};
use crate::actions::ActionsOnly;
use crate::checked::Checked;
use crate::codec::Codec;
use crate::ports::{Ways, incoming, listen};
use crate::settings::{MESSAGE_BYTES_MAX, producer};
use crate::shuffle::Shuffle;
use crate::travel;

/// How a scheduler runs.
#[derive(Clone, Debug)]
pub struct SchedulerSettings {
    /// `host:port` for clients and executors.
    pub listen: String,
    /// The host that others reach it at; that of `listen` when not set.
    pub advertise: Option<String>,
    /// Token and TLS of the cluster.
    pub security: Security,
    /// The order of jobs.
    pub order: Order,
    /// Has the input of tasks brought before they start; off: tasks fetch what they read.
    pub ahead: bool,
    /// Where what passes between stages lies.
    pub shuffle: Shuffle,
    /// What a task reads at least of what other stages have left: smaller partitions of it go together. With 0 each is a task.
    pub task_bytes: u64,
    /// When a task that is late is run once more elsewhere; none for never.
    pub copies: Option<CopyRules>,
    /// A job that takes so long, or longer, is told to the log ([`forebay_sql::SLOW_QUERY`]); none for no job.
    pub slow_query: Option<Duration>,
}

/// A running scheduler. Its jobs end with it.
pub struct Scheduler {
    address: SocketAddr,
    books: Arc<Mutex<Books>>,
    _tasks: [AbortOnDropHandle<()>; 5],
}

impl Scheduler {
    /// Listens for queries and for executors that ask for tasks.
    pub async fn start(client: Client, settings: SchedulerSettings) -> Result<Self> {
        let remedy = "; choose another address with --scheduler-listen";
        let (listener, address, host) = listen(&settings.listen, settings.advertise, remedy).await?;

        let ways = Ways::new(&settings.security)?;
        let mut books = Books::new(ScheduleSettings { policy: settings.order, ..Default::default() });
        books.slow_query = settings.slow_query;
        books.copies.rules = settings.copies;
        let books = Arc::new(Mutex::new(books));
        let carrier = Carrier::new(Arc::clone(&books), client.clone(), settings.ahead);
        let engine = EngineSettings { reach: Reach::of_mounts(), ..EngineSettings::default() };
        let engine = Engine::over_client(client.clone(), engine);
        let sessions = engine.clone();
        let shuffles = Shuffles::new(client.nodes(), settings.shuffle, Arc::clone(&books));
        let keeping = forebay_runtime::spawn(Arc::clone(&shuffles).keep());
        let policy = Arc::new(Policy::new(
            Arc::clone(&books),
            Arc::clone(&carrier),
            client.clone(),
            engine,
            shuffles,
            settings.task_bytes,
        ));
        let config = SchedulerConfig {
            scheduling_policy: TaskSchedulingPolicy::PullStaged,
            task_distribution: TaskDistributionPolicy::Custom(Arc::clone(&policy) as _),
            override_config_producer: Some(producer(&ways)),
            override_physical_codec: Some(Arc::new(Codec::of(client.clone()))),
            override_session_builder: Some(Arc::new(move |config| session(&sessions, config))),
            override_create_grpc_client_endpoint: Some(ways.overrides()),
            external_host: host.clone(),
            bind_port: address.port(),
            grpc_server_max_decoding_message_size: MESSAGE_BYTES_MAX as u32,
            grpc_server_max_encoding_message_size: MESSAGE_BYTES_MAX as u32,
            // `Attempts` says when it is enough.
            stage_max_failures: usize::MAX,
            executor_timeout_seconds: MISSED.as_secs(),
            expire_dead_executor_interval_seconds: 1,
            no_executors_grace_period_seconds: 60,
            finished_job_state_clean_up_interval_seconds: 600,
            ..SchedulerConfig::default()
        };
        let failed = |error: ballista_core::error::BallistaError| Error::internal(format!("the scheduler can't start: {error}"));
        let cluster = BallistaCluster::new_from_config(&config).await.map_err(failed)?;
        let server: Server = create_scheduler(cluster, Arc::new(config)).await.map_err(failed)?;

        let announcing = forebay_runtime::spawn(announce(client.clone(), format!("{host}:{}", address.port())));
        let following = forebay_runtime::spawn(follow(client.clone(), Arc::clone(&books)));
        let gate = SchedulerGrpcServer::new(Gate::new(server.clone(), Arc::clone(&books), client))
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        let answers = Answers { server: server.clone(), books: Arc::clone(&books), carrier: Arc::clone(&carrier) };
        let services = create_grpc_server(&GrpcServerConfig::default())
            .add_service(Checked::new(gate, needs::scheduler))
            .add_service(Checked::new(FlightServiceServer::new(ActionsOnly(answers)), needs::scheduler));
        let incoming = incoming(listener, &settings.security)?;
        let serving = forebay_runtime::spawn(async move {
            if let Err(error) = services.serve_with_incoming(incoming).await {
                tracing::warn!(%error, "the scheduler no longer listens");
            }
        });
        let watching = forebay_runtime::spawn(watch(server, Arc::clone(&books), carrier, policy));
        tracing::info!(%address, order = ?settings.order, ahead = settings.ahead, shuffle = ?settings.shuffle, "scheduler listens");
        Ok(Self { address, books, _tasks: [serving, watching, announcing, keeping, following].map(AbortOnDropHandle::new) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Says what it has to do and has done, each time that it is asked.
    pub fn numbers(&self) -> Box<dyn Fn() -> SchedulerNumbers + Send + Sync> {
        let books = Arc::clone(&self.books);
        Box::new(move || books.lock().counts())
    }
}

/// What a plan is read in: its scans ask for the store of their files, though nothing is read here.
fn session(engine: &Engine, config: SessionConfig) -> datafusion::error::Result<SessionState> {
    let failed = |error: Error| DataFusionError::External(Box::new(error));
    let (operation, pins) = match travel::ticket(&config).map_err(failed)? {
        Some(ticket) => (ticket.operation, ticket.pins),
        None => (OperationId(0), Vec::new()),
    };
    let builder = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .with_runtime_env(engine.runtime_of(operation, pins).map_err(failed)?);
    let mut state = builder.build();
    // Plans name them. None is called here.
    mend_functions(&mut state, &CallMemory::unbounded())?;
    Ok(state)
}
