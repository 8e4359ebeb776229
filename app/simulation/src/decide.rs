//! The bridge from the model to the decision code: states of the model go in as snapshots, plans come out as its steps.

use std::cmp::Reverse;
use std::time::Duration;

use forebay_placement::{
    Holdings, InFlight, Load, Plan, PlanSettings, Policy, Popularity, SegmentDemand, Snapshot, Speeds, Storage, Usage, Weigh,
    WorkerRoom, changes, collect, holder, plan,
};
use forebay_types::{RouteKey, SegmentId, WorkerId};

use crate::cluster::{ClusterSettings, Concurrent, Has, Worker};
use crate::workload::Micros;

/// What a cluster tells at the end of a window.
pub(crate) struct State<'a> {
    pub(crate) now: Micros,
    /// Segments that there are.
    pub(crate) known: usize,
    /// Accesses of each segment in the window.
    pub(crate) counts: &'a [u64],
    pub(crate) concurrency: Option<&'a [Concurrent]>,
    pub(crate) workers: &'a [Worker],
    pub(crate) cluster: &'a ClusterSettings,
}

/// What the cluster is to do, in this order. Pairs are (segment, worker).
#[derive(Debug, Default)]
pub(crate) struct Steps {
    pub(crate) collect: Vec<(u32, u32)>,
    pub(crate) delete: Vec<(u32, u32)>,
    pub(crate) load: Vec<Load>,
    /// Replicas of the plan.
    pub(crate) planned: u64,
}

/// How a cluster is led.
#[derive(Clone, Debug, PartialEq)]
pub struct Leading {
    /// How plans are made.
    pub plan: PlanSettings,
    /// Replicas of each segment at least.
    pub minimum: u32,
    /// Whether a new segment starts with the popularity of the previous newest one, and is planned for at once.
    pub fresh_popularity: bool,
    /// Whether the windows of before count less where the newest one contradicts them.
    pub follow_shifts: bool,
    /// Share of a worker's room from which garbage is collected; none: it isn't.
    pub garbage_from: Option<f64>,
    /// Whether replicas stay as long as a client's table may name them.
    pub make_before_break: bool,
    /// What plans weigh.
    pub weigh: Weigh,
    /// Whether workers' measured speeds are planned with; otherwise they count as equal.
    pub measured_speed: bool,
}

impl Leading {
    /// By a policy, with everything that belongs to it.
    pub fn by(policy: Policy) -> Self {
        let own = policy == Policy::Getafix;
        Self {
            plan: PlanSettings::of(policy),
            minimum: 1,
            fresh_popularity: own,
            follow_shifts: own,
            garbage_from: Some(0.8),
            make_before_break: true,
            weigh: policy.weighs(),
            measured_speed: own,
        }
    }
}

/// The coordinator's part: it keeps popularity and the last plan, and asks `forebay-placement` for everything else.
pub(crate) struct Planner {
    leading: Leading,
    workers: Vec<WorkerId>,
    rooms: Vec<WorkerRoom>,
    speeds: Speeds,
    popularity: Popularity,
    segments: usize,
    window: u64,
    plan: Plan,
    /// The tables that clients may go by, with the time each was made.
    tables: Vec<(Micros, Holdings)>,
    /// How long after it was replaced one of them may go by a table.
    in_use: Micros,
}

impl Planner {
    pub(crate) fn new(leading: Leading, cluster: &ClusterSettings, segments: usize) -> Self {
        let bytes = cluster.room.map_or(u64::MAX, |room| room as u64);
        let rooms = WorkerRoom::equal(cluster.workers as u32).into_iter().map(|room| WorkerRoom { bytes, ..room });
        Self {
            leading,
            workers: (0..cluster.workers as u64).map(WorkerId).collect(),
            rooms: rooms.collect(),
            speeds: Speeds::default(),
            popularity: Popularity::new(0),
            segments,
            window: 0,
            plan: Plan::default(),
            tables: Vec::new(),
            in_use: cluster.in_use(),
        }
    }

    pub(crate) fn needs_concurrency(&self) -> bool {
        matches!(self.leading.plan.policy, Policy::Scarlett { .. })
    }

    /// Where a segment is read from that no table names: its rendezvous holder.
    pub(crate) fn home(&self, segment: u32) -> u32 {
        let route = RouteKey(u64::from(segment).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        holder(route, &self.workers).map_or(0, |worker| worker.0 as u32)
    }

    /// What is held at the start, before anything is known of popularity: two replicas of each segment, which a warm-up
    /// is enough for to become what the policy wants; one where room is scarce.
    pub(crate) fn initial(&mut self, known: usize) -> Vec<(u32, u32)> {
        let scarce = self.rooms.iter().any(|room| room.bytes < u64::MAX);
        let policy = match self.leading.plan.policy {
            policy @ Policy::Uniform { .. } => policy,
            _ => Policy::Uniform { replicas: if scarce { 1.0 } else { 2.0 } },
        };
        let demands: Vec<SegmentDemand> = (0..known as u32).map(|at| demand(at, 1, 1)).collect();
        let held = Holdings::none();
        let settings = PlanSettings { policy, ..self.leading.plan };
        self.plan = plan(&Snapshot { segments: &demands, workers: &self.rooms, held: &held }, &settings);
        self.plan.holdings().pairs().collect()
    }

    /// A segment has come into being: one worker takes it at once, unasked, and if it starts with the popularity of the
    /// newest one before it, those that this calls for do too.
    pub(crate) fn fresh(&mut self, state: &State<'_>, segment: u32) -> Steps {
        let mut steps = Steps::default();
        let has_one_before = self.leading.fresh_popularity && segment > 0;
        if has_one_before && self.popularity.start_like(name(segment), name(segment - 1)) {
            steps = self.decide(state);
        }
        let home = self.home(segment);
        if !steps.load.iter().any(|load| (load.segment, load.worker) == (segment, home)) {
            steps.load.push(Load { segment, worker: home, from: None });
        }
        steps
    }

    /// A window has ended.
    pub(crate) fn plan(&mut self, state: &State<'_>) -> Steps {
        self.window += 1;
        self.popularity.close(self.window);
        for (segment, count) in (0..).zip(state.counts).filter(|(_, count)| **count > 0) {
            self.popularity.add(self.window, name(segment), usage(*count, state.cluster.work(segment)));
        }
        if self.leading.follow_shifts {
            self.popularity.follow();
        }
        if self.leading.measured_speed {
            self.measure(state.workers, state.cluster.window);
        }
        self.decide(state)
    }

    fn decide(&mut self, state: &State<'_>) -> Steps {
        let mut demands: Vec<SegmentDemand> =
            (0..state.known as u32).map(|at| demand(at, self.weight(at), self.leading.minimum)).collect();
        if let Some(concurrency) = state.concurrency {
            for (demand, concurrent) in demands.iter_mut().zip(concurrency) {
                (demand.concurrent_peak, demand.concurrent_mean) = (concurrent.peak, concurrent.mean);
            }
        }
        let (held, loading) = holdings(state.workers);
        let named = self.names(state.now);
        let snapshot = Snapshot { segments: &demands, workers: &self.rooms, held: &held };
        let plan = plan(&snapshot, &self.leading.plan);
        let flight = InFlight { loading: &loading, named: &named };
        let changes = changes(&snapshot, &plan, &flight);
        let collect = match (self.leading.garbage_from, state.cluster.room) {
            (Some(from), Some(room)) => {
                let storage = state.workers.iter().map(|worker| Storage { limit: room as u64, used: worker.replicas as u64 });
                let garbage = collect(&snapshot, &plan, &changes, &flight, &storage.collect::<Vec<_>>(), from);
                [garbage.spare, garbage.in_the_way].concat()
            }
            _ => Vec::new(),
        };
        let mut load = changes.load;
        if state.cluster.giving.is_some() {
            // Only some are sent at once.
            load.sort_by_key(|load| Reverse(demands[load.segment as usize].count));
        }
        let steps = Steps { planned: plan.replicas, delete: changes.delete, load, collect };
        self.plan = plan;
        steps
    }

    fn weight(&self, segment: u32) -> u64 {
        self.leading.weigh.of(self.popularity.of(name(segment)))
    }

    /// Speeds from what workers did in how much time.
    fn measure(&mut self, workers: &[Worker], window: Micros) {
        for (id, worker) in self.workers.iter().zip(workers) {
            self.speeds.measure(
                *id,
                Duration::from_micros(window),
                Duration::from_micros(worker.served_time),
                worker.served_work,
            );
        }
        for (room, share) in self.rooms.iter_mut().zip(self.speeds.shares(&self.workers)) {
            room.speed = share;
        }
    }

    /// Replicas that some client's table may name: those of the last table, and of tables that are still in use.
    fn names(&mut self, now: Micros) -> Holdings {
        if !self.leading.make_before_break {
            return Holdings::none();
        }
        // A table is in force until the next one is made, and in use for longer.
        let over = self.tables.iter().skip(1).take_while(|(made, _)| made + self.in_use <= now).count();
        self.tables.drain(..over);
        Holdings::from_pairs(self.segments, self.tables.iter().flat_map(|(_, named)| named.pairs()))
    }

    /// The routing table: the plan's holders that hold, in their proportions; all that hold where none of them does.
    pub(crate) fn routes(&mut self, now: Micros, workers: &[Worker], holders: &[Vec<u32>]) -> Vec<Vec<(u32, u32)>> {
        let routes = (0..).zip(holders).map(|(segment, holders)| {
            let has = |worker: u32| workers[worker as usize].has[segment as usize] == Has::All;
            let mut routes = self.plan.routing(segment);
            routes.retain(|(worker, _)| has(*worker));
            if routes.is_empty() {
                routes = holders.iter().filter(|worker| has(**worker)).map(|worker| (*worker, 1)).collect();
            }
            routes
        });
        let routes: Vec<Vec<(u32, u32)>> = routes.collect();
        let named = (0..).zip(&routes).flat_map(|(segment, routes)| routes.iter().map(move |(worker, _)| (segment, *worker)));
        self.tables.push((now, Holdings::from_pairs(self.segments, named)));
        routes
    }
}

/// What workers report of so many accesses of so much work each: one of 1 gives 16 MiB.
fn usage(accesses: u64, work: f64) -> Usage {
    let accesses = accesses as f64;
    let bytes = (accesses * work * 16_777_216.0 - accesses * Weigh::STEP_BYTES).max(0.0);
    Usage { accesses, reads: accesses, bytes, service_us: 0.0 }
}

/// A segment's name where the decisions want one.
fn name(segment: u32) -> SegmentId {
    SegmentId(u128::from(segment))
}

fn demand(order: u32, count: u64, minimum: u32) -> SegmentDemand {
    SegmentDemand { count, bytes: 1, minimum, order, ..SegmentDemand::default() }
}

/// What is held, and what is on its way or to be asked for.
fn holdings(workers: &[Worker]) -> (Holdings, Holdings) {
    let segments = workers.first().map_or(0, |worker| worker.has.len());
    let pairs = |which: fn(&Has) -> bool| {
        (0..).zip(workers).flat_map(move |(at, worker)| {
            (0..).zip(&worker.has).filter(move |(_, has)| which(has)).map(move |(segment, _)| (segment, at))
        })
    };
    let ordered = workers.iter().flat_map(|worker| worker.ordered.iter().map(|load| (load.segment, load.worker)));
    let held = Holdings::from_pairs(segments, pairs(|has| *has == Has::All));
    (held, Holdings::from_pairs(segments, pairs(|has| matches!(has, Has::Loading(_))).chain(ordered)))
}
