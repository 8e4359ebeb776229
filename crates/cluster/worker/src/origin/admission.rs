//! How many requests of a mount run at a time, and which.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use forebay_shared_storage::Class;
use parking_lot::Mutex;
use tokio::sync::oneshot;

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

/// Lets a bounded number of GETs of one mount run at a time: what is urgent, demand, prefetch and background, each in its order.
#[derive(Debug, Default)]
pub(crate) struct Admission(Mutex<Lanes>);

#[derive(Debug)]
struct Lanes {
    urgent: Lane,
    demand: Lane,
    prefetch: Lane,
    background: Lane,
}

/// Those of one priority.
#[derive(Debug)]
struct Lane {
    priority: Priority,
    waiting: VecDeque<Waiter>,
    running: usize,
    /// Still to come.
    bytes: u64,
    /// From so many bytes on nothing more that counts is let in.
    bytes_max: u64,
}

impl Default for Lanes {
    fn default() -> Self {
        let lane = |priority, bytes_max| Lane { priority, waiting: VecDeque::new(), running: 0, bytes: 0, bytes_max };
        Self {
            urgent: lane(Priority::Urgent, u64::MAX),
            demand: lane(Priority::Demand, u64::MAX),
            prefetch: lane(Priority::Prefetch, PREFETCH_BYTES),
            background: lane(Priority::Background, PREFETCH_BYTES),
        }
    }
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    bytes: u64,
    admit: oneshot::Sender<Admitted>,
}

#[derive(Clone, Copy, Debug)]
struct Admitted {
    priority: Priority,
    bytes: u64,
}

/// One GET that may run; ends with the value.
#[derive(Debug)]
pub(crate) struct Permit {
    admission: Arc<Admission>,
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
        self.admission.leave(self.priority, self.left);
    }
}

impl Admission {
    /// Waits for a turn to get so many bytes. `id` names the transfer for [`Self::raise`].
    pub(crate) async fn enter(self: &Arc<Self>, id: u64, priority: Priority, bytes: u64) -> Permit {
        let (admit, admitted) = oneshot::channel();
        {
            let mut lanes = self.0.lock();
            lanes.of(priority).waiting.push_back(Waiter { id, bytes, admit });
            lanes.pump();
        }
        let mut turn = Queued { admission: self, admitted };
        let admitted = (&mut turn.admitted).await.expect("the admission drops no waiter that is still there");
        let left = admitted.priority.counted(admitted.bytes);
        Permit { admission: Arc::clone(self), priority: admitted.priority, left }
    }

    /// Moves a transfer that waits as prefetch or in the background behind those that wait in `priority`; nothing when it runs already,
    /// or waits there.
    pub(crate) fn raise(&self, id: u64, priority: Priority) {
        let mut lanes = self.0.lock();
        let taken = match priority {
            Priority::Urgent | Priority::Demand => lanes.prefetch.take(id).or_else(|| lanes.background.take(id)),
            Priority::Prefetch => lanes.background.take(id),
            Priority::Background => None,
        };
        if let Some(waiter) = taken {
            lanes.of(priority).waiting.push_back(waiter);
            lanes.pump();
        }
    }

    /// Bytes that wait for their turn: those that somebody waits for or a plan will read, and those of background work.
    pub(crate) fn waiting_bytes(&self) -> (u64, u64) {
        let lanes = self.0.lock();
        let wanted = [&lanes.urgent, &lanes.demand, &lanes.prefetch].map(Lane::waiting_bytes);
        (wanted.iter().sum(), lanes.background.waiting_bytes())
    }

    /// The mount gives no more than this.
    pub(crate) fn set_bound(&self, bytes_per_sec: Option<u64>) {
        let mut lanes = self.0.lock();
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

    fn leave(&self, priority: Priority, left: u64) {
        let mut lanes = self.0.lock();
        let lane = lanes.of(priority);
        debug_assert!(lane.running > 0 && left <= lane.bytes, "who leaves was let in");
        lane.running -= 1;
        lane.bytes -= left;
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
        while self.urgent.running + self.demand.running < DEMAND_MAX && self.urgent.admit(true) {}
        let may_be_long = self.urgent.waiting.is_empty();
        while self.urgent.running + self.demand.running < DEMAND_MAX && self.demand.admit(may_be_long) {}
        // Whoever gave up must not hold the prefetch behind it.
        self.urgent.waiting.retain(|waiter| !waiter.admit.is_closed());
        self.demand.waiting.retain(|waiter| !waiter.admit.is_closed());
        let no_demand = self.urgent.waiting.is_empty() && self.demand.waiting.is_empty();
        while no_demand && self.prefetch.running < PREFETCH_MAX && self.prefetch.admit(true) {}
        let none_waits = no_demand && self.prefetch.waiting.is_empty();
        let background_max = match (self.prefetch.running, self.urgent.running + self.demand.running) {
            (0, 0) => PREFETCH_MAX,
            (0, _) => BESIDE_DEMAND_MAX,
            _ => BESIDE_PREFETCH_MAX,
        };
        while none_waits && self.background.running < background_max && self.background.admit(true) {}
        assert!(self.urgent.running + self.demand.running <= DEMAND_MAX && self.prefetch.running <= PREFETCH_MAX);
        let lanes = [&self.urgent, &self.demand, &self.prefetch, &self.background];
        assert!(lanes.iter().all(|lane| lane.running > 0 || lane.bytes == 0), "bytes to come are of requests that run");
    }
}

impl Lane {
    fn waiting_bytes(&self) -> u64 {
        self.waiting.iter().filter(|waiter| !waiter.admit.is_closed()).map(|waiter| waiter.bytes).sum()
    }

    /// Takes out one that waits.
    fn take(&mut self, id: u64) -> Option<Waiter> {
        let at = self.waiting.iter().position(|waiter| waiter.id == id)?;
        self.waiting.remove(at)
    }

    /// Lets the first in that may be; false when there is none.
    fn admit(&mut self, may_be_long: bool) -> bool {
        let priority = self.priority;
        let has_room = may_be_long && self.bytes < self.bytes_max;
        let first = self.waiting.iter().position(|waiter| has_room || priority.counted(waiter.bytes) == 0);
        let Some(waiter) = first.and_then(|at| self.waiting.remove(at)) else { return false };
        if waiter.admit.send(Admitted { priority, bytes: waiter.bytes }).is_ok() {
            self.running += 1;
            self.bytes += priority.counted(waiter.bytes);
        }
        true
    }
}

/// Gives a turn back that came when nobody waited for it any more.
struct Queued<'a> {
    admission: &'a Admission,
    admitted: oneshot::Receiver<Admitted>,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.admitted.close();
        // After a turn that was taken this finds nothing: the value is out of the channel.
        match self.admitted.try_recv() {
            Ok(admitted) => self.admission.leave(admitted.priority, admitted.priority.counted(admitted.bytes)),
            Err(_) => self.admission.0.lock().pump(),
        }
    }
}

#[cfg(test)]
mod tests;
