use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use forebay_protocol::{ClusterView, ControlReply, ControlRequest, WorkerInfo};
use forebay_types::{Error, Mount, MountId, MountName, Result, WorkerId};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tracing::{debug, info};

use crate::connections::Connections;
use crate::control::{Control, unexpected};

/// The view with what every read looks up in it.
pub(crate) struct Known {
    pub(crate) view: Arc<ClusterView>,
    pub(crate) workers: Vec<WorkerId>,
    infos: HashMap<WorkerId, Arc<WorkerInfo>>,
}

impl Known {
    fn new(view: ClusterView) -> Self {
        let workers = view.workers.iter().map(|worker| worker.id).collect();
        let infos = view.workers.iter().map(|worker| (worker.id, Arc::new(worker.clone()))).collect();
        Self { view: Arc::new(view), workers, infos }
    }

    pub(crate) fn worker(&self, id: WorkerId) -> Option<&Arc<WorkerInfo>> {
        self.infos.get(&id)
    }

    pub(crate) fn mount(&self, id: MountId) -> Option<&Mount> {
        self.view.mounts.iter().find(|mount| mount.id == id)
    }

    pub(crate) fn mount_named(&self, name: &MountName) -> Option<&Mount> {
        self.view.mounts.iter().find(|mount| &mount.name == name)
    }
}

/// Keeps the client's view of the cluster. A coordinator that is away changes nothing: the last view stands.
pub(crate) struct ViewKeeper {
    control: Arc<Control>,
    known: ArcSwap<Known>,
    surprise: Notify,
    polled: tokio::sync::Mutex<Option<Instant>>,
}

/// How long one poll may take, and how long the pauses after failed ones are.
const POLL_DEADLINE: Duration = Duration::from_secs(5);
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

impl ViewKeeper {
    pub(crate) fn new(control: Arc<Control>) -> Self {
        Self {
            control,
            known: ArcSwap::from_pointee(Known::new(ClusterView::default())),
            surprise: Notify::new(),
            polled: tokio::sync::Mutex::new(None),
        }
    }

    pub(crate) fn known(&self) -> arc_swap::Guard<Arc<Known>> {
        self.known.load()
    }

    pub(crate) fn known_arc(&self) -> Arc<Known> {
        self.known.load_full()
    }

    /// Something was not where the view says: the next poll comes soon.
    pub(crate) fn surprised(&self) {
        self.surprise.notify_one();
    }

    /// Asks for the view now, unless someone else just did since this call began.
    pub(crate) async fn poll(&self) -> Result<()> {
        let began = Instant::now();
        let mut polled = self.polled.lock().await;
        if polled.is_some_and(|at| at >= began) {
            return Ok(());
        }
        // Versions count from the coordinator's start, so a new connection starts from nothing.
        let have = if self.control.connected() { self.known.load().view.version } else { 0 };
        match self.control.ask(&ControlRequest::View { have }, POLL_DEADLINE).await? {
            ControlReply::View(view) => self.take(view),
            ControlReply::Unchanged => {}
            _ => return Err(unexpected("the coordinator", "view")),
        }
        *polled = Some(Instant::now());
        Ok(())
    }

    fn take(&self, view: ClusterView) {
        let epoch = self.known.load().view.epoch;
        if view.epoch < epoch {
            // A coordinator that lost its leadership and doesn't know it yet.
            debug!(epoch, of_view = view.epoch, "view of an older epoch ignored");
            return;
        }
        debug!(version = view.version, epoch = view.epoch, workers = view.workers.len(), "view taken");
        self.known.store(Arc::new(Known::new(view)));
    }

    /// The mount of that name; asks the coordinator before it says that there is none.
    pub(crate) async fn mount(&self, name: &MountName) -> Result<Mount> {
        if let Some(mount) = self.known().mount_named(name) {
            return Ok(mount.clone());
        }
        // A coordinator that is away must not make an unknown name slow.
        let asked = timeout(POLL_DEADLINE, self.poll()).await;
        if let Some(mount) = self.known().mount_named(name) {
            return Ok(mount.clone());
        }
        match asked {
            Ok(Ok(())) => Err(Error::not_found(format!(
                "/{name}: there is no mount of that name; add it with forebay mount add {name} URL"
            ))),
            Ok(Err(error)) => Err(Error::retry(format!("/{name}: not a mount that is known here, and {}", error.message()))),
            Err(_) => Err(Error::retry(format!("/{name}: not a mount that is known here, and the coordinator doesn't answer"))),
        }
    }

    /// Polls until its owner drops it.
    pub(crate) async fn run(self: Arc<Self>, every: Duration, connections: Arc<Connections>) {
        let mut pause = PAUSE_MIN;
        let mut away = false;
        loop {
            if away {
                // Surprises don't shorten this pause: every client would hammer a coordinator that is starting.
                sleep(pause + Duration::from_millis(rand::random_range(0..50))).await;
                pause = (pause * 2).min(PAUSE_MAX);
            } else {
                let _ = timeout(every, self.surprise.notified()).await;
            }
            match self.poll().await {
                Ok(()) => {
                    if std::mem::take(&mut away) {
                        info!("coordinator is back");
                    }
                    pause = PAUSE_MIN;
                    let known = self.known_arc();
                    connections.retain(|worker| known.worker(worker).is_some());
                    // Many surprises at once make one poll.
                    sleep(PAUSE_MIN).await;
                }
                Err(error) => {
                    if !std::mem::replace(&mut away, true) {
                        info!(%error, "coordinator is away, reads go on with the last view");
                    }
                }
            }
        }
    }
}
