//! MixApart's example, and where tasks run.

use super::{MixApartSettings, mixapart, sustained};

/// Figure 1's cluster at a tenth: 20 s tasks of 64 MB, 80 % of it cached, behind 1 Gbit/s.
fn tenth() -> MixApartSettings {
    MixApartSettings { bandwidth_bytes_per_sec: 1e9 / 8.0, job_tasks_max: 10, secs: 2_000.0, ..MixApartSettings::default() }
}

#[test]
fn the_papers_example_sustains_the_models_number_of_tasks() {
    let found = sustained(&tenth());
    let ratio = found.simulated / found.model;
    assert!((0.95..=1.05).contains(&ratio), "{found:?}");
}

#[test]
fn a_run_is_a_function_of_its_settings() {
    let settings = MixApartSettings { offered_tasks: 100.0, workers: 100, secs: 400.0, ..tenth() };
    assert_eq!(mixapart(&settings), mixapart(&settings));
}

#[test]
fn with_tasks_waiting_they_run_where_their_input_is() {
    let settings = MixApartSettings { offered_tasks: 10.0, workers: 4, slots: 2, ..tenth() };
    let outcome = mixapart(&settings);
    assert!(outcome.local >= 0.95, "{outcome:?}");
}
