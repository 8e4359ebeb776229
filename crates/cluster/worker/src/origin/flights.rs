//! What is on its way from shared storage.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use forebay_placement::{ForOther, OnTheWay};
use forebay_runtime::deadline::Waited;
use forebay_trace::within;
use forebay_types::{Error, PAGE_BYTES, PageRun, PageSet, Result, SegmentId, WorkerId};
use futures::future::join_all;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::elsewhere::COMES_WITHIN;
use super::flight::{Flight, Landed, Wanted};
use super::means::Means;
use super::piece::Piece;
use super::transfer::{Source, transfer};

/// Pages of one GET when a long run is fetched: 4 MiB, so that several in parallel fill the link and the first arrives soon.
const FLIGHT_PAGES: u32 = (4 << 20) / PAGE_BYTES as u32;

/// What is on its way from shared storage, so that each page is fetched once for everyone who waits.
pub(crate) struct Flights {
    means: Means,
    /// Flights by segment, in order of their pages, none overlapping another.
    table: Mutex<HashMap<SegmentId, Vec<Arc<Flight>>>>,
    tasks: Mutex<JoinSet<()>>,
    next_id: AtomicU64,
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
    flights: Arc<Flights>,
    flight: Arc<Flight>,
    pub(crate) run: PageRun,
    /// The flight was started for it, not joined.
    pub(crate) first: bool,
    /// The flight goes on without it.
    let_go: bool,
}

impl Joined {
    fn pages(&self) -> u32 {
        let tickets = self.tickets.iter().map(|ticket| ticket.run.len);
        self.dram.iter().chain(&self.disk).map(|run| run.len).chain(tickets).sum()
    }
}

impl Flights {
    pub(crate) fn new(means: Means) -> Self {
        Self { means, table: Mutex::default(), tasks: Mutex::default(), next_id: AtomicU64::new(0) }
    }

    /// Sorts the pages of `run`; for those that are in no tier it joins the flights that have them, and starts flights for
    /// the rest. With `read_disk` off, what is only on disk is fetched again.
    pub(crate) fn join(self: &Arc<Self>, wanted: &Wanted, run: PageRun, read_disk: bool) -> Joined {
        let id = wanted.segment.id;
        let mut table = self.table.lock();
        // Under the lock, so that a flight that lands now is seen either here or in the table.
        let mut state = self.means.store.state(id, run);
        if !read_disk && !state.disk.is_empty() {
            state.missing = state.missing.into_iter().chain(state.disk.drain(..)).collect::<PageSet>().runs();
        }
        let flights = table.entry(id).or_default();
        let mut tickets = Vec::new();
        let mut fresh = Vec::new();
        for missing in state.missing {
            let mut at = missing.start;
            for flight in flights.iter().filter(|flight| flight.has_some_of(missing)) {
                if at < flight.run.start {
                    fresh.push(PageRun::new(at, flight.run.start));
                }
                let joined = PageRun::new(at.max(flight.run.start), flight.run.end().min(missing.end()));
                if flight.raise(wanted.priority, wanted.turn) {
                    wanted.door.admission.raise(flight.id, wanted.priority, wanted.turn);
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
        let joined = Joined { dram: state.dram, disk: state.disk, tickets };
        assert_eq!(joined.pages(), run.len, "each page is in a tier or on its way, and in one place");
        joined
    }

    /// Waits for those pages of `run` that are on their way to `worker`, which this is, and that another one does well to wait for that misses them; no
    /// longer than [`COMES_WITHIN`]. Whether some are coming still.
    pub(crate) async fn coming(&self, segment: SegmentId, run: PageRun, (worker, other): (WorkerId, WorkerId)) -> bool {
        let (mut coming, mut come_later) = (Vec::new(), false);
        for flight in self.table.lock().get(&segment).into_iter().flatten().filter(|flight| flight.has_some_of(run)) {
            match flight.for_other(worker, other, run) {
                ForOther::Waits => coming.push((Arc::clone(flight), flight.common(run))),
                ForOther::AsksLater => come_later = true,
                ForOther::Fetches | ForOther::FetchesToo => {}
            }
        }
        if coming.is_empty() {
            return come_later;
        }
        // How they end is seen by who looks for the pages.
        let landed = join_all(coming.iter().map(|(flight, part)| flight.wait(*part, &self.means.store)));
        let ended = forebay_runtime::time::timeout(COMES_WITHIN, landed).await;
        // All of them are told that the other one waits no longer.
        let is_late = ended.is_err() && coming.iter().fold(false, |late, (flight, part)| late | flight.is_late_for(other, *part));
        is_late || come_later
    }

    /// Whether any page of a segment is on its way here.
    pub(crate) fn brings_some_of(&self, segment: SegmentId) -> bool {
        self.table.lock().contains_key(&segment)
    }

    /// Takes bytes of `run` that are at hand (a body that is open already, a payload that was written) as a flight. None,
    /// and the bytes are dropped, when some of the pages are here or on their way.
    pub(crate) fn adopt(self: &Arc<Self>, wanted: &Wanted, run: PageRun, source: Source) -> Option<Ticket> {
        let id = wanted.segment.id;
        let mut table = self.table.lock();
        let flights = table.entry(id).or_default();
        let in_flight = flights.iter().any(|flight| flight.has_some_of(run));
        if in_flight || self.means.store.state(id, run).missing != [run] {
            if flights.is_empty() {
                table.remove(&id);
            }
            return None;
        }
        Some(self.launch(flights, wanted, run, source))
    }

    fn launch(self: &Arc<Self>, flights: &mut Vec<Arc<Flight>>, wanted: &Wanted, run: PageRun, source: Source) -> Ticket {
        let id = self.next_id.fetch_add(1, Relaxed);
        let flight = Arc::new(Flight::new(id, wanted.segment.id, run, wanted.priority.class(), wanted.turn));
        if !matches!(source, Source::Fetch) {
            flight.reaches(OnTheWay::Coming);
        }
        let at = flights.partition_point(|other| other.run.start < run.start);
        flights.insert(at, Arc::clone(&flight));
        assert!(
            flights.windows(2).all(|pair| pair[0].run.end() <= pair[1].run.start),
            "a page is fetched by one flight at a time"
        );
        let mut ticket = self.ticket(&flight, run);
        ticket.first = true;
        let landing = Landing { flights: Arc::clone(self), flight: Arc::clone(&flight) };
        let wanted = wanted.clone();
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        // It is done for who asked first, whoever joins it, and as long as any of them waits: what nobody waits for is not tried again.
        let waited = Waited::by(Arc::clone(&flight.waiters));
        let task = tasks.spawn(within(
            forebay_trace::current(),
            waited.scope(async move {
                let landed = transfer(&landing.flights.means, &landing.flight, &wanted, source).await;
                landing.end(landed);
            }),
        ));
        flight.task.set(task).expect("a flight has one task");
        ticket
    }

    fn ticket(self: &Arc<Self>, flight: &Arc<Flight>, run: PageRun) -> Ticket {
        flight.waiters.fetch_add(1, Relaxed);
        Ticket { flights: Arc::clone(self), flight: Arc::clone(flight), run, first: false, let_go: false }
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
        self.flight.wait(self.run, &self.flights.means.store).await
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
        let mut table = self.flights.table.lock();
        let waiters = self.flight.waiters.fetch_sub(1, Relaxed);
        debug_assert!(waiters > 0, "a ticket is given back once");
        if waiters == 1 && !self.flight.is_nearly_here() {
            // Out of the table first: who asks from now on must start another flight.
            Flights::take_out(&mut table, &self.flight);
            if let Some(task) = self.flight.task.get() {
                task.abort();
            }
        }
    }
}

/// The end of a flight, whatever ends it: its result, a cancelled task, a panic.
struct Landing {
    flights: Arc<Flights>,
    flight: Arc<Flight>,
}

impl Landing {
    fn end(&self, landed: Landed) {
        Flights::take_out(&mut self.flights.table.lock(), &self.flight);
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
