//! The paper's worked examples and what it claims of all plans, with our plans and the optimum beside them.

use forebay_placement::{Holdings, PlanSettings, Policy, SegmentDemand, Snapshot, WorkerRoom, plan};
use serde::Serialize;

use crate::least_replicas;

/// Where in the paper, reads of each segment, workers, how they are planned, and how many replicas the paper says that takes. The text of figure
/// 6 names five segments, for which its own numbers are not right: with a sixth one of 2 reads they are. Theorem 3.4 says that Best Fit takes
/// the fewest.
const EXAMPLES: [(&str, &[u64], u32, Policy, u64); 9] = [
    ("section 3.1", &[6, 3, 2, 1], 3, Policy::FirstFit, 6),
    ("section 3.1", &[6, 3, 2, 1], 3, Policy::BestFit, 5),
    ("figure 6", &[6, 3, 3, 2, 2, 2], 3, Policy::LargestFit, 7),
    ("figure 6", &[6, 3, 3, 2, 2, 2], 3, Policy::BestFit, 6),
    ("figure 7 and table 2", &[2, 2, 5, 3], 3, Policy::GetafixPaper, 5),
    ("theorem 3.4", &[3, 3, 2, 2, 2, 2], 2, Policy::BestFit, 6),
    ("theorem 3.4", &[3, 3, 2, 2, 2, 2], 2, Policy::Repack, 6),
    ("theorem 3.4", &[4, 4, 4, 3, 3], 3, Policy::BestFit, 6),
    ("theorem 3.4", &[4, 4, 4, 3, 3], 3, Policy::Repack, 6),
];

/// A worked example.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkedFigure {
    /// Always `worked`.
    pub bench: &'static str,
    /// Where in the paper.
    pub place: &'static str,
    /// Reads of each segment.
    pub counts: &'static [u64],
    /// Workers.
    pub workers: u32,
    /// How it is planned.
    pub policy: String,
    /// Replicas of the plan.
    pub replicas: u64,
    /// What the paper says.
    pub paper: u64,
    /// The optimum.
    pub least: u64,
    /// Whether the plan has as many as the paper says.
    pub agrees: bool,
    /// The routing table: of each segment its workers, and percent of its reads.
    pub routing: Vec<Vec<(u32, u32)>>,
}

/// All worked examples.
pub fn worked() -> Vec<WorkedFigure> {
    EXAMPLES.into_iter().map(|(place, counts, workers, policy, paper)| example(place, counts, workers, policy, paper)).collect()
}

fn example(place: &'static str, counts: &'static [u64], workers: u32, policy: Policy, paper: u64) -> WorkedFigure {
    let demands: Vec<SegmentDemand> = counts.iter().map(|count| SegmentDemand { count: *count, ..Default::default() }).collect();
    let snapshot = Snapshot { segments: &demands, workers: &WorkerRoom::equal(workers), held: &Holdings::none() };
    let plan = plan(&snapshot, &PlanSettings::of(policy));
    WorkedFigure {
        bench: "worked",
        place,
        counts,
        workers,
        policy: policy.to_string(),
        replicas: plan.replicas,
        paper,
        least: least_replicas(counts, workers as usize, plan.capacity[0]).expect("what is planned fits"),
        agrees: plan.replicas == paper,
        routing: (0..counts.len() as u32).map(|segment| plan.routing(segment)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_as_the_paper_works_them_and_its_theorem_is_not() {
        let worked = worked();
        let (of_theorem, others): (Vec<_>, Vec<_>) = worked.iter().partition(|one| one.place == "theorem 3.4");
        assert_eq!(others.iter().map(|one| one.replicas).collect::<Vec<_>>(), [6, 5, 7, 6, 5]);
        assert!(others.iter().all(|one| one.agrees), "{others:?}");
        let theorem: Vec<_> = of_theorem.iter().map(|one| (one.policy.as_str(), one.replicas, one.agrees)).collect();
        assert_eq!(theorem, [("best-fit", 7, false), ("repack", 6, true), ("best-fit", 7, false), ("repack", 6, true)]);
        assert_eq!(worked.iter().map(|one| one.least).collect::<Vec<_>>(), [5, 5, 6, 6, 5, 6, 6, 6, 6]);
    }

    #[test]
    fn table_2_splits_the_hottest_segment_four_to_one() {
        let worked = worked();
        let table = worked.iter().find(|one| one.place == "figure 7 and table 2").expect("it is there");
        assert_eq!(table.routing, [vec![(2, 100)], vec![(2, 100)], vec![(0, 80), (1, 20)], vec![(1, 100)]]);
    }
}
