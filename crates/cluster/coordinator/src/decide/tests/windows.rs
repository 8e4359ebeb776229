//! What reports of counting periods come to, and what is planned between them.

use forebay_protocol::WindowReport;

use super::placement::{MIB, beat_with, key_at_home, read, report, tick, two_workers, workers};
use super::*;

/// Popularity of the most popular segment.
fn popularity(state: &State) -> f64 {
    state.placement_status(1).segments.first().map_or(0.0, |segment| segment.popularity)
}

#[test]
fn reports_count_once_and_less_when_they_come_late() {
    let (mut state, now, window) = two_workers();
    for _ in 0..3 {
        report(&mut state, now, 1, window, vec![read("t/a", 100, MIB)]);
    }
    assert_eq!(popularity(&state), 100.0, "an answer that was lost is asked for again");
    report(&mut state, now, 1, window + 7, vec![read("t/a", 1000, MIB)]);
    assert_eq!(popularity(&state), 100.0, "there was no such window yet");
    report(&mut state, now, 2, window, vec![]);
    // The window closes twice more before the second worker tells of the first one.
    let mut at = now;
    while at < now + 121.0 {
        at += 1.0;
        for worker in 1..=2 {
            beat_with(&mut state, at, blank(worker));
        }
        tick(&mut state, at);
    }
    assert_eq!(popularity(&state), 25.0, "half of it is left after each window");
    report(&mut state, at, 2, window + 1, vec![read("t/a", 100, MIB)]);
    assert_eq!(popularity(&state), 75.0, "and half of what comes a window late");
    report(&mut state, at, 2, window, vec![read("t/a", 100, MIB)]);
    assert_eq!(popularity(&state), 75.0, "an older report than the last one is a repeated one");
}

#[test]
fn what_was_not_counted_is_told() {
    let (mut state, now, window) = two_workers();
    let told = WindowReport { window, lasted: at(60.0), reads_left_out: 7, ..WindowReport::default() };
    beat_with(&mut state, now, Heartbeat { window: Some(told), ..blank(1) });
    let unsatisfied = state.placement_status(1).unsatisfied;
    assert!(unsatisfied.iter().any(|what| what.starts_with("7 reads")), "{unsatisfied:?}");
}

#[test]
fn a_worker_that_comes_or_goes_is_planned_for_before_the_window_ends() {
    let (mut state, now, window) = workers(3);
    for worker in 1..=3 {
        report(&mut state, now, worker, window, vec![read(&key_at_home(1, 3), 100, MIB)]);
    }
    tick(&mut state, now + 0.1);
    let plans = |state: &State| state.placement_status(1).runs;
    let before = plans(&state);
    // The third one is heard of no more.
    let mut at = now;
    while at < now + 30.0 {
        at += 1.0;
        for worker in 1..=2 {
            beat_with(&mut state, at, blank(worker));
        }
        tick(&mut state, at);
    }
    assert_eq!(plans(&state), before + 1, "once its lease is over");
    register(&mut state, at, 4);
    tick(&mut state, at + 1.1);
    assert_eq!(plans(&state), before + 2);
}
