//! Pages on their way here.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use forebay_block_store::{BlockStore, Pinned};
use forebay_shared_storage::Class;
use forebay_types::{Error, PAGE_BYTES, PageRun, PlanTurn, Result, SegmentId};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::admission::Priority;
use super::mounts::MountDoor;
use super::piece::Piece;
use crate::segment::Segment;

/// Of what, from where, for whom a run is fetched.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) door: Arc<MountDoor>,
    pub(crate) segment: Arc<Segment>,
    pub(crate) priority: Priority,
    /// Of the plan that will read it, where nobody waits for it yet.
    pub(crate) turn: PlanTurn,
    /// The segment is kept against eviction.
    pub(crate) keep: bool,
    /// Off when the store can't take it: the bytes go to who waits and nowhere else.
    pub(crate) cache: bool,
}

/// Pages of one segment on their way here by one request; at most one flight has a page at a time.
pub(crate) struct Flight {
    pub(crate) id: u64,
    pub(crate) segment: SegmentId,
    pub(crate) run: PageRun,
    /// Somebody waits for it; else it is prefetch.
    demand: AtomicBool,
    /// A plan will read it, which began as background work perhaps.
    planned: AtomicBool,
    /// Of the first plan that will read it, or of who waits for it.
    turn: Mutex<PlanTurn>,
    stage: Mutex<Stage>,
    received_bytes: AtomicU64,
    /// Who waits. Changes only under the lock of the table that holds the flight.
    pub(crate) waiters: Arc<AtomicUsize>,
    pub(crate) task: OnceLock<AbortHandle>,
    progress: watch::Sender<Progress>,
}

/// How far a flight is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Other workers are asked.
    Asking,
    /// Its request waits for its turn at shared storage.
    InLine,
    /// Shared storage has been asked, or it is at hand.
    Coming,
    /// It comes into no tier, and goes to who waits here.
    Passing,
}

#[derive(Default)]
struct Progress {
    /// Pages from the run's start that are in the store.
    pages: u32,
    landed: Option<Landed>,
}

/// How a flight ended.
#[derive(Clone)]
pub(crate) enum Landed {
    /// All pages are in the store; pinned for those who wait.
    Stored(Pinned),
    /// The store had no room: here are the bytes, for those who wait.
    Passed(Bytes),
    /// The bytes are not here, and that is no failure of shared storage: ask again.
    Gone,
    /// Shared storage could not give them.
    Failed(Error),
}

impl Flight {
    pub(crate) fn new(id: u64, segment: SegmentId, run: PageRun, class: Class, turn: PlanTurn) -> Self {
        Self {
            id,
            segment,
            run,
            demand: AtomicBool::new(class == Class::Demand),
            planned: AtomicBool::new(class == Class::Prefetch),
            turn: Mutex::new(turn),
            stage: Mutex::new(Stage::Asking),
            received_bytes: AtomicU64::new(0),
            waiters: Arc::default(),
            task: OnceLock::new(),
            progress: watch::Sender::new(Progress::default()),
        }
    }

    /// Some pages of `run` are among those that it brings.
    pub(super) fn has_some_of(&self, run: PageRun) -> bool {
        self.run.start < run.end() && self.run.end() > run.start
    }

    pub(crate) fn class(&self) -> Class {
        if self.demand.load(Relaxed) { Class::Demand } else { Class::Prefetch }
    }

    /// One more wants it, with this priority and in this turn; whether its request may have to move forward where it waits.
    pub(crate) fn raise(&self, priority: Priority, turn: PlanTurn) -> bool {
        let is_new = match priority {
            Priority::Urgent | Priority::Demand => !self.demand.swap(true, Relaxed),
            Priority::Prefetch => !self.planned.swap(true, Relaxed),
            Priority::Background => return false,
        };
        let mut first = self.turn.lock();
        let is_first = turn < *first;
        *first = turn.min(*first);
        is_new || is_first
    }

    /// The turn of a request for it that begins now.
    pub(crate) fn turn(&self) -> PlanTurn {
        *self.turn.lock()
    }

    /// The priority of a request for it that begins now, and was `wanted` with this one by who began the flight.
    pub(crate) fn priority(&self, wanted: Priority) -> Priority {
        match wanted {
            _ if self.class() == Class::Demand => wanted.of_demand(),
            Priority::Background if self.planned.load(Relaxed) => Priority::Prefetch,
            _ => wanted,
        }
    }

    /// It has come so far. Of several requests of one flight a later one may stand in line again; what comes into no tier does so to its end.
    pub(super) fn reaches(&self, stage: Stage) {
        let mut now = self.stage.lock();
        if *now != Stage::Passing {
            *now = stage;
        }
    }

    /// Whether another worker does well to wait for it, that is, where `asking`, while others are asked for it too. Background work gets what all
    /// others leave over: nobody knows when.
    pub(super) fn is_coming(&self, asking: bool) -> bool {
        let stage = *self.stage.lock();
        let is_background = !self.demand.load(Relaxed) && !self.planned.load(Relaxed);
        match stage {
            Stage::Asking => asking && !is_background,
            Stage::Coming => !is_background,
            Stage::InLine | Stage::Passing => false,
        }
    }

    /// So many bytes have come in all, of which so many pages are in the store.
    pub(crate) fn arrived(&self, bytes: u64, pages: u32) {
        assert!(pages <= self.run.len, "no more comes than was asked for");
        assert!(bytes <= u64::from(self.run.len) * PAGE_BYTES, "{bytes} bytes have come for {} pages", self.run.len);
        self.received_bytes.store(bytes, Relaxed);
        self.progress.send_if_modified(|progress| {
            let more = pages > progress.pages;
            progress.pages = progress.pages.max(pages);
            more
        });
    }

    /// Whether what is left costs less than asking again would: a quarter of it, or 256 KiB.
    pub(crate) fn is_nearly_here(&self) -> bool {
        let all = u64::from(self.run.len) * PAGE_BYTES;
        let left = all.saturating_sub(self.received_bytes.load(Relaxed));
        left < all && left <= (all / 4).max(256 << 10)
    }

    /// Ends the flight; only the first end counts.
    pub(crate) fn land(&self, landed: Landed) {
        self.progress.send_if_modified(|progress| {
            let first = progress.landed.is_none();
            if first {
                progress.landed = Some(landed);
            }
            first
        });
    }

    /// Waits until the pages `wanted`, which are some of the flight's, have arrived. None when they came without staying
    /// anywhere: ask again.
    pub(crate) async fn wait(&self, wanted: PageRun, store: &BlockStore) -> Result<Option<Piece>> {
        assert!(self.run.start <= wanted.start && wanted.end() <= self.run.end(), "a ticket is for pages of its flight");
        let enough = wanted.end() - self.run.start;
        let mut progress = self.progress.subscribe();
        loop {
            let arrived = {
                let now = progress.borrow_and_update();
                match &now.landed {
                    Some(Landed::Stored(pinned)) => return Ok(Some(Piece::pinned(self.run, pinned.clone()))),
                    Some(Landed::Passed(bytes)) => return Ok(Some(Piece::bytes(self.run, bytes.clone()))),
                    Some(Landed::Gone) => return Ok(None),
                    Some(Landed::Failed(error)) => return Err(error.clone()),
                    None => now.pages >= enough,
                }
            };
            if arrived && let Some(pinned) = store.pin(self.segment, wanted) {
                return Ok(Some(Piece::pinned(wanted, pinned)));
            }
            // The sender lives in this flight.
            progress.changed().await.expect("a flight outlives who waits for it");
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::{OperationId, Standing};

    use super::*;

    fn turn(number: u64) -> PlanTurn {
        Standing { priority: 0, began_ms: number }.turn(OperationId(number), 0)
    }

    #[test]
    fn who_joins_a_flight_of_background_work_moves_what_it_has_yet_to_ask_for() {
        let flight = Flight::new(1, SegmentId(1), PageRun::new(0, 1), Class::Background, turn(5));
        let joined = |priority| (flight.raise(priority, turn(7)), flight.priority(Priority::Background));
        assert_eq!(joined(Priority::Background), (false, Priority::Background));
        assert_eq!(joined(Priority::Prefetch), (true, Priority::Prefetch), "it is not in line yet, and will stand with prefetch");
        assert_eq!(joined(Priority::Prefetch), (false, Priority::Prefetch));
        assert!(flight.raise(Priority::Prefetch, turn(3)) && !flight.raise(Priority::Prefetch, turn(4)));
        assert_eq!(flight.turn(), turn(3), "the plan that is first of those that will read it");
        assert_eq!(joined(Priority::Urgent), (true, Priority::Demand));
        assert_eq!(joined(Priority::Demand), (false, Priority::Demand));
        assert_eq!(flight.priority(Priority::Urgent), Priority::Urgent);
        assert_eq!(flight.class(), Class::Demand);
    }

    #[test]
    fn what_a_batch_waits_for_is_no_batch_of_who_waits_for_it_too() {
        let turn = |priority| Standing { priority, began_ms: 5 }.turn(OperationId(0), 0);
        let flight = Flight::new(1, SegmentId(1), PageRun::new(0, 1), Class::Demand, turn(-3));
        assert!(!flight.raise(Priority::Demand, turn(-5)));
        assert!(flight.raise(Priority::Demand, turn(0)) && !flight.raise(Priority::Demand, turn(0)));
        assert_eq!(flight.turn(), turn(0));
    }

    #[test]
    fn another_worker_waits_for_what_comes_into_the_tiers_soon() {
        let flight = Flight::new(1, SegmentId(1), PageRun::new(0, 1), Class::Background, turn(5));
        let coming = || [false, true].map(|asking| flight.is_coming(asking));
        assert_eq!(coming(), [false, false], "nobody wants it yet");
        flight.raise(Priority::Prefetch, turn(5));
        assert_eq!(coming(), [false, true]);
        for (stage, is_coming) in [(Stage::InLine, false), (Stage::Coming, true), (Stage::InLine, false), (Stage::Passing, false)]
        {
            flight.reaches(stage);
            assert_eq!(coming(), [is_coming, is_coming]);
        }
        flight.reaches(Stage::Coming);
        assert_eq!(coming(), [false, false], "its next request brings nothing into a tier either");
    }

    #[test]
    #[should_panic(expected = "no more comes than was asked for")]
    fn pages_that_nobody_asked_for_are_caught() {
        Flight::new(1, SegmentId(1), PageRun::new(0, 1), Class::Demand, turn(1)).arrived(2 * PAGE_BYTES, 2);
    }
}
