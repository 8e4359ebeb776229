//! Replicas that follow popularity (Getafix, sections 3 and 4): counts come in by windows, a plan goes out as orders to
//! workers and as a routing table for clients.

mod checkpoint;
mod filled;
mod fresh;
mod orders;
mod posed;
mod problem;
mod replicas;
mod rooms;
mod round;
mod routes;
mod segments;
mod status;
mod window;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use forebay_placement::{Datasets, Popularity, Speeds};
use forebay_types::{RouteKey, SegmentId, WorkerId};

pub(crate) use checkpoint::Checkpoint;
pub(crate) use problem::{Outcome, Problem};

use crate::PlacementSettings;
use fresh::Arrivals;
use orders::Orders;
use routes::Routes;
use segments::Tracked;
use status::Last;
use window::Closing;

/// Segments that are placed at most; the least popular are left to rendezvous hashing.
const TRACKED_MAX: usize = 500_000;

/// What placement knows. Who holds what is soft state: workers say it.
#[derive(Debug, Default)]
pub(super) struct Placement {
    settings: PlacementSettings,
    /// Workers that count: live ones, and after a restart those that may come back.
    workers: BTreeSet<WorkerId>,
    popularity: Popularity,
    segments: BTreeMap<RouteKey, Tracked>,
    by_id: HashMap<SegmentId, RouteKey>,
    /// Which objects are one dataset.
    datasets: Datasets,
    arrivals: Arrivals,
    routes: Routes,
    orders: Orders,
    speeds: Speeds,
    period: Period,
    plans: Plans,
}

/// The counting of reads.
#[derive(Debug, Default)]
struct Period {
    /// The one that closed last.
    number: u64,
    opened: Duration,
    closing: Option<Closing>,
    /// The last one that each worker has reported.
    counted: BTreeMap<WorkerId, u64>,
    /// Reads of the one before that were of more segments than are counted.
    left_out: u64,
    /// Whether a worker was lost in this one, with what it had counted.
    lost_counts: bool,
}

#[derive(Debug, Default)]
struct Plans {
    seed: u64,
    /// Since when one is being made.
    under_way: Option<Duration>,
    began: Duration,
    /// Whether one should be made before the window ends.
    wanted: bool,
    last: Last,
}

impl Placement {
    pub(super) fn new(settings: PlacementSettings, epoch: u64, seed: u64, presumed: &[WorkerId]) -> Self {
        Self {
            settings,
            workers: presumed.iter().copied().collect(),
            // The epoch stands above, as in views.
            routes: Routes::new((epoch << 32) + 1),
            period: Period { number: epoch << 32, ..Period::default() },
            plans: Plans { seed, ..Plans::default() },
            ..Self::default()
        }
    }

    /// Forgets segments, routes and orders; these workers count. Windows and routes go on with numbers that nobody has seen.
    pub(super) fn begin_anew(&mut self, now: Duration, workers: BTreeSet<WorkerId>) {
        let mut anew = Self::new(self.settings.clone(), 0, self.plans.seed, &[]);
        anew.workers = workers;
        anew.routes = Routes::new(self.routes.version + 1);
        anew.period.number = self.period.number + 1;
        anew.popularity = Popularity::new(anew.period.number);
        (anew.period.opened, anew.plans.began) = (now, self.plans.began);
        *self = anew;
    }

    /// How often clients ask for news.
    pub(super) fn poll(&self) -> Duration {
        self.settings.poll
    }

    /// How long after a change a client may still go by the table of before it.
    fn named(&self) -> Duration {
        self.settings.poll * 2 + Duration::from_secs(1)
    }
}
