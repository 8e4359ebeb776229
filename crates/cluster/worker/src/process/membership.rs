//! A worker's place in the cluster.

use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_protocol::{
    ClusterView, ControlCall, ControlReply, ControlRequest, Heartbeat, MemberRequest, PLANS_MAX, WindowReport, WorkerInfo,
};
use forebay_runtime::simulated;
use forebay_transport::{Address, Connection, Security};
use forebay_types::{Error, ErrorKind, Result};

use super::need::need_changed;
use crate::cluster::{Cluster, ask};
use crate::rooms::Rooms;
use crate::settings::Tuning;
use crate::signals::{Shown, Standing};

/// Longest time between two tries to reach it.
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// How long a start waits until all others know of it.
const SETTLE_WITHIN: Duration = Duration::from_secs(1);
/// Shortest time between two heartbeats, whoever asks for news.
const BEAT_GAP: Duration = Duration::from_millis(20);

/// A worker's place in the cluster: registered once, then kept by heartbeats.
pub(crate) struct Membership {
    rooms: Arc<Rooms>,
    info: WorkerInfo,
    coordinator: Address,
    security: Security,
    line: Option<Connection>,
    /// Beats that got no answer in a row.
    failures: u32,
    /// Another process has its id: one with a copy of its data folder, which was let in while nothing was heard of this one.
    is_displaced: bool,
    /// Until when the coordinator counts this worker as live, and keeps its shares for it.
    leased_until: Instant,
    /// The counting period that was reported last; none before the first heartbeat.
    reported: Option<u64>,
    /// A report that the coordinator has not got yet.
    window: Option<WindowReport>,
    /// The state of the credentials that are let in; 0 for none.
    credentials: u64,
    shown: Shown,
}

impl Membership {
    pub(crate) fn new(rooms: Arc<Rooms>, info: WorkerInfo, coordinator: Address, security: Security) -> Self {
        let (leased_until, shown) = (forebay_runtime::now(), Shown::of(rooms.cluster.id));
        Self {
            rooms,
            info,
            coordinator,
            security,
            line: None,
            failures: 0,
            is_displaced: false,
            leased_until,
            reported: None,
            window: None,
            credentials: 0,
            shown,
        }
    }

    /// Joins the cluster; tries again while the coordinator is away, up to `within`.
    pub(crate) async fn join(&mut self, within: Duration) -> Result<()> {
        let began = forebay_runtime::now();
        loop {
            match self.register().await {
                Err(error) if matches!(error.kind(), ErrorKind::Retry | ErrorKind::Closed) && began.elapsed() < within => {
                    self.failures += 1;
                    tracing::debug!(coordinator = %self.coordinator, %error, "waiting for the coordinator");
                    forebay_runtime::time::sleep(self.backoff(Duration::from_millis(50))).await;
                }
                Err(error) => return Err(error.context(format!("worker can't join the coordinator at {}", self.coordinator))),
                Ok(()) => {
                    self.failures = 0;
                    return Ok(());
                }
            }
        }
    }

    /// Beats until it hears of what others write, so that it serves as it will from the start on; not for long, as one that
    /// is lost may keep it waiting until its lease is over.
    pub(crate) async fn settle(&mut self) {
        let began = forebay_runtime::now();
        while !self.rooms.cluster.hearing.holds() && began.elapsed() < SETTLE_WITHIN {
            forebay_runtime::time::sleep(BEAT_GAP).await;
            self.beat().await;
        }
    }

    /// Beats for ever.
    pub(crate) async fn keep(mut self, tuning: Tuning) {
        let mut told = forebay_runtime::now();
        loop {
            let wait = if self.failures == 0 { tuning.beat } else { self.backoff(tuning.beat.min(Duration::from_millis(200))) };
            let wait = Some(self.lease_left()).filter(|left| !left.is_zero()).map_or(wait, |left| wait.min(left));
            tokio::select! {
                () = forebay_runtime::time::sleep(wait) => {}
                () = self.rooms.cluster.news_wanted() => forebay_runtime::time::sleep(BEAT_GAP).await,
                () = need_changed(&self.rooms, told), if self.failures == 0 => {}
            }
            told = forebay_runtime::now();
            self.beat().await;
            // Off the thread that keeps the heartbeat.
            let (replicas, catalogue) = (Arc::clone(&self.rooms.replicas), Arc::clone(&self.rooms.catalogue));
            self.rooms.background.spawn(async move {
                replicas.collect_garbage();
                catalogue.forget_outdated();
            });
            self.rooms.origin.claims.tidy();
        }
    }

    /// One heartbeat. Without an answer everything goes on with the last view and the last shares, of which no more than an equal part is
    /// kept; as others may be given them meanwhile, they shrink when the lease is over, whether or not there will be an answer.
    pub(crate) async fn beat(&mut self) {
        simulated::lingers("beat", Duration::from_secs(1)).await;
        let (rooms, left) = (Arc::clone(&self.rooms), self.lease_left());
        let beaten = {
            let mut beating = std::pin::pin!(self.try_beat());
            match forebay_runtime::time::timeout(left, beating.as_mut()).await {
                Ok(beaten) => beaten,
                Err(_) => {
                    shrink_shares(&rooms);
                    beating.await
                }
            }
        };
        match beaten {
            Ok(()) => {
                if self.lease_left().is_zero() {
                    // The answer was so long on its way, or a stopped process went on with it.
                    shrink_shares(&rooms);
                }
                if self.failures > 0 {
                    tracing::info!(coordinator = %self.coordinator, "coordinator is back");
                }
                self.failures = 0;
                self.rooms.cluster.tell_news();
            }
            Err(error) => {
                if self.failures == 0 {
                    tracing::warn!(coordinator = %self.coordinator, %error, "coordinator is away: going on with its last view");
                }
                self.failures = self.failures.saturating_add(1);
                self.line = None;
                rooms.origin.mounts.keep_parts(rooms.cluster.view().workers.len());
                if self.lease_left().is_zero() {
                    shrink_shares(&rooms);
                }
            }
        }
    }

    /// How long its shares are kept for it.
    fn lease_left(&self) -> Duration {
        self.leased_until.saturating_duration_since(forebay_runtime::now())
    }

    async fn try_beat(&mut self) -> Result<()> {
        if self.is_displaced {
            // Its heartbeats would keep the other one's lease.
            return self.register().await;
        }
        let rooms = Arc::clone(&self.rooms);
        let report = rooms.report();
        let (in_place_bytes, nodes, shard_queue) = (rooms.in_place.bytes(), rooms.nodes.usage(), rooms.shards.queue());
        let (disks_out, shard_claims) = (rooms.origin.store.disks_out(), rooms.shards.claimed());
        self.shown.set(&report, &Standing { in_place_bytes, nodes, shard_queue, shard_claims, disks_out });
        let have = rooms.cluster.view().version;
        let (ended, fresh) = (rooms.replicas.ended(), rooms.writes.fresh.first());
        let (ended_count, fresh_count) = (ended.len(), fresh.len());
        let needs = rooms.origin.mounts.tell_needs();
        let demand = needs.iter().map(|(mount, need)| (*mount, need.demand)).collect();
        let ahead = needs.iter().flat_map(|(mount, need)| need.told_of(*mount)).take(PLANS_MAX).collect();
        let background =
            needs.iter().filter(|(_, need)| need.background > 0).map(|(mount, need)| (*mount, need.background)).collect();
        let heard = rooms.cluster.hearing.number();
        let (worker, window) = (rooms.cluster.id, self.window.clone());
        let beat = Heartbeat { worker, have, demand, report, window, ended, fresh, heard, background, ahead };
        let sent = forebay_runtime::now();
        match self.ask(MemberRequest::Heartbeat(beat)).await {
            Ok(ControlReply::Beat { view, shares, lease, window, orders, routes, credentials, hears, settled }) => {
                let is_news = view.is_some() || (hears.is_some() && hears != heard);
                if let Some(view) = view {
                    self.follow(view);
                }
                if self.is_displaced {
                    return self.register().await;
                }
                self.leased_until = sent + lease;
                // Behind the view: from now on it tells everyone in there of what it writes.
                rooms.cluster.hearing.renew(sent, lease, hears, || rooms.refresh_all());
                rooms.cluster.set_settled(settled);
                rooms.nodes.follow(&rooms.cluster.view());
                // Behind the view as well: of what is lost in there nobody is led to.
                rooms.cluster.lease.renew(sent, lease);
                if is_news || !rooms.cluster.lease.holds() {
                    // Someone may wait until the coordinator knows that this worker has the view, or has forgotten.
                    rooms.cluster.want_news();
                }
                rooms.origin.mounts.set_shares(&shares);
                rooms.replicas.heard(ended_count);
                rooms.writes.fresh.heard(fresh_count);
                rooms.replicas.obey(orders);
                self.close_window(window);
                self.follow_credentials(credentials).await?;
                self.follow_routes(routes).await
            }
            Ok(_) => Err(Error::internal("the coordinator answered a heartbeat with something else")),
            // It has started anew, or took this worker for lost.
            Err(error) if error.kind() == ErrorKind::NotFound => self.register().await,
            Err(error) => Err(error),
        }
    }

    /// Makes the report of a period that has closed, which goes with the next heartbeat: at once.
    fn close_window(&mut self, window: u64) {
        self.window = None;
        let rooms = &self.rooms;
        // Reads of before the first heartbeat are counted in its period.
        if self.reported.replace(window).is_some_and(|reported| reported != window) {
            let held_bytes = |segment| rooms.origin.store.held(segment).bytes;
            let (busy, busy_bytes) = rooms.signals.load.take_busy();
            let report = rooms.signals.popularity.report(window, rooms.replicas.assigned(), held_bytes);
            self.window = Some(WindowReport { busy, busy_bytes, ..report });
            rooms.cluster.want_news();
        }
    }

    async fn follow_routes(&mut self, version: u64) -> Result<()> {
        let table = self.rooms.cluster.routes();
        if table.version() == version {
            return Ok(());
        }
        let ControlReply::Routes(delta) = self.ask(ControlRequest::Routes { have: table.version() }).await? else {
            return Err(Error::internal("the coordinator answered a question for routes with something else"));
        };
        // One that doesn't fit is asked for anew, and in full, with the next heartbeat.
        self.rooms.cluster.set_routes(table.with(delta).unwrap_or_default());
        Ok(())
    }

    async fn register(&mut self) -> Result<()> {
        self.rooms.cluster.hearing.end();
        self.rooms.cluster.lease.end();
        self.rooms.cluster.set_joined(false);
        match self.ask(MemberRequest::Register(self.info.clone())).await? {
            ControlReply::View(view) => {
                tracing::info!(coordinator = %self.coordinator, worker = %self.info.id, version = view.version, "joined the cluster");
                let turn = view.workers.iter().find(|worker| worker.id == self.info.id).map_or(0, |me| me.turn);
                if self.is_displaced || (self.info.turn != 0 && self.info.turn != turn) {
                    // To all others what it had is lost, and may be there anew by now.
                    self.rooms.nodes.begin_anew();
                }
                // A coordinator that has begun anew knows of no more than such a part, and of others that are not back yet.
                let workers = self.rooms.cluster.view().workers.len().max(view.workers.len());
                self.rooms.origin.mounts.keep_parts(workers);
                self.follow(view);
                self.rooms.cluster.set_joined(true);
                // Nothing of temporary nodes is answered before that.
                self.rooms.cluster.want_news();
                Ok(())
            }
            _ => Err(Error::internal("the coordinator answered a registration with something else")),
        }
    }

    /// Learns whom to let in, when that is another list than the one that is known.
    async fn follow_credentials(&mut self, version: u64) -> Result<()> {
        if self.credentials == version {
            return Ok(());
        }
        match self.ask(MemberRequest::Credentials).await? {
            ControlReply::Credentials { version, verifiers } => {
                self.security.admits.set(verifiers);
                self.credentials = version;
                Ok(())
            }
            _ => Err(Error::internal("the coordinator answered a question for credentials with something else")),
        }
    }

    async fn ask(&mut self, request: impl Into<ControlCall>) -> Result<ControlReply> {
        ask(&self.coordinator, &self.security, &mut self.line, request).await
    }

    fn follow(&mut self, view: ClusterView) {
        let me = view.workers.iter().find(|worker| worker.id == self.info.id);
        self.is_displaced = me.is_some_and(|me| me.address != self.info.address);
        match me {
            Some(me) if self.is_displaced => tracing::error!(
                worker = %self.info.id, here = self.info.address, there = me.address,
                "another process has this worker's id: stop the one that has a copy of the other's data folder, and delete its tiers/worker-id"
            ),
            // Kept when it registers again, so that the root stays where it is and a draining worker goes on with it.
            Some(me) => (self.info.turn, self.info.draining) = (me.turn, me.draining),
            None => {}
        }
        self.rooms.follow(view);
    }

    fn backoff(&self, first: Duration) -> Duration {
        first.saturating_mul(1 << self.failures.min(10)).min(BACKOFF_MAX)
    }
}

/// Others may have been given this worker's shares, where there are others.
fn shrink_shares(rooms: &Rooms) {
    let workers = rooms.cluster.view().workers.len();
    if workers > 1 {
        rooms.origin.mounts.shrink_shares(workers);
    }
}

/// Time between two tries to hear of news.
const NEWS_PAUSE: Duration = Duration::from_secs(1);

/// Waits at the coordinator for reasons to send a heartbeat at once, for ever: a closed window, new orders, a new view. Without
/// it all of that comes with the next heartbeat in turn.
pub(crate) async fn follow_news(cluster: Arc<Cluster>, coordinator: Address, security: Security) {
    let mut line = None;
    loop {
        match ask(&coordinator, &security, &mut line, MemberRequest::News(cluster.id)).await {
            Ok(ControlReply::Done) => cluster.want_news(),
            Ok(ControlReply::Unchanged) => {}
            // Heartbeats say that it is away.
            Ok(_) | Err(_) => forebay_runtime::time::sleep(NEWS_PAUSE).await,
        }
    }
}
