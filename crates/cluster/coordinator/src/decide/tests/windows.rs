//! What reports of counting periods come to, what is planned between them, and what is shown of it all.

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

/// Workers of which each has read so many segments of its own and holds them; what is to be planned of it is not planned yet.
fn crowd(count: u64, each: u32) -> State {
    let (mut state, now, window) = workers(count);
    for worker in 1..=count {
        let uses = (0..each).map(|number| read(&format!("t/{worker}/{number}"), number % 1000 + 1, MIB)).collect();
        let report = WindowReport { window, lasted: at(60.0), uses, ..WindowReport::default() };
        let (_, reply) = ask(&mut state, now, MemberRequest::Heartbeat(Heartbeat { window: Some(report), ..blank(worker) }));
        assert!(matches!(reply, Some(ControlReply::Beat { .. })), "{reply:?}");
    }
    state.decide(at(now + 0.1), Event::Tick);
    state
}

#[test]
fn of_many_segments_the_most_popular_are_shown_and_all_are_counted() {
    let state = crowd(20, 100);
    let status = state.placement_status(50);
    assert_eq!((status.segments_known, status.replicas_held, status.replicas_loading), (2000, 2000, 0));
    let shown: Vec<f64> = status.segments.iter().map(|segment| segment.popularity).collect();
    // Each of the twenty has one that was read a hundred times, one less, and so on.
    let expected: Vec<f64> = (0..50u32).map(|place| f64::from(100 - place / 20)).collect();
    assert_eq!(shown, expected);
    assert!(status.segments.iter().all(|segment| segment.held.len() == 1 && segment.bytes_read > 0));
    assert_eq!(state.placement_status(0).segments.len(), 0);
}

/// With the state locked: nobody else is answered meanwhile. Half of them are placed, the others are where hashing puts them.
#[test]
#[ignore = "an optimised build does it, in make test-console"]
fn a_million_segments_are_looked_through_within_200_ms() {
    let state = crowd(100, 10_000);
    let look = || {
        let started = forebay_runtime::now();
        let status = state.placement_status(500);
        assert_eq!((status.segments.len(), status.segments_known), (500, 500_000));
        started.elapsed()
    };
    let took = (0..5).map(|_| look()).min().unwrap();
    println!("a million segments were looked through in {took:?}");
    assert!(took < Duration::from_millis(200), "{took:?}");
}
