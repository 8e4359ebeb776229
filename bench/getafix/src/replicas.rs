//! Bar of the planner's quality: replicas of random instances against Best Fit, the lower bound and the optimum.

use forebay_bench_harness::cpu::ThreadTime;
use forebay_placement::{Holdings, PlanSettings, Policy, SegmentDemand, Snapshot, WorkerRoom, plan};
use serde::Serialize;

use crate::{Dice, Shape, counts, least_replicas};

/// Random instances of one kind.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ReplicasFigure {
    /// Always `replicas`.
    pub bench: &'static str,
    /// How counts fall on segments.
    pub shape: String,
    /// Accesses a segment on average.
    pub accesses_per_segment: usize,
    /// Instances.
    pub instances: usize,
    /// Replicas beyond one a segment on average: by Best Fit.
    pub extra_best_fit: f64,
    /// By the repacking planner.
    pub extra_ours: f64,
    /// By the lower bound that it reports.
    pub extra_lower_bound: f64,
    /// Instances in which ours has more replicas than Best Fit; the bar is 0.
    pub above_best_fit: usize,
    /// Instances of which the optimum is known: by dynamic programming, or since the bound is met.
    pub closed: usize,
    /// Of these, those by dynamic programming.
    pub closed_by_search: usize,
    /// Of the closed ones, those in which ours has no more replicas than the optimum.
    pub optimal: usize,
    /// Of the closed ones, those in which Best Fit hasn't.
    pub optimal_best_fit: usize,
    /// CPU time of our plan in milliseconds, on average.
    pub plan_ms: f64,
}

/// `instances` random ones of each kind, with 10 to 60 segments on 3 to 15 workers; the optimum is searched for up to
/// `search_max` segments.
pub fn replicas(instances: usize, search_max: usize, seed: u64) -> Vec<ReplicasFigure> {
    let mut dice = Dice::new(seed);
    let kinds = [10, 200].into_iter().flat_map(|accesses| Shape::ALL.map(|shape| (accesses, shape)));
    kinds.map(|(accesses, shape)| kind(shape, accesses, instances, search_max, &mut dice)).collect()
}

fn kind(shape: Shape, accesses: usize, instances: usize, search_max: usize, dice: &mut Dice) -> ReplicasFigure {
    let mut figure = ReplicasFigure {
        bench: "replicas",
        shape: shape.name(),
        accesses_per_segment: accesses,
        instances,
        ..ReplicasFigure::default()
    };
    let share = 1.0 / instances as f64;
    for _ in 0..instances {
        let segments = dice.between(10, 60) as usize;
        let workers = WorkerRoom::equal(dice.between(3, 15) as u32);
        let counts = counts(shape, segments, segments * accesses, dice);
        let demands: Vec<SegmentDemand> =
            counts.iter().map(|count| SegmentDemand { count: *count, ..Default::default() }).collect();
        let snapshot = Snapshot { segments: &demands, workers: &workers, held: &Holdings::none() };
        let best_fit = plan(&snapshot, &PlanSettings::of(Policy::BestFit));
        let clock = ThreadTime::now();
        let ours = plan(&snapshot, &PlanSettings::of(Policy::Repack));
        figure.plan_ms += clock.elapsed().as_secs_f64() * 1e3 * share;
        let counted = counts.iter().filter(|count| **count > 0).count();
        let extra = |replicas: u64| (replicas as f64 - counted as f64) * share;
        figure.extra_best_fit += extra(best_fit.replicas);
        figure.extra_ours += extra(ours.replicas);
        figure.extra_lower_bound += extra(ours.lower_bound);
        figure.above_best_fit += usize::from(ours.replicas > best_fit.replicas);
        let optimum = if ours.replicas == ours.lower_bound {
            Some(ours.replicas)
        } else if counted <= search_max {
            figure.closed_by_search += 1;
            least_replicas(&counts, workers.len(), ours.capacity[0])
        } else {
            None
        };
        figure.closed += usize::from(optimum.is_some());
        figure.optimal += usize::from(optimum.is_some_and(|optimum| ours.replicas <= optimum));
        figure.optimal_best_fit += usize::from(optimum.is_some_and(|optimum| best_fit.replicas <= optimum));
    }
    figure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repacked_plans_are_optimal_where_the_optimum_is_known() {
        let (mut closed, mut optimal) = (0, 0);
        let mut dice = Dice::new(3);
        for round in 0..200 {
            let shape = Shape::ALL[round % 5];
            let segments = dice.between(4, 12) as usize;
            let workers = WorkerRoom::equal(dice.between(2, 6) as u32);
            let counts = counts(shape, segments, segments * [10, 200][round % 2], &mut dice);
            let demands: Vec<SegmentDemand> =
                counts.iter().map(|count| SegmentDemand { count: *count, ..Default::default() }).collect();
            let snapshot = Snapshot { segments: &demands, workers: &workers, held: &Holdings::none() };
            let best_fit = plan(&snapshot, &PlanSettings::of(Policy::BestFit));
            let settings = PlanSettings { iterations: 1000, ..PlanSettings::of(Policy::Repack) };
            let ours = plan(&snapshot, &settings);
            let optimum = least_replicas(&counts, workers.len(), ours.capacity[0]).expect("it fits");
            assert!(ours.lower_bound <= optimum, "{counts:?} on {}: the bound is too high", workers.len());
            assert!(optimum <= ours.replicas && ours.replicas <= best_fit.replicas, "{counts:?} on {}", workers.len());
            closed += 1;
            optimal += usize::from(ours.replicas == optimum);
        }
        assert!(optimal * 100 >= closed * 99, "{optimal} of {closed}");
    }
}
