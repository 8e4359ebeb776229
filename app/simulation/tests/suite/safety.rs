//! Decisions under an oracle: with one seed a run, printed when it fails.

use forebay_simulation::{Scenario, Workload, named, way};

use crate::oracle::Oracle;

/// A shorter run of a scenario, which the oracle watches in each of the ways.
fn watched(scenario: &str, ways: &[&str], seeds: std::ops::RangeInclusive<u64>) -> Vec<Oracle> {
    let mut seen = Vec::new();
    for seed in seeds {
        for name in ways {
            eprintln!("scenario {scenario}, way {name}, seed {seed}");
            let mut place: Scenario = named(scenario).expect("the scenario is known");
            (place.cluster.windows, place.cluster.warm_up) = (4, 1);
            place.utilisation = place.utilisation.min(0.4);
            if let Workload::Synthetic(load) = &mut place.workload
                && load.fresh_most > 0
            {
                load.fresh_every = Some(22_000_000);
            }
            let mut oracle = Oracle::new(place.cluster.poll);
            let outcome = place.watch(&way(name).expect("the way is known"), seed, &mut oracle);
            oracle.ended();
            assert!(outcome.queries > 0 && oracle.answered as u64 >= outcome.queries);
            seen.push(oracle);
        }
    }
    seen
}

#[test]
fn nothing_is_lost_while_plans_change() {
    let seen = watched("paper", &["getafix", "getafix-2", "getafix-paper"], 1..=1);
    assert!(seen.iter().any(|oracle| oracle.loads > 20 && oracle.deletions > 20), "plans must change for this to say anything");
}

#[test]
fn nothing_is_lost_where_segments_are_split() {
    watched("hot", &["getafix", "getafix-paper", "scarlett"], 3..=3);
}

#[test]
fn nothing_is_lost_while_new_segments_come() {
    let seen = watched("fresh", &["getafix", "getafix-paper", "uniform-2"], 5..=5);
    assert!(seen.iter().all(|oracle| oracle.loads > 0));
}

#[test]
fn nothing_is_lost_with_slow_workers() {
    watched("unequal", &["getafix", "getafix-2"], 7..=7);
    watched("straggler", &["getafix"], 8..=8);
}

#[test]
fn nothing_is_lost_where_room_is_scarce() {
    let seen = watched("room", &["getafix", "getafix-paper", "getafix-without-garbage"], 9..=9);
    assert!(seen.iter().any(|oracle| oracle.collected > 0), "garbage must be collected for this to say anything");
}
