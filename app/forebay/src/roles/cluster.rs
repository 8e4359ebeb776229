//! Scheduler and executors in this process.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use forebay_client::{Client, ClientSettings, Wait, host_id};
use forebay_distributed::{Cluster, ClusterSettings, Executor, ExecutorSettings, Scheduler, SchedulerSettings};
use forebay_protocol::{ExecutorNumbers, SchedulerNumbers};
use forebay_sql::{Engine, EngineSettings};
use forebay_transport::{Address, Admission, Security};
use forebay_types::{Error, Result, WorkerId};
use tokio_util::task::AbortOnDropHandle;

/// What of distributed SQL runs in this process.
pub(crate) struct ClusterPart {
    /// Its security is that of the process.
    pub(crate) scheduler: Option<SchedulerSettings>,
    pub(crate) executors: Option<ExecutorPart>,
    /// How long those that it is started beside are waited for.
    pub(crate) wait: Duration,
}

/// An executor beside each worker of this process; one alone when there is none.
pub(crate) struct ExecutorPart {
    /// Not asked for when the scheduler is of the same process; the one that the coordinator knows when not set.
    pub(crate) scheduler: Option<String>,
    pub(crate) listen: String,
    pub(crate) advertise: Option<String>,
    pub(crate) slots: usize,
    pub(crate) folder: PathBuf,
    /// In-place reads of the workers' tiers.
    pub(crate) in_place: bool,
}

/// Scheduler and executors, running.
pub(crate) struct ClusterRunning {
    executors: Vec<Executor>,
    scheduler: Option<Scheduler>,
    scheduler_address: String,
    security: Security,
    slots: usize,
    wait: Wait,
    /// A way to the coordinator that is there as long as this is.
    pub(super) client: Client,
    _credentials: AbortOnDropHandle<()>,
}

/// How often what the coordinator knows of credentials is asked for.
const CREDENTIALS_EVERY: Duration = Duration::from_secs(1);

/// Lets in whom the coordinator lets in, as long as this runs.
fn follow_credentials(client: Client, admits: Arc<Admission>) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(forebay_runtime::spawn(async move {
        loop {
            match client.credentials().await {
                Ok(verifiers) => admits.set(verifiers),
                // The last that were known stand.
                Err(error) => tracing::debug!(%error, "credentials not asked for"),
            }
            forebay_runtime::time::sleep(CREDENTIALS_EVERY).await;
        }
    }))
}

impl ClusterRunning {
    /// Starts the scheduler, then the executors.
    pub(crate) async fn start(
        part: ClusterPart,
        coordinator: &str,
        security: &Security,
        workers: &[WorkerId],
        queries: &EngineSettings,
    ) -> Result<Self> {
        let in_place = part.executors.as_ref().is_none_or(|executors| executors.in_place);
        // A process that serves says it in its log.
        let wait = Wait::new(part.wait, |what| tracing::info!("{what}"));
        let what = format!("the coordinator at {coordinator}");
        let connect = || async {
            let settings = ClientSettings {
                security: security.clone(),
                in_place,
                ..ClientSettings::new(Address::Tcp(coordinator.to_string()))
            };
            wait.until(&what, || Client::connect(settings.clone())).await
        };
        // Before any port is there: who comes at once would be told that the credential is none of this cluster.
        let client = connect().await?;
        match wait.until(&what, || client.credentials()).await {
            Ok(verifiers) => security.admits.set(verifiers),
            Err(error) => tracing::debug!(%error, "credentials not known yet"),
        }
        let _credentials = follow_credentials(client.clone(), Arc::clone(&security.admits));
        let scheduler = match part.scheduler {
            Some(settings) => {
                let settings = SchedulerSettings { security: security.clone(), ..settings };
                Some(Scheduler::start(connect().await?, settings).await?)
            }
            None => None,
        };
        let own = scheduler.as_ref().map(|scheduler| scheduler.address().to_string());
        let named = part.executors.as_ref().and_then(|executors| executors.scheduler.clone());
        let given = own.or(named);
        let follows = given.is_none();
        let scheduler_address = match given {
            Some(address) => address,
            None => {
                let client = connect().await?;
                let unknown = || {
                    Error::retry(format!(
                        "the coordinator at {coordinator} knows of no scheduler: start `forebay scheduler`, or name one with --scheduler HOST:PORT"
                    ))
                };
                wait.until("a scheduler", || async { client.scheduler().await?.ok_or_else(unknown) }).await?
            }
        };
        let mut executors = Vec::new();
        let mut slots = 0;
        if let Some(part) = part.executors {
            let beside: Vec<Option<WorkerId>> = match workers.is_empty() {
                true => vec![worker_of_host(&connect().await?)],
                false => workers.iter().copied().map(Some).collect(),
            };
            for (ix, worker) in beside.into_iter().enumerate() {
                let settings = ExecutorSettings {
                    scheduler: scheduler_address.clone(),
                    follows,
                    security: security.clone(),
                    listen: if ix == 0 { part.listen.clone() } else { any_port(&part.listen) },
                    advertise: part.advertise.clone(),
                    slots: part.slots,
                    folder: part.folder.join(format!("executor-{}", ix + 1)),
                    worker,
                    engine: queries.clone(),
                };
                // A client of its own: an executor's connections and pins are those of one machine.
                executors.push(Executor::start(connect().await?, settings).await?);
                slots += part.slots;
            }
        }
        Ok(Self { executors, scheduler, scheduler_address, security: security.clone(), slots, wait, client, _credentials })
    }

    /// What of it runs in this process.
    pub(crate) fn roles(&self) -> impl Iterator<Item = &'static str> {
        let roles = [("scheduler", self.scheduler.is_some()), ("executor", !self.executors.is_empty())];
        roles.into_iter().filter_map(|(role, runs)| runs.then_some(role))
    }

    /// Where the scheduler of this process listens.
    pub(crate) fn scheduler(&self) -> Option<SocketAddr> {
        self.scheduler.as_ref().map(Scheduler::address)
    }

    /// Where the executors hand results out.
    pub(crate) fn executors(&self) -> impl Iterator<Item = SocketAddr> {
        self.executors.iter().map(Executor::address)
    }

    /// Says what the scheduler of this process has come to.
    pub(crate) fn scheduling(&self) -> Option<Box<dyn Fn() -> SchedulerNumbers + Send + Sync>> {
        self.scheduler.as_ref().map(Scheduler::numbers)
    }

    /// Says what the executors of this process have come to, all together.
    pub(crate) fn executing(&self) -> Option<Box<dyn Fn() -> ExecutorNumbers + Send + Sync>> {
        let each: Vec<_> = self.executors.iter().map(Executor::numbers).collect();
        if each.is_empty() {
            return None;
        }
        Some(Box::new(move || {
            each.iter().map(|numbers| numbers()).fold(ExecutorNumbers::default(), |all, one| ExecutorNumbers {
                slots: all.slots + one.slots,
                tasks_running: all.tasks_running + one.tasks_running,
                tasks_done: all.tasks_done + one.tasks_done,
                tasks_failed: all.tasks_failed + one.tasks_failed,
            })
        }))
    }

    /// How queries come here.
    pub(crate) fn way(&self) -> ClusterWay {
        // Executors that have just been started have not asked for tasks yet.
        let partitions = (self.slots > 0).then_some((self.slots * 2).max(4));
        ClusterWay {
            scheduler: self.scheduler_address.clone(),
            security: self.security.clone(),
            wait: self.wait.clone(),
            partitions,
        }
    }
}

/// The way of a query to the executors of this process.
#[derive(Clone)]
pub(crate) struct ClusterWay {
    scheduler: String,
    security: Security,
    wait: Wait,
    partitions: Option<usize>,
}

impl ClusterWay {
    /// An engine that plans by this client, with its rights: what it may not open is in no plan. Its queries run here.
    pub(crate) async fn engine(&self, client: Client, queries: EngineSettings) -> Result<Engine> {
        let Self { scheduler, security, wait, partitions } = self.clone();
        let settings = ClusterSettings { scheduler, finds: None, wait, security, priority: 0, partitions };
        engine(client, settings, queries).await
    }
}

/// An engine whose queries run where this scheduler says.
pub(crate) async fn engine(client: Client, settings: ClusterSettings, queries: EngineSettings) -> Result<Engine> {
    let cluster = Cluster::connect(settings).await?;
    Ok(Engine::over_cluster(client, queries, Arc::new(cluster)))
}

/// The worker of this host; the one with the lowest id when there are several.
fn worker_of_host(client: &Client) -> Option<WorkerId> {
    let host = host_id().ok()?;
    client.view().workers.iter().filter(|worker| worker.host == host).map(|worker| worker.id).min()
}

/// The same host, at a port that is free.
pub(crate) fn any_port(listen: &str) -> String {
    let host = listen.rsplit_once(':').map_or("127.0.0.1", |(host, _)| host);
    format!("{host}:0")
}
