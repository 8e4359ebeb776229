//! What reports of counting periods come to, what is planned between them, and what is shown of it all.

use forebay_protocol::{FilledPart, SegmentUse, WindowReport};
use forebay_types::{Cell, ObjectVersion};

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

#[test]
fn a_slow_worker_was_given_as_much_as_by_its_speed_though_there_was_little_to_do() {
    let (mut state, now, window) = two_workers();
    for (worker, busy_bytes) in [(1, 60 * MIB), (2, 30 * MIB)] {
        let uses = (0..10).map(|number| read(&format!("t/{worker}/{number}"), 10, MIB)).collect();
        let report = WindowReport { window, lasted: at(60.0), busy: at(30.0), busy_bytes, uses, ..WindowReport::default() };
        beat_with(&mut state, now, Heartbeat { window: Some(report), ..blank(worker) });
    }
    let status = state.placement_status(20);
    assert_eq!(status.speeds, [(WorkerId(1), 2 * MIB), (WorkerId(2), MIB)]);
    let planned: Vec<(WorkerId, u32)> = status.segments.iter().flat_map(|segment| segment.planned.clone()).collect();
    let sum = |of: &[WorkerId]| -> f64 {
        planned.iter().filter(|(worker, _)| of.contains(worker)).map(|(_, weight)| f64::from(*weight)).sum()
    };
    let (slow, all) = (sum(&[WorkerId(2)]), sum(&[WorkerId(1), WorkerId(2)]));
    assert!(slow > 0.0 && slow < 0.28 * all, "{slow} of {all} at one of half the speed, busy half of the time");
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

#[test]
fn of_segments_that_are_as_popular_the_first_by_name_are_shown() {
    let (mut state, now, window) = two_workers();
    let name = |number: u32| format!("t/{number:02}");
    report(&mut state, now, 1, window, (0..100).map(|number| read(&name(number), 4, MIB)).collect());
    let shown = state.placement_status(10).segments;
    assert_eq!(shown.iter().map(|it| it.path.key().as_str()).collect::<Vec<_>>(), (0..10).map(name).collect::<Vec<_>>());
}

#[test]
fn what_is_held_is_summed_up_by_mount_and_table_and_worker() {
    // The fourth one has nothing, and tells nothing: no plan is made meanwhile.
    let (mut state, now, window) = workers(4);
    let uses = |reads: &[(&str, u32, u64)]| reads.iter().map(|(key, often, held)| read(key, *often, *held)).collect::<Vec<_>>();
    report(&mut state, now, 1, window, uses(&[("sales/dt=1/a", 4, MIB), ("sales/dt=2/a", 2, 3 * MIB), ("top", 1, MIB)]));
    report(&mut state, now, 2, window, uses(&[("sales/dt=1/a", 4, 2 * MIB), ("dim/a", 8, 5 * MIB)]));
    let column = SegmentUse { index: Cell::index(Cell { row_group: 0, column: 3 }).unwrap(), ..read("dim/a", 1, 7 * MIB) };
    report(&mut state, now, 3, window, vec![column]);
    let filled = state.filled(10);
    assert_eq!(filled.workers, [1, 2, 3, 4].map(WorkerId));
    assert_eq!((filled.workers_known, filled.mounts_known, filled.tables_known), (4, 1, 3));
    let shown = |parts: &[FilledPart]| -> Vec<(String, Vec<u64>)> {
        let name = |part: &FilledPart| format!("{} {}", part.mount, part.table.as_deref().unwrap_or("as a whole"));
        parts.iter().map(|part| (name(part), part.by_worker.iter().map(|bytes| bytes / MIB).collect())).collect()
    };
    assert_eq!(shown(&filled.mounts), [("lake as a whole".to_string(), vec![5, 7, 7, 0])]);
    let expected = [("lake dim", [0, 5, 7, 0]), ("lake sales", [4, 2, 0, 0]), ("lake ", [1, 0, 0, 0])];
    assert_eq!(shown(&filled.tables), expected.map(|(name, held)| (name.to_string(), held.to_vec())));
    let [dim, sales, _] = &filled.tables[..] else { panic!("{filled:?}") };
    assert_eq!((dim.held.segments, dim.held.bytes, dim.held.decoded_bytes), (2, 12 * MIB, 7 * MIB));
    // Of the one that two workers have, the more complete copy.
    assert_eq!((sales.held.segments, sales.held.bytes, sales.held.distinct_bytes), (2, 6 * MIB, 5 * MIB));
    assert_eq!((sales.held.popularity, filled.all.popularity, filled.all.bytes), (10.0, 20.0, 19 * MIB));
    let one = state.filled(1);
    assert_eq!((one.tables.len(), one.tables_known, one.all), (1, 3, filled.all), "what is not shown is counted");
    assert_eq!(one.tables[0], filled.tables[0]);
}

#[test]
fn tables_of_two_mounts_with_one_name_are_two() {
    let (mut state, now, window) = two_workers();
    let own = read("t/a", 1, MIB);
    let beside = SegmentUse { version: ObjectVersion { mount: MountId(9), ..own.version.clone() }, ..own.clone() };
    report(&mut state, now, 1, window, vec![own, beside]);
    let filled = state.filled(10);
    assert_eq!((filled.mounts_known, filled.tables_known, filled.all.segments), (2, 2, 2));
}

/// With the state locked: nobody else is answered meanwhile. Half of them are placed, the others are where hashing puts them.
#[test]
#[ignore = "an optimised build does it, in make test-console"]
fn a_million_segments_are_looked_through_within_200_ms() {
    let state = crowd(100, 10_000);
    let segments = || {
        let status = state.placement_status(500);
        assert_eq!((status.segments.len(), status.segments_known), (500, 500_000));
    };
    let tables = || {
        let filled = state.filled(100);
        assert_eq!((filled.tables.len(), filled.all.segments), (100, 500_000));
    };
    let looks: [(&str, &dyn Fn()); 2] = [("segments", &segments), ("tables", &tables)];
    for (what, look) in looks {
        let timed = || {
            let started = forebay_runtime::now();
            look();
            started.elapsed()
        };
        let took = (0..5).map(|_| timed()).min().unwrap();
        println!("a million segments were looked through for {what} in {took:?}");
        assert!(took < Duration::from_millis(200), "{what}: {took:?}");
    }
}
