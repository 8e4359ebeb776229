//! Runs as a whole: the same for the same seed, as queueing theory has them, and in every way that has a name.

use forebay_simulation::{Scenario, Workload, compare, csv, named, way};

fn short(scenario: &str) -> Scenario {
    let mut place = named(scenario).expect("the scenario is known");
    (place.cluster.windows, place.cluster.warm_up) = (4, 1);
    place
}

#[test]
fn a_run_is_a_function_of_its_seed() {
    let (place, way) = (short("few"), way("getafix").expect("it is known"));
    assert_eq!(place.run(&way, 7), place.run(&way, 7));
    assert_ne!(place.run(&way, 7), place.run(&way, 8));
}

/// One worker with random arrivals and a fixed service time: M/D/1, whose mean time in the system is
/// s + s * u / (2 * (1 - u)).
#[test]
fn a_single_worker_queues_as_theory_says() {
    for utilisation in [0.3, 0.6, 0.8] {
        let mut place = Scenario::new(1, 1, utilisation, 0.99);
        place.cluster.windows = 60;
        let outcome = place.run(&way("uniform-1").expect("it is known"), 1);
        let expected = 10.0 + 10.0 * utilisation / (2.0 * (1.0 - utilisation));
        assert!((outcome.mean_ms / expected - 1.0).abs() < 0.1, "{} and {expected} ms", outcome.mean_ms);
        assert!((outcome.utilisation / utilisation - 1.0).abs() < 0.05, "{}", outcome.utilisation);
    }
}

#[test]
fn slower_workers_serve_less_and_stragglers_cost() {
    let mut place = short("light");
    let usual = place.run(&way("uniform-2").expect("it is known"), 1);
    place.cluster.stragglers = vec![forebay_simulation::Straggler { worker: 0, from: 0, until: u64::MAX, factor: 0.25 }];
    let slowed = place.run(&way("uniform-2").expect("it is known"), 1);
    assert!(slowed.p99_ms > 2.0 * usual.p99_ms, "{} and {}", slowed.p99_ms, usual.p99_ms);
}

#[test]
fn every_scenario_and_way_that_has_a_name_runs() {
    for (name, _) in forebay_simulation::NAMES {
        let mut place = short(name);
        (place.cluster.windows, place.utilisation) = (2, 0.1);
        place.cluster.warm_up = 1;
        let ways: Vec<String> = forebay_simulation::WAYS.iter().map(|(way, _)| (*way).to_string()).collect();
        let rows = compare(&place, &ways, 1).expect("all are known");
        assert_eq!(csv(&rows).lines().count(), ways.len() + 1);
        assert!(rows.iter().all(|row| row.outcome.queries > 0 && row.outcome.p99_ms >= row.outcome.p50_ms), "{name}");
    }
    assert!(way("getafix-x").is_err() && way("uniform-0").is_err() && named("nowhere").is_none());
}

#[test]
fn what_is_recorded_is_repeated_at_the_utilisation_asked_for() {
    let log: String = (0..200).map(|n| format!("{}.5,lake/part-{}.parquet,1000\n", n, n * n % 17)).collect();
    let mut place = short("paper");
    place.workload = Workload::Recorded(forebay_simulation::Recorded::parse(&log).expect("it is a log"));
    place.cluster.workers = 4;
    let outcome = place.run(&way("getafix").expect("it is known"), 1);
    assert!((outcome.utilisation - 0.7).abs() < 0.05, "{}", outcome.utilisation);
}
