//! The papers' worked examples.

use forebay_placement::{Plan, PlanSettings, Policy};

use crate::support::{layout, of_counts, planned};

fn of(policy: Policy, counts: &[u64], workers: u32) -> Plan {
    planned(&of_counts(counts), workers, &PlanSettings::of(policy))
}

#[test]
fn getafix_section_3_1_first_fit_takes_six_replicas() {
    let plan = of(Policy::FirstFit, &[6, 3, 2, 1], 3);
    assert_eq!(layout(&plan), [vec![(0, 4)], vec![(0, 1), (1, 3)], vec![(0, 1), (2, 2), (3, 1)]]);
    assert_eq!((plan.replicas, plan.capacity), (6, vec![4, 4, 4]));
}

#[test]
fn getafix_section_3_1_best_fit_takes_five_replicas() {
    let plan = of(Policy::BestFit, &[6, 3, 2, 1], 3);
    assert_eq!(layout(&plan), [vec![(0, 4)], vec![(1, 3), (3, 1)], vec![(0, 2), (2, 2)]]);
    assert_eq!((plan.replicas, plan.lower_bound), (5, 5));
}

#[test]
fn getafix_figure_6_largest_fit_takes_seven_replicas_where_six_do() {
    let counts = [6, 3, 3, 2, 2, 2];
    assert_eq!(of(Policy::LargestFit, &counts, 3).replicas, 7);
    assert_eq!(of(Policy::BestFit, &counts, 3).replicas, 6);
}

#[test]
fn getafix_table_2_routes_in_proportion_to_the_plan() {
    let plan = of(Policy::GetafixPaper, &[2, 2, 5, 3], 3);
    assert_eq!(plan.routing(0), [(2, 100)]);
    assert_eq!(plan.routing(1), [(2, 100)]);
    assert_eq!(plan.routing(2), [(0, 80), (1, 20)]);
    assert_eq!(plan.routing(3), [(1, 100)]);
}
