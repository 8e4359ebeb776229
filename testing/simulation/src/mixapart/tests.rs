//! MixApart's example, and where tasks run.

use super::bars::crossing_at;
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

#[test]
fn the_less_a_job_reads_a_second_the_less_of_its_input_has_to_be_cached() {
    let found = crossing_at(1.0, true, 1);
    assert!((0.7..0.85).contains(&found), "{found}");
    assert!(crossing_at(6.0, true, 1) <= 0.0, "the link is faster than all slots read");
    assert!(crossing_at(1.0, false, 1) > found, "fetched by tasks more of it has to be");
}
