use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use forebay_block_store::BlockStore;
use forebay_types::{Error, PAGE_BYTES, PageRun, PageSet, Result, SegmentId};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::flight::{Flight, Landed};
use crate::gate::Line;
use crate::metrics::Meters;
use crate::mounts::MountDoor;
use crate::obtain::Piece;
use crate::segment::Segment;
use crate::transfer::{Source, transfer};
use crate::versions::Versions;

/// Pages of one GET when a long run is fetched: 4 MiB, so that several in parallel fill the link and the first arrives soon.
const FLIGHT_PAGES: u32 = (4 << 20) / PAGE_BYTES as u32;

/// What is on its way from shared storage, so that each page is fetched once for everyone who waits.
pub(crate) struct Fills {
    pub(crate) store: BlockStore,
    pub(crate) versions: Arc<Versions>,
    pub(crate) meters: Arc<Meters>,
    /// Flights by segment, in order of their pages, none overlapping another.
    table: Mutex<HashMap<SegmentId, Vec<Arc<Flight>>>>,
    tasks: Mutex<JoinSet<()>>,
    next_id: AtomicU64,
}

/// Of what, from where, for whom a run is fetched.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) door: Arc<MountDoor>,
    pub(crate) segment: Arc<Segment>,
    pub(crate) line: Line,
    /// The segment is kept against eviction.
    pub(crate) keep: bool,
    /// Off when the store can't take it: the bytes go to who waits and nowhere else.
    pub(crate) cache: bool,
}

/// A run, sorted by where its pages are.
pub(crate) struct Joined {
    pub(crate) dram: Vec<PageRun>,
    pub(crate) disk: Vec<PageRun>,
    /// Pages that are on their way now.
    pub(crate) tickets: Vec<Ticket>,
}

/// A place among those who wait for a flight. The flight is cancelled when the last one goes.
pub(crate) struct Ticket {
    fills: Arc<Fills>,
    flight: Arc<Flight>,
    pub(crate) run: PageRun,
    /// The flight was started for it, not joined.
    pub(crate) first: bool,
    /// The flight goes on without it.
    let_go: bool,
}

impl Fills {
    pub(crate) fn new(store: BlockStore, versions: Arc<Versions>, meters: Arc<Meters>) -> Self {
        let (table, tasks) = (Mutex::default(), Mutex::default());
        Self { store, versions, meters, table, tasks, next_id: AtomicU64::new(0) }
    }

    /// Sorts the pages of `run`; for those that are in no tier it joins the flights that have them, and starts flights for
    /// the rest. With `read_disk` off, what is only on disk is fetched again.
    pub(crate) fn join(self: &Arc<Self>, wanted: &Wanted, run: PageRun, read_disk: bool) -> Joined {
        let id = wanted.segment.id;
        let mut table = self.table.lock();
        // Under the lock, so that a flight that lands now is seen either here or in the table.
        let mut state = self.store.state(id, run);
        if !read_disk && !state.disk.is_empty() {
            state.missing = state.missing.into_iter().chain(state.disk.drain(..)).collect::<PageSet>().runs();
        }
        let flights = table.entry(id).or_default();
        let mut tickets = Vec::new();
        let mut fresh = Vec::new();
        for missing in state.missing {
            let mut at = missing.start;
            for flight in flights.iter().filter(|flight| flight.run.start < missing.end() && flight.run.end() > missing.start) {
                if at < flight.run.start {
                    fresh.push(PageRun::new(at, flight.run.start));
                }
                let joined = PageRun::new(at.max(flight.run.start), flight.run.end().min(missing.end()));
                if wanted.line != Line::Prefetch && flight.raise() {
                    wanted.door.gate.raise(flight.id, wanted.line);
                }
                tickets.push(self.ticket(flight, joined));
                at = flight.run.end();
            }
            if at < missing.end() {
                fresh.push(PageRun::new(at, missing.end()));
            }
        }
        for run in fresh.into_iter().flat_map(cut) {
            tickets.push(self.launch(flights, wanted, run, Source::Fetch));
        }
        if flights.is_empty() {
            table.remove(&id);
        }
        Joined { dram: state.dram, disk: state.disk, tickets }
    }

    /// Takes bytes of `run` that are at hand (a body that is open already, a payload that was written) as a flight. None,
    /// and the bytes are dropped, when some of the pages are here or on their way.
    pub(crate) fn adopt(self: &Arc<Self>, wanted: &Wanted, run: PageRun, source: Source) -> Option<Ticket> {
        let id = wanted.segment.id;
        let mut table = self.table.lock();
        let flights = table.entry(id).or_default();
        let in_flight = flights.iter().any(|flight| flight.run.start < run.end() && flight.run.end() > run.start);
        if in_flight || self.store.state(id, run).missing != [run] {
            if flights.is_empty() {
                table.remove(&id);
            }
            return None;
        }
        Some(self.launch(flights, wanted, run, source))
    }

    fn launch(self: &Arc<Self>, flights: &mut Vec<Arc<Flight>>, wanted: &Wanted, run: PageRun, source: Source) -> Ticket {
        let id = self.next_id.fetch_add(1, Relaxed);
        let flight = Arc::new(Flight::new(id, wanted.segment.id, run, wanted.line.class()));
        let at = flights.partition_point(|other| other.run.start < run.start);
        flights.insert(at, Arc::clone(&flight));
        let mut ticket = self.ticket(&flight, run);
        ticket.first = true;
        let landing = Landing { fills: Arc::clone(self), flight: Arc::clone(&flight) };
        let wanted = wanted.clone();
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        let task = tasks.spawn(async move {
            let landed = transfer(&landing.fills, &landing.flight, &wanted, source).await;
            landing.end(landed);
        });
        flight.task.set(task).expect("a flight has one task");
        ticket
    }

    fn ticket(self: &Arc<Self>, flight: &Arc<Flight>, run: PageRun) -> Ticket {
        flight.waiters.fetch_add(1, Relaxed);
        Ticket { fills: Arc::clone(self), flight: Arc::clone(flight), run, first: false, let_go: false }
    }

    fn take_out(table: &mut HashMap<SegmentId, Vec<Arc<Flight>>>, flight: &Flight) {
        if let Some(flights) = table.get_mut(&flight.segment) {
            flights.retain(|other| other.id != flight.id);
            if flights.is_empty() {
                table.remove(&flight.segment);
            }
        }
    }

    /// Ends all flights; whoever waits gets `Closed`.
    pub(crate) fn stop(&self) {
        self.tasks.lock().abort_all();
    }

    /// The same, and waits until they have ended.
    pub(crate) async fn stopped(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.shutdown().await;
    }
}

impl Ticket {
    /// Waits for the pages. None when they came without staying anywhere: ask again.
    pub(crate) async fn wait(&self) -> Result<Option<Piece>> {
        self.flight.wait(self.run, &self.fills.store).await
    }

    /// Stops waiting and lets the flight go on to its end.
    pub(crate) fn let_go(mut self) {
        self.let_go = true;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.let_go {
            return;
        }
        let mut table = self.fills.table.lock();
        if self.flight.waiters.fetch_sub(1, Relaxed) == 1 && !self.flight.is_nearly_here() {
            // Out of the table first: who asks from now on must start another flight.
            Fills::take_out(&mut table, &self.flight);
            if let Some(task) = self.flight.task.get() {
                task.abort();
            }
        }
    }
}

/// The end of a flight, whatever ends it: its result, a cancelled task, a panic.
struct Landing {
    fills: Arc<Fills>,
    flight: Arc<Flight>,
}

impl Landing {
    fn end(&self, landed: Landed) {
        Fills::take_out(&mut self.fills.table.lock(), &self.flight);
        self.flight.land(landed);
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.end(Landed::Failed(Error::closed("the fetch was given up: the worker is stopping")));
    }
}

/// Cuts a run in equal parts of about [`FLIGHT_PAGES`].
fn cut(run: PageRun) -> impl Iterator<Item = PageRun> {
    let parts = ((run.len + FLIGHT_PAGES / 2) / FLIGHT_PAGES).max(1);
    let edge = move |part: u32| run.start + (u64::from(run.len) * u64::from(part) / u64::from(parts)) as u32;
    (0..parts).map(move |part| PageRun::new(edge(part), edge(part + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_equal_and_complete() {
        let parts = |start, end| cut(PageRun::new(start, end)).map(|run| (run.start, run.end())).collect::<Vec<_>>();
        assert_eq!(parts(3, 4), [(3, 4)]);
        assert_eq!(parts(0, 1500), [(0, 1500)], "no request for a short tail");
        assert_eq!(parts(0, 2048), [(0, 1024), (1024, 2048)]);
        let segment = parts(0, 16384);
        assert_eq!(segment.len(), 16);
        assert!(segment.windows(2).all(|pair| pair[0].1 == pair[1].0));
    }
}
