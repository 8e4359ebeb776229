//! How many requests of a mount run at a time, and which.

mod lane;
mod standings;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use forebay_shared_storage::Class;
use forebay_types::{OperationId, PlanTurn, Standing};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use lane::{Admitted, Lane, Waiter};
pub(crate) use standings::Standings;

/// Requests for data that somebody waits for, at a time and mount: 16 of 4 MiB fill 1 Gbit/s at 30 ms many times over.
const DEMAND_MAX: usize = 16;
/// Of a mount with a bound, bytes of long requests that are still to come from which on no further one is let in, at least.
/// They share the bound: the more there are, the later ends what was asked for first.
const DEMAND_BYTES_MIN: u64 = 1 << 20;
/// Demand from this length on is long. What is shorter goes beside it.
const LONG_BYTES: u64 = 1 << 20;
/// After so long without a byte a request no longer keeps others waiting: its object may be throttled, or its server away.
const STALLED: Duration = Duration::from_secs(1);
/// Requests for data that will be asked for, at a time and mount.
const PREFETCH_MAX: usize = 8;
/// Bytes of prefetch still to come from which on nothing more is let in: all of it shares the link, so the more there is, the
/// later comes what is read first. Fills 3 Gbit/s at 30 ms.
const PREFETCH_BYTES: u64 = 12 << 20;
/// The same for a mount with a bound: what it gives in a tenth of a second, and this at least.
const PREFETCH_BYTES_MIN: u64 = 1 << 20;
/// Background requests at a time beside demand, which goes before them at the bound, and before most of them where there is none.
const BESIDE_DEMAND_MAX: usize = 2;
/// The same beside prefetch, with which they share the bound. Where prefetch waits, it uses all that there is, and there are none.
const BESIDE_PREFETCH_MAX: usize = 1;

/// Requests that may wait, however short they are.
const QUEUE_REQUESTS: usize = 16_384;
/// When something may be asked for again for which there was no room in the queue.
const AGAIN_MIN: Duration = Duration::from_millis(50);
const AGAIN_MAX: Duration = Duration::from_secs(5);

/// Where a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Priority {
    /// Somebody waits for it who goes before the others.
    Urgent,
    /// Somebody waits for it.
    Demand,
    /// It will be asked for: after all demand.
    Prefetch,
    /// Nobody in particular will ask for it: only what all others leave over.
    Background,
}

impl Priority {
    pub(crate) fn class(self) -> Class {
        match self {
            Self::Urgent | Self::Demand => Class::Demand,
            Self::Prefetch => Class::Prefetch,
            Self::Background => Class::Background,
        }
    }

    /// Its class, as metrics have it.
    pub(crate) fn class_name(self) -> &'static str {
        match self.class() {
            Class::Demand => "demand",
            Class::Prefetch => "ahead",
            Class::Background => "background",
        }
    }

    /// Whether somebody waits for it.
    pub(crate) fn is_demand(self) -> bool {
        matches!(self, Self::Urgent | Self::Demand)
    }

    /// The priority of one that somebody waits for.
    pub(crate) fn of_demand(self) -> Self {
        if self == Self::Urgent { Self::Urgent } else { Self::Demand }
    }

    /// What counts of so many bytes where those under way are bounded.
    fn counted(self, bytes: u64) -> u64 {
        if self.is_demand() && bytes < LONG_BYTES { 0 } else { bytes }
    }
}

/// Lets a bounded number of GETs of one mount run at a time: what is urgent and demand as they come, prefetch and background in the order of
/// plans.
#[derive(Debug, Default)]
pub(crate) struct Admission(Mutex<Lanes>);

/// What is not let in yet, and whose prefetch runs.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Waiting {
    /// Bytes that somebody waits for.
    pub(crate) demand: u64,
    /// Bytes that plans will read, by their turns.
    pub(crate) ahead: BTreeMap<PlanTurn, u64>,
    /// Bytes of background work.
    pub(crate) background: u64,
    /// The plan that what comes ahead of its reader is counted for; none where somebody waits for some of that by now.
    pub(crate) coming: Option<PlanTurn>,
}

#[derive(Debug)]
struct Lanes {
    urgent: Lane,
    demand: Lane,
    prefetch: Lane,
    background: Lane,
    /// Bytes that may wait.
    queue_bytes: u64,
    /// What the mount gives; none without a bound.
    bytes_per_sec: Option<u64>,
    /// What runs of prefetch.
    coming: Vec<Coming>,
    /// The plan of what was let in of prefetch last.
    last: PlanTurn,
    /// Told of each that lines up.
    begins: Option<Arc<Notify>>,
}

/// A request of prefetch that runs.
#[derive(Debug)]
struct Coming {
    id: u64,
    turn: PlanTurn,
    /// Somebody waits for it by now.
    awaited: bool,
}

impl Default for Lanes {
    fn default() -> Self {
        Self {
            urgent: Lane::new(Priority::Urgent, u64::MAX),
            demand: Lane::new(Priority::Demand, u64::MAX),
            prefetch: Lane::new(Priority::Prefetch, PREFETCH_BYTES),
            background: Lane::new(Priority::Background, PREFETCH_BYTES),
            queue_bytes: u64::MAX,
            bytes_per_sec: None,
            coming: Vec::new(),
            last: UNPLANNED,
            begins: None,
        }
    }
}

/// The turn of what no plan has asked for.
const UNPLANNED: PlanTurn = PlanTurn { standing: Standing { priority: 0, began_ms: 0 }, operation: OperationId(0) };

/// One GET that may run; ends with the value.
#[derive(Debug)]
pub(crate) struct Permit {
    admission: Arc<Admission>,
    id: u64,
    priority: Priority,
    /// What counts of the bytes that are still to come.
    left: u64,
}

impl Permit {
    /// Under which class it was let in.
    pub(crate) fn class(&self) -> Class {
        self.priority.class()
    }

    /// Waits for an answer or for more of it. Where nothing comes for long, others no longer wait for what is to come.
    pub(crate) async fn during<T>(&mut self, wait: impl Future<Output = T>) -> T {
        let mut wait = std::pin::pin!(wait);
        match forebay_runtime::time::timeout(STALLED, &mut wait).await {
            Ok(value) => value,
            Err(_) => {
                self.arrived(self.left);
                wait.await
            }
        }
    }

    /// So many bytes have come: the next request may begin before the last one ends.
    pub(crate) fn arrived(&mut self, bytes: u64) {
        let come = bytes.min(self.left);
        if come > 0 {
            self.left -= come;
            self.admission.come(self.priority, come);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.leave(self.id, self.priority, self.left);
    }
}

impl Admission {
    /// One where no more than so many bytes may wait.
    pub(crate) fn new(queue_bytes: u64) -> Self {
        Self(Mutex::new(Lanes { queue_bytes, ..Lanes::default() }))
    }

    /// The same, which tells `begins` of each that lines up.
    pub(crate) fn telling(mut self, begins: Arc<Notify>) -> Self {
        self.0.get_mut().begins = Some(begins);
        self
    }

    /// Whether what waits is too much for one more of this priority to wait behind it: when that may be asked for again then, as half of
    /// the queue will have gone. Background work is the first to be told so, then prefetch.
    pub(crate) fn full_for(&self, priority: Priority) -> Option<Duration> {
        let lanes = self.0.lock();
        let all = [&lanes.urgent, &lanes.demand, &lanes.prefetch, &lanes.background];
        let bytes: u64 = all.iter().map(|lane| lane.waiting_bytes).sum();
        let requests: usize = all.iter().map(|lane| lane.len()).sum();
        let part = match priority {
            Priority::Urgent | Priority::Demand => 1,
            Priority::Prefetch => 2,
            Priority::Background => 4,
        };
        let is_full = bytes >= (lanes.queue_bytes / part).max(1) || requests >= QUEUE_REQUESTS / part as usize;
        let half = lanes.bytes_per_sec.map(|rate| Duration::from_millis((bytes / 2).saturating_mul(1000) / rate.max(1)));
        is_full.then(|| half.unwrap_or_default().clamp(AGAIN_MIN, AGAIN_MAX))
    }

    /// Waits to be let in to get so many bytes that no plan has asked for. `id` names the transfer for [`Self::raise`].
    pub(crate) async fn enter(self: &Arc<Self>, id: u64, priority: Priority, bytes: u64) -> Permit {
        self.enter_for(id, priority, UNPLANNED, bytes).await
    }

    /// The same for a plan: of prefetch, and of background work, those of the first plan are let in first. What is wanted on demand goes before
    /// what is of a priority below 0, which lets a few pass.
    pub(crate) async fn enter_for(self: &Arc<Self>, id: u64, priority: Priority, turn: PlanTurn, bytes: u64) -> Permit {
        self.enter_as(id, bytes, move || (priority, turn)).await
    }

    /// The same for what others may join before it lines up: `place` is asked when nobody is moved forward, so that no [`Self::raise`] is
    /// missed.
    pub(crate) async fn enter_as(self: &Arc<Self>, id: u64, bytes: u64, place: impl FnOnce() -> (Priority, PlanTurn)) -> Permit {
        let (admit, admitted) = oneshot::channel();
        {
            let mut lanes = self.0.lock();
            let (priority, turn) = place();
            lanes.of(priority).line_up(Waiter::new(id, turn, bytes, admit));
            lanes.pump();
            if let Some(begins) = &lanes.begins {
                begins.notify_one();
            }
        }
        let mut turn = Queued { admission: self, admitted, is_in: false };
        let Admitted { id, priority, bytes } =
            (&mut turn.admitted).await.expect("the admission drops no waiter that is still there");
        turn.is_in = true;
        Permit { admission: Arc::clone(self), id, priority, left: priority.counted(bytes) }
    }

    /// Moves a transfer that waits as prefetch or in the background to where `priority` and the turn of another plan that will read it have
    /// it wait. What runs already is counted as demand from now on where somebody waits for it, and what waits as demand lets nobody pass for
    /// whom the other one would not.
    pub(crate) fn raise(&self, id: u64, priority: Priority, turn: PlanTurn) {
        let mut lanes = self.0.lock();
        let lanes = &mut *lanes;
        let taken = match priority {
            Priority::Background => None,
            _ => lanes.prefetch.take(id).or_else(|| lanes.background.take(id)),
        };
        if let Some(waiter) = taken {
            lanes.of(priority).line_up(waiter.with_turn(turn));
            lanes.pump();
        } else if priority.is_demand() {
            lanes.coming.iter_mut().filter(|coming| coming.id == id).for_each(|coming| coming.awaited = true);
            [&mut lanes.urgent, &mut lanes.demand].into_iter().for_each(|lane| lane.also_for(id, turn));
        }
    }

    /// What waits to be let in.
    pub(crate) fn waiting(&self) -> Waiting {
        let lanes = self.0.lock();
        let [urgent, demand, background] = [&lanes.urgent, &lanes.demand, &lanes.background].map(|lane| lane.waiting_bytes);
        let mut ahead = BTreeMap::new();
        for (turn, bytes) in lanes.prefetch.there() {
            *ahead.entry(turn).or_default() += bytes;
        }
        let is_awaited = lanes.coming.iter().any(|coming| coming.awaited);
        let first = lanes.coming.iter().map(|coming| coming.turn).min().unwrap_or(lanes.last);
        Waiting { demand: urgent + demand, ahead, background, coming: (!is_awaited).then_some(first) }
    }

    /// The mount gives no more than this.
    pub(crate) fn set_bound(&self, bytes_per_sec: Option<u64>) {
        let mut lanes = self.0.lock();
        lanes.bytes_per_sec = bytes_per_sec;
        // What it gives in a quarter of a second is on its way, whatever the way to shared storage.
        let demand = bytes_per_sec.map_or(u64::MAX, |rate| (rate / 4).max(DEMAND_BYTES_MIN));
        (lanes.urgent.bytes_max, lanes.demand.bytes_max) = (demand, demand);
        let ahead = bytes_per_sec.map_or(PREFETCH_BYTES, |rate| (rate / 10).clamp(PREFETCH_BYTES_MIN, PREFETCH_BYTES));
        (lanes.prefetch.bytes_max, lanes.background.bytes_max) = (ahead, ahead);
        lanes.pump();
    }

    fn come(&self, priority: Priority, bytes: u64) {
        let mut lanes = self.0.lock();
        let lane = lanes.of(priority);
        assert!(bytes <= lane.bytes, "what comes was counted when it was let in");
        lane.bytes -= bytes;
        if lane.bytes < lane.bytes_max {
            lanes.pump();
        }
    }

    fn leave(&self, id: u64, priority: Priority, left: u64) {
        let mut lanes = self.0.lock();
        let lane = lanes.of(priority);
        debug_assert!(lane.running > 0 && left <= lane.bytes, "who leaves was let in");
        lane.running -= 1;
        lane.bytes -= left;
        if priority == Priority::Prefetch
            && let Some(at) = lanes.coming.iter().position(|coming| coming.id == id)
        {
            lanes.coming.swap_remove(at);
        }
        lanes.pump();
    }
}

impl Lanes {
    fn of(&mut self, priority: Priority) -> &mut Lane {
        match priority {
            Priority::Urgent => &mut self.urgent,
            Priority::Demand => &mut self.demand,
            Priority::Prefetch => &mut self.prefetch,
            Priority::Background => &mut self.background,
        }
    }

    fn pump(&mut self) {
        while self.urgent.running + self.demand.running < DEMAND_MAX && self.urgent.admit(true).is_some() {}
        let may_be_long = self.urgent.len() == 0;
        while self.urgent.running + self.demand.running < DEMAND_MAX && self.demand.admit(may_be_long).is_some() {}
        // Whoever gave up must not hold the prefetch behind it.
        self.urgent.drop_gone();
        self.demand.drop_gone();
        let no_demand = self.urgent.len() + self.demand.len() == 0;
        while no_demand
            && self.prefetch.running < PREFETCH_MAX
            && let Some((id, turn)) = self.prefetch.admit(true)
        {
            self.coming.push(Coming { id, turn, awaited: false });
            self.last = turn;
        }
        let none_waits = no_demand && self.prefetch.len() == 0;
        let background_max = match (self.prefetch.running, self.urgent.running + self.demand.running) {
            (0, 0) => PREFETCH_MAX,
            (0, _) => BESIDE_DEMAND_MAX,
            _ => BESIDE_PREFETCH_MAX,
        };
        while none_waits && self.background.running < background_max && self.background.admit(true).is_some() {}
        assert!(self.urgent.running + self.demand.running <= DEMAND_MAX && self.prefetch.running <= PREFETCH_MAX);
        let lanes = [&self.urgent, &self.demand, &self.prefetch, &self.background];
        assert!(lanes.iter().all(|lane| lane.running > 0 || lane.bytes == 0), "bytes to come are of requests that run");
    }
}

/// Gives a turn back that came when nobody waited for it any more.
struct Queued<'a> {
    admission: &'a Admission,
    admitted: oneshot::Receiver<Admitted>,
    /// The turn was taken.
    is_in: bool,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        // Nobody is gone then, and to look at all who wait costs something.
        if self.is_in {
            return;
        }
        self.admitted.close();
        match self.admitted.try_recv() {
            Ok(Admitted { id, priority, bytes }) => self.admission.leave(id, priority, priority.counted(bytes)),
            Err(_) => {
                let mut lanes = self.admission.0.lock();
                lanes.prefetch.drop_gone();
                lanes.background.drop_gone();
                lanes.pump();
            }
        }
    }
}

#[cfg(test)]
mod tests;
