//! Pages on their way here.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use forebay_block_store::{BlockStore, Pinned};
use forebay_placement::{ForOther, Meeting, OnTheWay};
use forebay_shared_storage::Class;
use forebay_types::{Error, PAGE_BYTES, PageRun, PageSet, PlanTurn, Result, SegmentId, WorkerId};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::admission::Priority;
use super::mounts::MountDoor;
use super::piece::Piece;
use crate::segment::Segment;

/// Workers that a flight remembers to ask once it has its turn: who missed its pages and was not waited for.
const OTHERS_MAX: usize = 16;

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
    way: Mutex<Way>,
    received_bytes: AtomicU64,
    /// Who waits. Changes only under the lock of the table that holds the flight.
    pub(crate) waiters: Arc<AtomicUsize>,
    pub(crate) task: OnceLock<AbortHandle>,
    progress: watch::Sender<Progress>,
}

/// How far a flight is, and whom it asks before shared storage.
struct Way {
    at: OnTheWay,
    /// Once pages come: shared storage was asked for those before this one.
    to: u32,
    /// Who has pages of it by then, or soon will, and which those are.
    others: Vec<(WorkerId, PageRun)>,
    /// Pages that others fetch, as they were told here.
    told: PageSet,
}

impl Way {
    /// How far some of its pages are.
    fn of(&self, pages: PageRun) -> OnTheWay {
        if self.at == OnTheWay::Coming && pages.start >= self.to { OnTheWay::InLine } else { self.at }
    }

    fn note(&mut self, other: WorkerId, pages: PageRun) {
        match self.others.iter().position(|(known, _)| *known == other) {
            Some(at) => {
                let known = &mut self.others[at].1;
                *known = PageRun::new(known.start.min(pages.start), known.end().max(pages.end()));
            }
            None if self.others.len() < OTHERS_MAX => self.others.push((other, pages)),
            None => {}
        }
    }

    /// Those who have pages of `run`, or soon will, and which; of what lies behind it they are asked later.
    fn take(&mut self, run: PageRun) -> Vec<(WorkerId, PageRun)> {
        let mut taken = Vec::new();
        self.others.retain_mut(|(other, pages)| {
            if !overlap(*pages, run) {
                return true;
            }
            taken.push((*other, PageRun::new(pages.start.max(run.start), pages.end().min(run.end()))));
            let is_left = pages.end() > run.end();
            if is_left {
                *pages = PageRun::new(run.end(), pages.end());
            }
            is_left
        });
        taken
    }
}

/// Whether runs have a page in common.
fn overlap(one: PageRun, other: PageRun) -> bool {
    one.start < other.end() && one.end() > other.start
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
            way: Mutex::new(Way { at: OnTheWay::Asking, to: u32::MAX, others: Vec::new(), told: PageSet::new() }),
            received_bytes: AtomicU64::new(0),
            waiters: Arc::default(),
            task: OnceLock::new(),
            progress: watch::Sender::new(Progress::default()),
        }
    }

    /// Some pages of `run` are among those that it brings.
    pub(super) fn has_some_of(&self, run: PageRun) -> bool {
        overlap(self.run, run)
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
    pub(super) fn reaches(&self, at: OnTheWay) {
        let mut way = self.way.lock();
        if way.at != OnTheWay::Passing {
            way.at = at;
        }
    }

    /// Those of its pages that are in `run`.
    pub(super) fn common(&self, run: PageRun) -> PageRun {
        PageRun::new(self.run.start.max(run.start), self.run.end().min(run.end()))
    }

    /// Shared storage is asked for pages of it up to the end of `run`.
    pub(super) fn asks_for(&self, run: PageRun) {
        debug_assert!(self.run.start < run.end() && run.end() <= self.run.end(), "a request is for pages of its flight");
        self.reaches(OnTheWay::Coming);
        self.way.lock().to = run.end();
    }

    /// What another worker does about pages of this worker's flight that misses all that it `wants`. One that fetches them, or asks later, is asked
    /// for them before they are fetched here.
    pub(super) fn for_other(&self, worker: WorkerId, other: WorkerId, wants: PageRun) -> ForOther {
        debug_assert!(overlap(self.run, wants), "another one misses pages of the flight");
        let (pages, meeting) = (self.common(wants), Meeting::of(self.run, wants));
        let is_wanted = self.demand.load(Relaxed) || self.planned.load(Relaxed);
        let mut way = self.way.lock();
        let told = way.of(pages).for_other(is_wanted, meeting, worker, other);
        if matches!(told, ForOther::Fetches | ForOther::AsksLater) {
            way.note(other, pages);
        }
        if matches!(told, ForOther::Fetches | ForOther::FetchesToo) {
            way.told.insert(pages);
        }
        told
    }

    /// Pages of `run` that others were told to fetch.
    pub(super) fn told_others(&self, run: PageRun) -> u64 {
        let way = self.way.lock();
        run.pages().filter(|page| way.told.contains(*page)).count() as u64
    }

    /// The same of one that has waited for them in vain: whether it does well to ask again.
    pub(super) fn is_late_for(&self, other: WorkerId, pages: PageRun) -> bool {
        let is_here = {
            let progress = self.progress.borrow();
            progress.landed.is_some() || progress.pages >= pages.end() - self.run.start
        };
        if is_here {
            return false;
        }
        let mut way = self.way.lock();
        match way.of(pages) {
            OnTheWay::Asking | OnTheWay::InLine => {
                way.note(other, pages);
                false
            }
            OnTheWay::Coming => true,
            OnTheWay::Passing => false,
        }
    }

    /// Another worker is to be asked for `pages` before shared storage: it has them soon.
    pub(super) fn asks_later(&self, other: WorkerId, pages: PageRun) {
        self.way.lock().note(other, pages);
    }

    /// Shared storage can be asked for `run` now. Gives those who are to be asked first, and for which pages; where there are none, it comes from now
    /// on.
    pub(super) fn begins(&self, run: PageRun) -> Vec<(WorkerId, PageRun)> {
        debug_assert!(self.run.start <= run.start && run.end() <= self.run.end(), "a request is for pages of its flight");
        let mut way = self.way.lock();
        let asked = way.take(run);
        if way.at != OnTheWay::Passing {
            way.at = if asked.is_empty() { OnTheWay::Coming } else { OnTheWay::Asking };
            way.to = run.end();
        }
        asked
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
    fn who_was_not_waited_for_is_asked_before_shared_storage() {
        let (worker, [low, high]) = (WorkerId(5), [1, 9].map(WorkerId));
        let (flight, run) = (Flight::new(1, SegmentId(1), PageRun::new(0, 100), Class::Background, turn(5)), PageRun::new);
        let told = |other, pages| flight.for_other(worker, other, pages);
        assert_eq!(told(high, run(0, 1)), ForOther::Fetches, "nobody wants it yet here");
        flight.raise(Priority::Prefetch, turn(5));
        assert_eq!(told(high, run(0, 1)), ForOther::Waits);
        assert_eq!(told(low, run(40, 60)), ForOther::Fetches);
        flight.reaches(OnTheWay::InLine);
        assert_eq!(told(low, run(90, 95)), ForOther::Fetches);
        assert_eq!(flight.begins(run(0, 50)), [(high, run(0, 1)), (low, run(40, 50))]);
        assert!(!flight.is_late_for(high, run(10, 20)), "it waits no longer, and is asked");
        assert_eq!(flight.begins(run(0, 50)), [(high, run(10, 20))], "the other one has nothing more of these");
        assert!(flight.begins(run(0, 50)).is_empty());
        assert_eq!((told(low, run(0, 1)), flight.is_late_for(low, run(0, 1))), (ForOther::Waits, true), "its bytes come");
        flight.arrived(10 * PAGE_BYTES, 10);
        assert!(!flight.is_late_for(low, run(0, 10)) && flight.is_late_for(low, run(9, 11)), "what is here is not on its way");
        flight.reaches(OnTheWay::InLine);
        assert_eq!(flight.begins(run(70, 100)), [(low, run(70, 95))], "of a later part it is asked in its turn");
        flight.reaches(OnTheWay::Passing);
        assert!(flight.begins(run(70, 100)).is_empty());
        assert_eq!((told(low, run(0, 1)), flight.is_late_for(low, run(0, 1))), (ForOther::FetchesToo, false));
        flight.reaches(OnTheWay::Coming);
        assert_eq!(told(low, run(0, 1)), ForOther::FetchesToo, "its next request brings nothing into a tier either");
    }

    #[test]
    fn what_a_request_leaves_to_its_end_is_not_on_its_way_yet() {
        let (worker, other) = (WorkerId(5), WorkerId(9));
        let (flight, run) = (Flight::new(1, SegmentId(1), PageRun::new(0, 100), Class::Demand, turn(5)), PageRun::new);
        assert_eq!(flight.for_other(worker, other, run(99, 200)), ForOther::Fetches, "it has the page before this one");
        assert_eq!(flight.told_others(run(90, 100)), 1);
        assert_eq!(flight.begins(run(0, 100)), [(other, run(99, 100))]);
        flight.asks_for(run(0, 99));
        assert_eq!(flight.for_other(worker, other, run(99, 200)), ForOther::Fetches, "shared storage was not asked for it");
        assert!(!flight.is_late_for(other, run(99, 100)) && flight.is_late_for(other, run(98, 99)));
        assert_eq!((flight.begins(run(99, 100)).len(), flight.begins(run(99, 100)).len()), (1, 0));
        assert_eq!(flight.for_other(worker, other, run(99, 200)), ForOther::Waits);
        let behind = Flight::new(2, SegmentId(1), run(99, 200), Class::Demand, turn(5));
        assert_eq!(behind.for_other(worker, other, run(0, 100)), ForOther::AsksLater);
        assert_eq!(behind.begins(run(99, 200)), [(other, run(99, 100))], "who may have fetched it after all is asked first");
    }

    #[test]
    #[should_panic(expected = "no more comes than was asked for")]
    fn pages_that_nobody_asked_for_are_caught() {
        Flight::new(1, SegmentId(1), PageRun::new(0, 1), Class::Demand, turn(1)).arrived(2 * PAGE_BYTES, 2);
    }
}
