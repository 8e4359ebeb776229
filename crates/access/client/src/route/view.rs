//! Keeping the view of the cluster.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use forebay_protocol::{ClusterView, ControlReply, ControlRequest, RoutesDelta, WorkerInfo};
use forebay_runtime::time::{sleep, timeout};
use forebay_types::{Error, Mount, MountName, Result};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::{debug, info};

use super::known::Known;
use crate::connect::{Connections, Control, to_its_end, unexpected};

/// Keeps the client's view of the cluster. A coordinator that is away changes nothing: the last view stands.
pub(crate) struct ViewKeeper {
    control: Arc<Control>,
    known: ArcSwap<Known>,
    surprise: Notify,
    polled: tokio::sync::Mutex<Option<Instant>>,
    presumed: Mutex<Option<Presumed>>,
    /// When the coordinator answered last.
    heard: Mutex<Option<Instant>>,
}

/// Workers that were there before a new coordinator took over. They register with it within a heartbeat or two; to go
/// to shared storage in the meantime, because its first view is empty, would be a storm for nothing.
struct Presumed {
    until: Instant,
    workers: Vec<Arc<WorkerInfo>>,
}

/// How long such workers are presumed to live, and how often the view is asked for in that time.
const PRESUMED: Duration = Duration::from_secs(10);
const PRESUMED_POLL: Duration = Duration::from_secs(1);

/// News of a newer routing table is followed at most ten times in so long.
const SOON_MAX: Duration = Duration::from_secs(20);
/// How long one poll may take, and how long the pauses after failed ones are.
const POLL_DEADLINE: Duration = Duration::from_secs(5);
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

impl ViewKeeper {
    pub(crate) fn new(control: Arc<Control>) -> Self {
        Self {
            control,
            known: ArcSwap::from_pointee(Known::new(Arc::default(), &[], Arc::default())),
            surprise: Notify::new(),
            polled: tokio::sync::Mutex::new(None),
            presumed: Mutex::new(None),
            heard: Mutex::new(None),
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
    pub(crate) async fn poll(self: &Arc<Self>) -> Result<()> {
        to_its_end(Arc::clone(self).poll_since(forebay_runtime::now())).await
    }

    async fn poll_since(self: Arc<Self>, began: Instant) -> Result<()> {
        let mut polled = self.polled.lock().await;
        if polled.is_some_and(|at| at >= began) {
            return Ok(());
        }
        // Versions count from the coordinator's start, so a new connection starts from nothing.
        let known = self.known.load_full();
        let (have, have_routes) = if self.control.connected() { (known.view.version, known.routes.version()) } else { (0, 0) };
        match self.control.ask(&ControlRequest::View { have }.into(), POLL_DEADLINE).await? {
            ControlReply::View(view) => self.take(view)?,
            ControlReply::Unchanged => self.forget_presumed(),
            _ => return Err(unexpected("the coordinator", "view")),
        }
        match self.control.ask(&ControlRequest::Routes { have: have_routes }.into(), POLL_DEADLINE).await? {
            ControlReply::Routes(delta) => self.take_routes(delta),
            _ => return Err(unexpected("the coordinator", "routes")),
        }
        let now = forebay_runtime::now();
        (*polled, *self.heard.lock()) = (Some(now), Some(now));
        Ok(())
    }

    /// `Retry` when the coordinator has answered none of the last polls.
    pub(crate) fn check_heard(&self) -> Result<()> {
        let silence = self.heard.lock().map(|at| at.elapsed());
        match is_away(silence, self.known.load().view.poll) {
            false => Ok(()),
            true => Err(Error::retry("the coordinator has not answered for a while")),
        }
    }

    /// `Retry` where it is of an earlier epoch than the one that is known.
    fn take(&self, view: ClusterView) -> Result<()> {
        let before = self.known.load_full();
        let epoch = before.view.epoch;
        if view.epoch < epoch {
            // A coordinator that lost its leadership and doesn't know it yet. It is not heard, or nobody would see where that stays so.
            return Err(Error::retry(format!(
                "the coordinator has epoch {}, and epoch {epoch} was seen: it leads no more, or its database is an older copy and its clock \
                 is behind; where that stays so, start this process again",
                view.epoch
            )));
        }
        debug!(version = view.version, epoch = view.epoch, workers = view.workers.len(), "view taken");
        let mut presumed = self.presumed.lock();
        if view.epoch > epoch && before.view.version > 0 {
            let workers = before.infos.values().cloned().collect();
            *presumed = Some(Presumed { until: forebay_runtime::now() + PRESUMED, workers });
        }
        self.know(Arc::new(view), &mut presumed);
        debug_assert!(self.known.load().view.epoch >= epoch, "a view of an older epoch is in force");
        Ok(())
    }

    fn take_routes(&self, delta: RoutesDelta) {
        let known = self.known.load_full();
        if delta.version >> 32 < known.view.epoch || delta.version == known.routes.version() {
            // Of a coordinator that lost its leadership, or nothing new.
            return;
        }
        // A delta that doesn't fit is asked for anew, and in full, with the next poll.
        let routes = Arc::new(known.routes.with(delta).unwrap_or_default());
        debug!(version = routes.version(), routes = routes.len(), "routing table taken");
        let (view, mounts) = (Arc::clone(&known.view), known.mounts.clone());
        let (workers, infos) = (known.workers.clone(), known.infos.clone());
        self.known.store(Arc::new(Known { view, workers, routes, infos, mounts }));
    }

    /// A worker knows this version of the routing table: a newer one than this client's is asked for before its time.
    pub(crate) fn heard_of(&self, routes: u64) {
        let known = self.known.load();
        if routes <= known.routes.version() {
            return;
        }
        let soon = known.view.poll.unwrap_or(SOON_MAX).min(SOON_MAX) / 10;
        // Locked while it is being asked for.
        if self.polled.try_lock().is_ok_and(|polled| polled.is_none_or(|at| at.elapsed() >= soon)) {
            self.surprised();
        }
    }

    fn forget_presumed(&self) {
        let mut presumed = self.presumed.lock();
        if presumed.as_ref().is_some_and(|presumed| presumed.until <= forebay_runtime::now()) {
            self.know(Arc::clone(&self.known.load().view), &mut presumed);
        }
    }

    fn know(&self, view: Arc<ClusterView>, presumed: &mut Option<Presumed>) {
        if let Some(some) = presumed {
            some.workers.retain(|worker| view.workers.iter().all(|known| known.id != worker.id));
            if some.workers.is_empty() || some.until <= forebay_runtime::now() {
                *presumed = None;
            }
        }
        let workers = presumed.as_ref().map_or(&[][..], |presumed| &presumed.workers);
        let routes = Arc::clone(&self.known.load().routes);
        self.known.store(Arc::new(Known::new(view, workers, routes)));
    }

    /// The mount of that name; asks the coordinator before it says that there is none.
    pub(crate) async fn mount(self: &Arc<Self>, name: &MountName) -> Result<Arc<Mount>> {
        if let Some(mount) = self.known().mount_named(name.as_str()) {
            return Ok(mount.clone());
        }
        // A coordinator that is away must not make an unknown name slow.
        let asked = timeout(POLL_DEADLINE, self.poll()).await;
        if let Some(mount) = self.known().mount_named(name.as_str()) {
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
                sleep(pause + Duration::from_millis(forebay_runtime::random_range(0..50))).await;
                pause = (pause * 2).min(PAUSE_MAX);
            } else {
                let every = self.known.load().view.poll.map_or(every, |poll| poll.min(every));
                // Without workers every read goes to shared storage: one that comes is to be known soon.
                let soon = self.presumed.lock().is_some() || self.known.load().workers.is_empty();
                let every = if soon { every.min(PRESUMED_POLL) } else { every };
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

/// Whether a coordinator that said nothing for so long, or nothing yet, counts as away: three polls, so that one that is started
/// anew does not.
fn is_away(silence: Option<Duration>, poll: Option<Duration>) -> bool {
    let patience = 3 * poll.unwrap_or(SOON_MAX).max(POLL_DEADLINE);
    silence.is_none_or(|silence| silence > patience)
}

#[cfg(test)]
mod tests {
    use forebay_transport::Address;
    use forebay_types::ErrorKind;

    use super::*;
    use crate::ClientSettings;

    #[tokio::test]
    async fn a_view_of_an_earlier_epoch_is_no_answer() {
        let settings = ClientSettings::new(Address::Tcp("127.0.0.1:1".into()));
        let keeper = ViewKeeper::new(Arc::new(Control::new(&settings)));
        let of = |epoch: u64| ClusterView { version: (epoch << 32) + 1, epoch, ..ClusterView::default() };
        keeper.take(of(7)).unwrap();
        let error = keeper.take(of(4)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Retry);
        assert!(error.message().contains("epoch 4") && error.message().contains("epoch 7"), "{error}");
        assert_eq!(keeper.known().view.epoch, 7);
        keeper.take(of(8)).unwrap();
        assert_eq!(keeper.known().view.epoch, 8);
    }

    #[test]
    fn a_coordinator_is_away_when_three_polls_got_no_answer() {
        let secs = |secs| Some(Duration::from_secs(secs));
        assert!(is_away(None, secs(20)), "it has not answered yet");
        assert!(!is_away(secs(0), None) && !is_away(secs(60), secs(20)) && is_away(secs(61), secs(20)));
        assert!(!is_away(secs(15), secs(1)) && is_away(secs(16), secs(1)), "an answer may take its time");
    }
}
