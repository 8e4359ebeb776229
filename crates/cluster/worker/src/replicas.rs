use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_protocol::{Order, OrderEnd};
use forebay_types::{
    Cell, Error, FormId, ObjectVersion, PAGE_BYTES, PAGES_PER_BLOCK, PageRun, Result, RouteKey, SEGMENT_BYTES, SegmentId,
    WorkerId,
};
use metrics::counter;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::gate::Line;
use crate::obtain::parts;
use crate::segment::{Segment, SegmentName};
use crate::serving::Serving;
use crate::transfer::Source;

/// Segments that are brought here at a time.
const AT_ONCE: usize = 4;
/// Pages asked of a peer at once: 4 MiB.
const COPY_PAGES: u32 = 1024;

/// What the coordinator has ordered: the replicas to hold, and how orders ended.
pub(crate) struct Replicas {
    state: Mutex<State>,
    room: Semaphore,
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct State {
    assigned: HashMap<SegmentId, Assigned>,
    running: HashSet<SegmentId>,
    /// Since the last heartbeat that was answered.
    ended: Vec<OrderEnd>,
}

struct Assigned {
    name: SegmentName,
    since: Instant,
}

/// How long a replica may be held before clients are sent to it.
const SETTLING: Duration = Duration::from_secs(300);

impl Default for Replicas {
    fn default() -> Self {
        Self { state: Mutex::default(), room: Semaphore::new(AT_ONCE), tasks: Mutex::default() }
    }
}

impl Replicas {
    /// The replicas that this worker is to hold. Those that nobody is sent to any more are forgotten: they are as all else
    /// that is cached.
    pub(crate) fn assigned(&self, is_routed_here: impl Fn(RouteKey) -> bool) -> Vec<(SegmentId, SegmentName)> {
        let mut state = self.state.lock();
        state.assigned.retain(|_, it| it.since.elapsed() < SETTLING || is_routed_here(it.name.route()));
        state.assigned.iter().map(|(segment, it)| (*segment, it.name.clone())).collect()
    }

    /// Whether a segment was ordered so lately that clients may not know of it.
    pub(crate) fn is_settling(&self, segment: SegmentId) -> bool {
        self.state.lock().assigned.get(&segment).is_some_and(|it| it.since.elapsed() < SETTLING)
    }

    /// How orders ended that the coordinator has not heard of.
    pub(crate) fn ended(&self) -> Vec<OrderEnd> {
        self.state.lock().ended.clone()
    }

    /// The coordinator has heard of the first `count` of these.
    pub(crate) fn heard(&self, count: usize) {
        self.state.lock().ended.drain(..count);
    }

    /// Gives up what is being brought here.
    pub(crate) fn stop(&self) {
        self.tasks.lock().abort_all();
    }

    fn begin(&self, segment: SegmentId) -> bool {
        let mut state = self.state.lock();
        // One that has ended is answered with the next heartbeat.
        state.ended.iter().all(|end| end.segment != segment) && state.running.insert(segment)
    }
}

impl Serving {
    /// Carries out orders, each once however often it is repeated.
    pub(crate) fn obey(self: &Arc<Self>, orders: Vec<Order>) {
        for order in orders {
            match order {
                Order::Hold { version, index, from } => {
                    if let Some(cell) = Cell::of_index(index) {
                        self.hold_cell(version, index, cell, from);
                        continue;
                    }
                    let Ok(segment) = Segment::holding(&version, u64::from(index) * SEGMENT_BYTES) else { continue };
                    if !self.replicas.begin(segment.id) {
                        continue;
                    }
                    self.counts.learn(segment.id, &version, index);
                    let assigned = Assigned { name: SegmentName { version, index }, since: Instant::now() };
                    self.replicas.state.lock().assigned.insert(segment.id, assigned);
                    let mut tasks = self.replicas.tasks.lock();
                    while tasks.try_join_next().is_some() {}
                    let serving = Arc::clone(self);
                    tasks.spawn(async move {
                        let _room = serving.replicas.room.acquire().await;
                        let id = segment.id;
                        if let Err(error) = serving.bring(segment, &from).await {
                            tracing::debug!(segment = %id, %error, "replica not loaded");
                            counter!("forebay_worker_replicas_failed").increment(1);
                        }
                        serving.order_ended(id, true);
                    });
                }
                Order::Drop { segment } => {
                    if self.replicas.begin(segment) {
                        self.drop_replica(segment);
                        self.order_ended(segment, false);
                    }
                }
            }
        }
    }

    /// Makes a replica of a cell: from the raw bytes, wherever they are, since that is less to send than the cell.
    fn hold_cell(self: &Arc<Self>, version: ObjectVersion, index: u32, cell: Cell, from: Vec<WorkerId>) {
        let id = SegmentId::of(&version, index);
        if !self.replicas.begin(id) {
            return;
        }
        self.counts.learn(id, &version, index);
        let assigned = Assigned { name: SegmentName { version: version.clone(), index }, since: Instant::now() };
        self.replicas.state.lock().assigned.insert(id, assigned);
        let mut tasks = self.replicas.tasks.lock();
        while tasks.try_join_next().is_some() {}
        let serving = Arc::clone(self);
        tasks.spawn(async move {
            if let Some((_, form)) = version.form() {
                serving.learn_form(form, &from).await;
            }
            serving.forms.order(version, cell, id).await;
            serving.order_ended(id, true);
        });
    }

    /// Asks those who hold cells of a form what it is, unless readers have said so here.
    async fn learn_form(&self, form: FormId, from: &[WorkerId]) {
        for peer in from {
            if self.forms.known.get(form).is_some() {
                return;
            }
            let view = self.view();
            let Some(peer) = view.workers.iter().find(|worker| worker.id == *peer) else { continue };
            match self.peers.form(peer, form).await {
                Ok(Some(known)) => self.forms.known.put(form, &known),
                Ok(None) => {}
                Err(error) => tracing::debug!(worker = %peer.id, %error, "peer did not say what a form is"),
            }
        }
    }

    fn drop_replica(&self, segment: SegmentId) {
        self.replicas.state.lock().assigned.remove(&segment);
        // What a reader has pinned is given back when it is done; what the administrator keeps stays.
        if !self.store.held(segment).keep {
            self.store.free(segment);
            counter!("forebay_worker_replicas_dropped").increment(1);
        }
    }

    fn order_ended(&self, segment: SegmentId, hold: bool) {
        let held_bytes = self.store.held(segment).bytes;
        let mut state = self.replicas.state.lock();
        state.running.remove(&segment);
        state.ended.push(OrderEnd { segment, hold, held_bytes });
        drop(state);
        self.ask_news.notify_one();
    }

    /// Brings a segment here: what a peer has of it, else all of it from shared storage, behind all demand.
    async fn bring(self: &Arc<Self>, segment: Segment, from: &[WorkerId]) -> Result<()> {
        for peer in from {
            match self.copy_from(*peer, &segment).await {
                Ok(0) => {}
                Ok(_) => {
                    counter!("forebay_worker_replicas_loaded", "from" => "peer").increment(1);
                    return Ok(());
                }
                Err(error) => tracing::debug!(segment = %segment.id, worker = %peer, %error, "peer gave no copy"),
            }
        }
        let whole = (segment.start, segment.bytes);
        self.prefetch(&segment.version, &[whole], Line::Prefetch, false).await?;
        counter!("forebay_worker_replicas_loaded", "from" => "storage").increment(1);
        Ok(())
    }

    /// Copies the pages that a peer holds and this worker doesn't; gives the bytes that the peer holds.
    async fn copy_from(self: &Arc<Self>, peer: WorkerId, segment: &Segment) -> Result<u64> {
        let view = self.view();
        let peer = view.workers.iter().find(|worker| worker.id == peer).ok_or_else(|| Error::retry("it is gone"))?;
        let door = self.mount(segment.version.mount).await?;
        let mut there_bytes = 0;
        for start in (0..segment.pages()).step_by(COPY_PAGES as usize) {
            let part = PageRun::new(start, (start + COPY_PAGES).min(segment.pages()));
            if self.store.state(segment.id, part).missing.is_empty() {
                there_bytes += u64::from(part.len) * PAGE_BYTES;
                continue;
            }
            let (runs, payload) = self.peers.copy(peer, segment.id, part).await?;
            let mut at = 0usize;
            for run in runs {
                let bytes = run.len as usize * PAGE_BYTES as usize;
                let pages = payload.get(at..at + bytes).map(|_| payload.slice(at..at + bytes));
                let pages = pages.filter(|_| part.start <= run.start && run.end() <= part.end());
                let pages = pages.ok_or_else(|| Error::invalid("the answer to a copy doesn't fit the question"))?;
                (at, there_bytes) = (at + bytes, there_bytes + bytes as u64);
                counter!("forebay_worker_copied_bytes").increment(bytes as u64);
                // In small parts: what readers fetch at this moment is left to them, and no more than that.
                let missing = self.store.state(segment.id, run).missing;
                for missing in missing.into_iter().flat_map(|run| parts(run, PAGES_PER_BLOCK)) {
                    let wanted = self.wanted(&door, segment.clone(), Line::Prefetch, false);
                    let ticket = self.fills.adopt(&wanted, missing, Source::Memory(cut(segment, run, missing, &pages)));
                    if let Some(ticket) = ticket {
                        ticket.wait().await?;
                    }
                }
            }
        }
        Ok(there_bytes)
    }

    /// The pages of `part` that are here, for a peer: runs and checksums, and the pages.
    pub(crate) async fn copy(&self, segment: SegmentId, part: PageRun) -> (Vec<(u32, u32)>, Vec<u32>, Vec<Bytes>) {
        for run in self.store.state(segment, part).disk {
            if let Err(error) = self.store.load(segment, run).await {
                tracing::debug!(%segment, %error, "the disk tier can't give pages that it has");
            }
        }
        let held = self.store.state(segment, part).dram.into_iter();
        let (mut runs, mut sums, mut pages) = (Vec::new(), Vec::new(), Vec::new());
        // What was evicted since is left out.
        for (run, pinned) in held.filter_map(|run| Some((run, self.store.pin(segment, run)?))) {
            runs.push((run.start, run.len));
            sums.extend(pinned.sums());
            pages.push(pinned.into_bytes());
        }
        (runs, sums, pages)
    }
}

/// The bytes of `missing`, a part of `run` whose pages are given; the segment's last page may be short.
fn cut(segment: &Segment, run: PageRun, missing: PageRun, pages: &Bytes) -> Bytes {
    let bytes = segment.bytes_of(missing);
    let from = run.bytes().start;
    pages.slice((bytes.start - from) as usize..(bytes.end - from) as usize)
}
