//! What the model of a cluster is made of: workers with queues, links that segments are loaded over, clients that poll.

mod concurrency;
mod routing;
mod worker;

use crate::workload::Micros;

pub(crate) use concurrency::{Concurrent, InFlight};
pub(crate) use routing::{Client, Table};
pub use routing::{Knowledge, Routing};
pub(crate) use worker::{Has, Worker};

/// The model of a cluster: what the papers leave to hardware. The defaults are those of a reproduction of Getafix.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterSettings {
    /// Workers; each is one server with a queue, first in, first out.
    pub workers: usize,
    /// Clients; each has its own view of the routing table and of queues.
    pub clients: usize,
    /// Time that one access takes on a worker of speed 1.
    pub service: Micros,
    /// Work of an access to each segment, in multiples of `service`: repeated over the segments, 1 for all when empty.
    pub work: Vec<f64>,
    /// Speed of each worker; 1 for those past the end.
    pub speeds: Vec<f64>,
    /// Times in which a worker is slower than it should be.
    pub stragglers: Vec<Straggler>,
    /// A counting period, and the time between two plans.
    pub window: Micros,
    /// Time between two polls of the routing table by a client.
    pub poll: Micros,
    /// How old the tables of clients are: what has changed reaches all of them so long after, and nobody polls. None: each
    /// has what its last poll brought.
    pub table_age: Option<Micros>,
    /// How long a replica is kept after a table has named it; none: as long as a client may go by that table.
    pub named: Option<Micros>,
    /// Time that a worker needs to load a segment, however many it loads.
    pub load: Micros,
    /// Work of a worker that gives one which is told to load it a segment, in multiples of `service`: it takes its turn among what readers are
    /// sent. None: it comes over links of its own, in `load`.
    pub giving: Option<f64>,
    /// Segments and the workers that have them at the start; empty: a replica or two of each, evenly.
    pub held: Vec<(u32, u32)>,
    /// Time that a worker needs to answer an access to a segment that it has no room for, from shared storage.
    pub pass_through: Micros,
    /// A question and its answer on the network.
    pub round_trip: Micros,
    /// Segments that a worker has room for.
    pub room: Option<usize>,
    /// Length of a run, in windows.
    pub windows: u64,
    /// Windows at the start that figures leave out.
    pub warm_up: u64,
}

/// A worker that is slower for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Straggler {
    /// Which.
    pub worker: usize,
    /// From when.
    pub from: Micros,
    /// Until when.
    pub until: Micros,
    /// What its speed is multiplied by.
    pub factor: f64,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self {
            workers: 15,
            clients: 16,
            service: 10_000,
            work: Vec::new(),
            speeds: Vec::new(),
            stragglers: Vec::new(),
            window: 60_000_000,
            poll: 20_000_000,
            table_age: None,
            named: None,
            load: 2_000_000,
            giving: None,
            held: Vec::new(),
            pass_through: 100_000,
            round_trip: 100,
            room: None,
            windows: 40,
            warm_up: 8,
        }
    }
}

impl ClusterSettings {
    /// The speed of a worker when it isn't a straggler.
    pub fn speed(&self, worker: usize) -> f64 {
        self.speeds.get(worker).copied().unwrap_or(1.0)
    }

    /// Work of an access to a segment, in multiples of `service`.
    pub(crate) fn work(&self, segment: u32) -> f64 {
        let place = (segment as usize).checked_rem(self.work.len());
        place.map_or(1.0, |place| self.work[place])
    }

    /// Time that an access to a segment takes that a worker begins with at `at`.
    pub(crate) fn service_at(&self, worker: usize, segment: u32, at: Micros) -> Micros {
        let slowed = self.stragglers.iter().filter(|slow| slow.worker == worker && (slow.from..slow.until).contains(&at));
        let speed = slowed.fold(self.speed(worker), |speed, slow| speed * slow.factor);
        (self.service as f64 * self.work(segment) / speed) as Micros
    }

    /// Accesses a second that all workers serve together, when all segments are read equally often.
    pub fn capacity(&self) -> f64 {
        let work = if self.work.is_empty() { 1.0 } else { self.work.iter().sum::<f64>() / self.work.len() as f64 };
        (0..self.workers).map(|worker| self.speed(worker)).sum::<f64>() * 1e6 / (self.service as f64 * work)
    }

    /// How long after it was replaced a client is taken to go by a table.
    pub(crate) fn in_use(&self) -> Micros {
        self.named.or(self.table_age).unwrap_or(self.poll)
    }

    /// When a run ends.
    pub fn end(&self) -> Micros {
        self.window * self.windows
    }
}
