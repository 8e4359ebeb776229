//! A plan as a function of its problem alone, cut off from the state, so that it is made beside heartbeats and holds up none.

use std::borrow::Cow;

use forebay_placement::{
    Holdings, InFlight, PlanSettings, Reason, SegmentDemand, Share, Snapshot, Storage, WorkerRoom, changes, collect, plan,
};
use forebay_types::{SegmentId, WorkerId};

/// Segments that could not be placed as they should that are named at most.
const UNSATISFIED_MAX: usize = 20;
/// Bits of a weight in the routing table: its lines are proportions.
const WEIGHT_BITS: u32 = 20;

/// What a plan is made of, apart from the state so that it can be made beside it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Problem {
    pub(super) settings: PlanSettings,
    pub(super) ids: Vec<SegmentId>,
    pub(super) segments: Vec<SegmentDemand>,
    pub(super) worker_ids: Vec<WorkerId>,
    pub(super) workers: Vec<WorkerRoom>,
    /// What each worker has, and uses of it.
    pub(super) storage: Vec<Storage>,
    /// Share of it from which garbage is collected.
    pub(super) storage_share: f64,
    /// Pairs (segment, worker), as the next two.
    pub(super) held: Vec<(u32, u32)>,
    pub(super) loading: Vec<(u32, u32)>,
    pub(super) named: Vec<(u32, u32)>,
    /// Segments that have more replicas while they are young, by number.
    pub(super) ages: Vec<(u32, Age)>,
    /// The same of decoded columns, with their own room.
    pub(super) decoded: Option<Box<Problem>>,
}

/// Until when a segment is young, and what it has then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Age {
    /// In seconds since 1970.
    pub(super) until: i64,
    /// Replicas, at least.
    pub(super) replicas: u32,
}

/// The plan, and the next step to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(super) planned: Vec<(SegmentId, Vec<(WorkerId, u32)>)>,
    /// Segments to bring to a worker, from another one or from shared storage; the most popular first.
    pub(super) load: Vec<(SegmentId, WorkerId, Option<WorkerId>)>,
    pub(super) delete: Vec<(SegmentId, WorkerId)>,
    /// To delete whoever may still ask for it there, because what is to be loaded finds no room.
    pub(super) clear: Vec<(SegmentId, WorkerId)>,
    pub(super) replicas: u64,
    pub(super) lower_bound: u64,
    pub(super) unsatisfied: Vec<(SegmentId, String)>,
}

impl Problem {
    /// Makes the plan: a function of the problem and the time of the day alone, in seconds since 1970, as long as it takes.
    pub(crate) fn solve(&self, unix_secs: u64) -> Outcome {
        let outcome = self.solve_part(unix_secs);
        if let Some(decoded) = &self.decoded { outcome.and(decoded.solve_part(unix_secs)) } else { outcome }
    }

    /// What is said of segments and workers by their numbers is of those that are there.
    fn check(&self) {
        assert_eq!(self.ids.len(), self.segments.len(), "each segment has a demand");
        let workers = (self.workers.len(), self.storage.len());
        assert_eq!(workers, (self.worker_ids.len(), self.worker_ids.len()), "each worker has its room and its storage");
        assert!(self.worker_ids.is_sorted_by(|one, next| one < next), "workers are found by their order");
        let is_there =
            |(segment, worker): &(u32, u32)| (*segment as usize) < self.segments.len() && (*worker as usize) < self.workers.len();
        let mut pairs = self.held.iter().chain(&self.loading).chain(&self.named);
        assert!(pairs.all(is_there), "what is held, loaded or named is of these segments and workers");
    }

    /// What is asked of the plan at that time.
    fn segments_at(&self, unix_secs: u64) -> Cow<'_, [SegmentDemand]> {
        let now = i64::try_from(unix_secs).unwrap_or(i64::MAX);
        let mut young = self.ages.iter().filter(|(_, age)| now < age.until).peekable();
        if young.peek().is_none() {
            return Cow::Borrowed(&self.segments);
        }
        let mut segments = self.segments.clone();
        for (place, age) in young {
            let least = &mut segments[*place as usize].minimum;
            *least = age.replicas.max(*least);
        }
        Cow::Owned(segments)
    }

    fn solve_part(&self, unix_secs: u64) -> Outcome {
        self.check();
        let segments = self.segments_at(unix_secs);
        let of = |pairs: &[(u32, u32)]| Holdings::from_pairs(self.segments.len(), pairs.iter().copied());
        let held = of(&self.held);
        let snapshot = Snapshot { segments: &segments, workers: &self.workers, held: &held };
        let plan = plan(&snapshot, &self.settings);
        let (loading, named) = (of(&self.loading), of(&self.named));
        let flight = InFlight { loading: &loading, named: &named };
        let mut changes = changes(&snapshot, &plan, &flight);
        let garbage = collect(&snapshot, &plan, &changes, &flight, &self.storage, self.storage_share);
        changes.load.sort_by_key(|load| std::cmp::Reverse(self.segments[load.segment as usize].count));
        let id = |segment: u32| self.ids[segment as usize];
        let worker = |worker: u32| self.worker_ids[worker as usize];
        let planned = (0..self.ids.len() as u32).map(|segment| {
            let shares = plan.holders(segment);
            let halvings = halvings(shares.iter().map(|share| share.count).max().unwrap_or(0));
            let weight = |share: &Share| (worker(share.worker), (share.count >> halvings) as u32);
            (id(segment), shares.iter().map(weight).collect())
        });
        Outcome {
            planned: planned.collect(),
            load: changes.load.iter().map(|load| (id(load.segment), worker(load.worker), load.from.map(worker))).collect(),
            delete: changes.delete.iter().chain(&garbage.spare).map(|(segment, from)| (id(*segment), worker(*from))).collect(),
            clear: garbage.in_the_way.iter().map(|(segment, from)| (id(*segment), worker(*from))).collect(),
            replicas: plan.replicas,
            lower_bound: plan.lower_bound,
            unsatisfied: plan
                .unsatisfied
                .iter()
                .take(UNSATISFIED_MAX)
                .map(|missing| {
                    let why = match missing.reason {
                        Reason::Capacity => "no worker with room for it has capacity left",
                        Reason::Bytes => "no worker with capacity left has room for it",
                        Reason::Domains => "there are too few hosts, or too few with room, for its number of replicas",
                    };
                    (id(missing.segment), why.to_string())
                })
                .collect(),
        }
    }
}

impl Outcome {
    /// Both.
    fn and(mut self, mut other: Self) -> Self {
        self.planned.append(&mut other.planned);
        self.load.append(&mut other.load);
        self.delete.append(&mut other.delete);
        self.clear.append(&mut other.clear);
        self.unsatisfied.append(&mut other.unsatisfied);
        Self { replicas: self.replicas + other.replicas, lower_bound: self.lower_bound + other.lower_bound, ..self }
    }
}

/// How often counts have to be halved for this one to be a weight.
fn halvings(most: u64) -> u32 {
    (u64::BITS - most.leading_zeros()).saturating_sub(WEIGHT_BITS)
}

#[cfg(test)]
mod tests {
    use forebay_placement::Policy;

    use super::*;

    /// Solves a problem of two segments and two workers after something was done to it.
    fn spoiled(spoil: impl FnOnce(&mut Problem)) {
        let demand = SegmentDemand { count: 1, bytes: 1, ..SegmentDemand::default() };
        let mut problem = Problem {
            settings: PlanSettings::of(Policy::Getafix),
            ids: vec![SegmentId(1), SegmentId(2)],
            segments: vec![demand; 2],
            worker_ids: vec![WorkerId(1), WorkerId(2)],
            workers: WorkerRoom::equal(2),
            storage: vec![Storage::default(); 2],
            storage_share: 0.8,
            held: vec![(0, 1)],
            loading: Vec::new(),
            named: Vec::new(),
            ages: Vec::new(),
            decoded: None,
        };
        spoil(&mut problem);
        problem.solve(0);
    }

    #[test]
    fn what_is_sound_passes() {
        spoiled(|_| {});
    }

    #[test]
    #[should_panic(expected = "each segment has a demand")]
    fn a_segment_without_a_demand_is_caught() {
        spoiled(|problem| problem.segments.truncate(1));
    }

    #[test]
    #[should_panic(expected = "each worker has its room and its storage")]
    fn a_worker_without_a_storage_is_caught() {
        spoiled(|problem| problem.storage.truncate(1));
    }

    #[test]
    #[should_panic(expected = "workers are found by their order")]
    fn workers_out_of_order_are_caught() {
        spoiled(|problem| problem.worker_ids.reverse());
    }

    #[test]
    #[should_panic(expected = "is of these segments and workers")]
    fn a_replica_on_a_worker_that_is_gone_is_caught() {
        spoiled(|problem| problem.loading.push((1, 2)));
    }
}
