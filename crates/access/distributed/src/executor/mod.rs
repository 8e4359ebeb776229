//! The executor process: polls the scheduler for tasks and runs them with input read through the worker beside it.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use ballista_core::extension::SessionConfigExt;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_core::serde::BallistaCodec;
use ballista_core::serde::protobuf::ExecutorRegistration;
use ballista_core::serde::protobuf::executor_grpc_server::ExecutorGrpcServer;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::scheduler::{ExecutorOperatingSystemSpecification, ExecutorSpecification};
use ballista_core::utils::{GrpcServerConfig, create_grpc_server};
use ballista_core::{BALLISTA_PROTOCOL_VERSION, RuntimeProducer};
use ballista_executor::execution_loop::poll_loop;
use ballista_executor::health::ExecutorHealth;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionConfig;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use forebay_client::Client;
use forebay_jobs::serving::follow;
use forebay_protocol::ExecutorNumbers;
use forebay_rights::needs;
use forebay_sql::{Engine, EngineSettings, Reach, mend_functions};
use forebay_transport::Security;
use forebay_types::{Error, Result, ResultExt, WorkerId};
use tokio::sync::{Notify, watch};
use tokio_util::task::AbortOnDropHandle;

use crate::actions::ActionsOnly;
use crate::checked::Checked;
use crate::codec::Codec;
use crate::ports::{Ways, incoming, listen};
use crate::settings::{MESSAGE_BYTES_MAX, producer};
use crate::shuffle::{Engine as ShuffleEngine, Files, Shared, ShuffleTimes, Times};
use crate::travel;
use control::Control;
use handing::Handing;
use reading::Reading;
use traced::{Tasks, Traced};

mod control;
mod handing;
mod reading;
mod traced;

/// An executor: it runs tasks and reads their input through the worker beside it.
#[derive(Clone)]
pub struct ExecutorSettings {
    /// `host:port` of the scheduler.
    pub scheduler: String,
    /// Goes to another scheduler when the coordinator knows of another.
    pub follows: bool,
    /// Token and TLS of the cluster.
    pub security: Security,
    /// Where results are handed out: `host:port`.
    pub listen: String,
    /// The host that others reach it at; that of `listen` when not set.
    pub advertise: Option<String>,
    /// Tasks at once.
    pub slots: usize,
    /// Results between stages lie here; what an earlier executor has left is removed.
    pub folder: PathBuf,
    /// The worker beside it; none when there is none on its host.
    pub worker: Option<WorkerId>,
    /// How its tasks use memory.
    pub engine: EngineSettings,
}

/// A running executor. Dropping it ends it as a crash would: the scheduler gives its tasks to others.
pub struct Executor {
    address: std::net::SocketAddr,
    times: Arc<Times>,
    slots: u64,
    counted: Arc<Tasks>,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

impl Executor {
    /// Listens, and asks the scheduler for tasks from now on, whether it is there yet or not.
    pub async fn start(client: Client, settings: ExecutorSettings) -> Result<Self> {
        let (listener, address, host) = listen(&settings.listen, settings.advertise.clone(), "").await?;
        let folder = settings.folder.display().to_string();
        match std::fs::remove_dir_all(&settings.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(Error::from(error).context(folder)),
            // Results are as private as what they were made of.
            _ => DirBuilder::new().recursive(true).mode(0o700).create(&settings.folder).context(|| folder.clone())?,
        }
        let ways = Ways::new(&settings.security)?;
        let metadata = ExecutorRegistration {
            id: id(settings.worker),
            host: Some(host),
            port: u32::from(address.port()),
            grpc_port: u32::from(address.port()),
            specification: Some(ExecutorSpecification::default().with_vcores(settings.slots as u32).into()),
            os_info: Some(ExecutorOperatingSystemSpecification::default().into()),
            ballista_protocol_version: BALLISTA_PROTOCOL_VERSION,
        };
        let mut functions = SessionStateBuilder::new().with_default_features().build();
        mend_functions(&mut functions, &settings.engine.call_memory())
            .expect("functions that are there already are never refused");
        let files = Files::of_executor(&ways, &metadata.id, settings.folder.clone());
        let shared = Shared::new(client.nodes(), settings.worker, settings.folder.clone(), files);
        let trimming = forebay_runtime::spawn(Arc::clone(&shared).keep_trim());
        let (times, counted, polls) = (Arc::new(Times::default()), Arc::new(Tasks::default()), Arc::new(Notify::new()));
        let nodes = Codec::beside(client.clone(), settings.worker);
        let (moves, scheduler) = watch::channel(settings.scheduler.clone());
        let following = settings.follows.then(|| forebay_runtime::spawn(follow(client.clone(), moves)));
        // Whatever a plan says that was sent here: an executor reads what is mounted.
        let engine = EngineSettings { reach: Reach::of_mounts(), ..settings.engine.clone() };
        let engine = Engine::over_client(client.clone(), engine);
        let executor = Arc::new(ballista_executor::executor::Executor::new(
            metadata,
            &folder,
            runtimes(client, engine.clone()),
            producer(&ways),
            Arc::new(BallistaFunctionRegistry::from(&functions)),
            Arc::clone(&times) as _,
            settings.slots,
            Arc::new(Traced { inner: ShuffleEngine::new(shared, engine), tasks: Arc::clone(&counted), over: Arc::clone(&polls) }),
        ));
        let flight = FlightServiceServer::new(ActionsOnly(Handing::new(folder)))
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        let control = ExecutorGrpcServer::new(Control(Arc::clone(&executor)));
        let server = create_grpc_server(&GrpcServerConfig::default())
            .add_service(Checked::new(flight, needs::executor))
            .add_service(Checked::new(control, needs::executor));
        let incoming = incoming(listener, &settings.security)?;
        let serving = forebay_runtime::spawn(async move {
            if let Err(error) = server.serve_with_incoming(incoming).await {
                tracing::warn!(%error, "the executor no longer hands results out");
            }
        });
        let scheduler = SchedulerGrpcClient::new(ways.followed(scheduler)?.connect_lazy())
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        let logical = SessionConfig::new().ballista_logical_extension_codec();
        let codec: BallistaCodec<LogicalPlanNode, PhysicalPlanNode> = BallistaCodec::new(logical, Arc::new(nodes));
        let ticking = forebay_runtime::spawn(tick(Arc::clone(&polls)));
        let polling = forebay_runtime::spawn(async move {
            if let Err(error) = poll_loop(scheduler, executor, codec, Some(polls), None, ExecutorHealth::new()).await {
                tracing::warn!(%error, "the executor no longer takes tasks");
            }
        });
        let tasks = [serving, polling, ticking, trimming].into_iter().chain(following);
        let (slots, _tasks) = (settings.slots as u64, tasks.map(AbortOnDropHandle::new).collect());
        Ok(Self { address, times, slots, counted, _tasks })
    }

    /// What its tasks took for what passes between stages.
    pub fn shuffle_times(&self) -> ShuffleTimes {
        self.times.now()
    }

    /// Says what its tasks have come to, each time that it is asked.
    pub fn numbers(&self) -> Box<dyn Fn() -> ExecutorNumbers + Send + Sync> {
        let (counted, slots) = (Arc::clone(&self.counted), self.slots);
        Box::new(move || counted.now(slots))
    }

    /// Where results are handed out.
    pub fn address(&self) -> std::net::SocketAddr {
        self.address
    }
}

/// How often an executor with a free slot asks for a task, beside when one of its tasks is over.
const ASKS: Duration = Duration::from_millis(50);

async fn tick(polls: Arc<Notify>) {
    loop {
        forebay_runtime::time::sleep(ASKS).await;
        polls.notify_one();
    }
}

/// A name that says beside which worker it is, since the scheduler's budgets carry nothing else of an executor.
fn id(worker: Option<WorkerId>) -> String {
    let own: u64 = forebay_runtime::random();
    format!("{:016x}-{own:016x}", worker.map_or(own, |worker| worker.0))
}

/// The surroundings of each task: the query's versions, read where the schedule has brought them.
fn runtimes(client: Client, engine: Engine) -> RuntimeProducer {
    let reading = Reading::new(client);
    Arc::new(move |config| {
        let failed = |error: Error| DataFusionError::External(Box::new(error));
        let ticket = travel::ticket(config).map_err(failed)?;
        let (operation, pins) = match ticket {
            Some(ticket) => {
                forebay_trace::known(ticket.operation, ticket.trace);
                (ticket.operation, ticket.pins)
            }
            None => (forebay_types::OperationId(forebay_runtime::random()), Vec::new()),
        };
        if let Some(places) = travel::places(config).map_err(failed)? {
            reading.note(operation, places);
        }
        engine.runtime_of(operation, pins).map_err(failed)
    })
}
