//! Carries out what `decide` says: connections, the database, shared storage, the clock.

mod deciding;
mod news;
mod queues;
mod reach;
mod remembered;
mod running_time;
mod service;
mod shared;
mod supervise;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay_metadata::Metadata;
use forebay_protocol::{ClusterStatus, Filled, PlacementStatus};
use forebay_transport::{Address, Listener, Server, ServerLimits, unix_now};
use forebay_types::{Error, ErrorKind, Result, TokenInfo};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tracing::{debug, error, info, warn};

use crate::CoordinatorSettings;
use crate::decide::{Event, Problem, Start, State};
use remembered::Remembered;
use service::ControlService;
use shared::Shared;
use supervise::{Running, supervise};
use writer::{load, load_members, load_placement};

/// A running coordinator; dropping it ends it at once.
pub struct Coordinator {
    address: Address,
    shared: Arc<Shared>,
    stop: Mutex<Option<oneshot::Sender<()>>>,
    ended: watch::Receiver<Option<Result<()>>>,
    task: JoinHandle<()>,
}

impl Coordinator {
    /// Opens the metadata database, becomes the leader, and answers from now on.
    ///
    /// With PostgreSQL, while another coordinator leads, this waits as its standby and does not listen until then; drop
    /// the future to give up. `Invalid` for settings that can't work, a data folder in use, a schema of a newer
    /// version or an address in use; `Retry` and `Denied` when the database is away or refuses.
    pub async fn start(settings: CoordinatorSettings) -> Result<Self> {
        CoordinatorSettings::check_lease(settings.lease)?;
        settings.placement.validate()?;
        let (metadata, epoch) = become_leader(&settings.metadata_url).await?;
        let started = Self::lead(settings, metadata.clone(), epoch).await;
        if started.is_err() {
            metadata.close().await;
        }
        started
    }

    async fn lead(settings: CoordinatorSettings, metadata: Metadata, epoch: u64) -> Result<Self> {
        forebay_metrics::begin("coordinator");
        let start = Start {
            epoch,
            lease: settings.lease,
            metadata: metadata.kind(),
            catalogue: load(&metadata).await?,
            presumed: load_members(&metadata).await?,
            placement: settings.placement.clone(),
            seed: forebay_runtime::random(),
            checkpoint: load_placement(&metadata).await?,
        };
        let (mounts, presumed) = (start.catalogue.mounts.len(), start.presumed.len());
        let remembered = Remembered::new(start.presumed.clone());
        let listener = Listener::bind(&settings.listen).await?;
        let (queue, jobs) = queues::for_writer();
        let (state, restored) = State::new(start);
        if let Err(error) = restored {
            warn!(%error, "placement starts without what the coordinator before knew");
        }
        let (plans, problems) = queues::for_planner();
        let shared = Arc::new(Shared::new(state, queue, plans, Arc::clone(&settings.security.admits), remembered));
        let database = (metadata.kind() == "sqlite").then(|| Arc::<Path>::from(Path::new(&metadata.shown())));
        let service = Arc::new(ControlService { shared: Arc::clone(&shared), database });
        let server = Server::start(listener, settings.security, service, ServerLimits::default())?;
        let address = server.local_address();
        info!(%address, epoch, mounts, presumed, database = metadata.shown(), "coordinator started");

        let mut writer = JoinSet::new();
        writer.spawn(writer::write(metadata.clone(), Arc::clone(&shared), jobs));
        writer.spawn(plan(Arc::clone(&shared), problems));
        writer.spawn(reach::look(metadata.clone(), Arc::clone(&shared)));
        let (stop, stopped) = oneshot::channel();
        let (ended_now, ended) = watch::channel(None);
        let running = Running { server, metadata, shared: Arc::clone(&shared), writer };
        let task = forebay_runtime::spawn(supervise(running, stopped, ended_now));
        Ok(Self { address, shared, stop: Mutex::new(Some(stop)), ended, task })
    }

    /// Where it listens, with the port that it got.
    pub fn address(&self) -> Address {
        self.address.clone()
    }

    /// What `forebay status` shows, without asking over a connection.
    pub fn status(&self) -> ClusterStatus {
        self.shared.status()
    }

    /// What `forebay status --segments` shows: so many segments at most.
    pub fn placement(&self, limit: usize) -> PlacementStatus {
        self.shared.placement(limit)
    }

    /// What workers hold, by mounts and by tables: so many of each at most.
    pub fn filled(&self, limit: usize) -> Filled {
        self.shared.filled(limit)
    }

    /// What `forebay token ls` shows.
    pub fn tokens(&self) -> Vec<TokenInfo> {
        self.shared.tokens()
    }

    /// Whether it can do what it is asked: `Closed` when it has stopped, `Retry` while the metadata database does not answer. Waits for
    /// nothing.
    pub fn check_ready(&self) -> Result<()> {
        if self.ended.borrow().is_some() {
            return Err(Error::closed("it has stopped"));
        }
        if self.shared.metadata_answers() { Ok(()) } else { Err(Error::retry("the metadata database does not answer")) }
    }

    /// Returns when it has stopped: fine after [`Self::shutdown`]; `Closed` when leadership was lost, so that the process
    /// should end and be started again.
    pub async fn stopped(&self) -> Result<()> {
        let mut ended = self.ended.clone();
        let ended = ended.wait_for(Option::is_some).await.map_err(|_| Error::internal("the coordinator's task ended"))?;
        ended.clone().unwrap_or(Ok(()))
    }

    /// Answers what was asked already, for at most 5 s, gives leadership up, and ends.
    pub async fn shutdown(&self) {
        drop(self.stop.lock().take());
        let _ = self.stopped().await;
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Makes one plan after the other beside everything else: a large one takes seconds.
async fn plan(shared: Arc<Shared>, mut problems: mpsc::Receiver<Box<Problem>>) -> Error {
    while let Some(problem) = problems.recv().await {
        let today = unix_now();
        let made = forebay_runtime::spawn_blocking(move || {
            let began = forebay_runtime::now();
            (problem.solve(today), began.elapsed())
        });
        match made.await {
            Ok((outcome, took)) => {
                debug!(?took, "plan made");
                shared.decide(Event::Planned(Box::new(outcome), took));
            }
            // The plan of before stands.
            Err(error) => error!(%error, "no plan was made"),
        }
    }
    Error::closed("the coordinator was shut down")
}

/// How often a standby tries to become the leader.
const TRY_EVERY: Duration = Duration::from_millis(500);

/// Opens the database, becomes the leader, and returns the epoch.
///
/// With PostgreSQL another coordinator may lead: this one stands by until it is gone, however long that takes, and
/// does not listen meanwhile. A database that is away at the start is an error; one that goes away while standing by
/// is waited for.
async fn become_leader(url: &str) -> Result<(Metadata, u64)> {
    let metadata = Metadata::open(url).await?;
    let mut waiting: Option<Error> = None;
    loop {
        match metadata.acquire_epoch().await {
            Ok(epoch) => return Ok((metadata, epoch)),
            Err(error) if error.kind() == ErrorKind::Retry => {
                if waiting.is_none() {
                    info!(database = metadata.shown(), reason = %error, "standing by");
                } else if waiting.as_ref().is_some_and(|before| before.message() != error.message()) {
                    warn!(database = metadata.shown(), reason = %error, "still standing by");
                }
                waiting = Some(error);
                forebay_runtime::time::sleep(TRY_EVERY).await;
            }
            Err(error) => {
                metadata.close().await;
                return Err(error);
            }
        }
    }
}
