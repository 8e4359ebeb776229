//! What a window counts, and what is remembered of it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use forebay_types::VersionTag;

use super::*;

fn version(number: u64) -> ObjectVersion {
    ObjectVersion { mount: MountId(1), key: Key::new(format!("k{number}")).unwrap(), tag: VersionTag::etag("\"t\""), size: 9 }
}

fn counts() -> (Popularity, SegmentId, SegmentName) {
    let version = version(0);
    let (counts, segment) = (Popularity::new(), SegmentId::of(&version, 0));
    counts.learn(segment, &version, 0);
    (counts, segment, SegmentName { version, index: 0 })
}

#[test]
fn an_operation_counts_once_a_window() {
    let (counts, segment, _) = counts();
    for operation in [1, 1, 2] {
        counts.read(OperationId(operation), segment, 1, 100, Duration::from_micros(5));
    }
    let report = counts.report(7, vec![], |_| 50);
    let use_ = &report.uses[0];
    assert_eq!((report.window, use_.operations, use_.reads, use_.bytes, use_.held_bytes), (7, 2, 3, 300, 50));
    assert_eq!(use_.service, Duration::from_micros(15));
    counts.read(OperationId(1), segment, 1, 100, Duration::ZERO);
    assert_eq!(counts.report(8, vec![], |_| 0).uses[0].operations, 1, "the next window counts anew");
    assert_eq!(counts.known()[0].2, 2.0, "1 and half of 2");
}

#[test]
fn the_most_reads_under_way_at_once_are_reported() {
    let (counts, segment, _) = counts();
    let read = || counts.read(OperationId(1), segment, 1, 1, Duration::ZERO);
    let first: Vec<_> = (0..3).map(|_| counts.enter(segment)).collect();
    read();
    drop(first);
    let one = counts.enter(segment);
    read();
    assert_eq!(counts.report(1, vec![], |_| 0).uses[0].peak, 3);
    read();
    assert_eq!(counts.report(2, vec![], |_| 0).uses[0].peak, 1, "one is under way still");
    drop(one);
    assert!(counts.shards.iter().all(|shard| shard.lock().under_way.is_empty()));
}

#[test]
fn what_one_operation_reads_of_a_table_names_its_root() {
    let counts = Popularity::new();
    let at = |key: &str| ObjectVersion { key: Key::new(key).unwrap(), ..version(0) };
    for (operation, key) in [(1, "t/2024/01/a"), (1, "t/2025/01/a"), (2, "u/a"), (3, "v/a")] {
        let version = at(key);
        let segment = SegmentId::of(&version, 0);
        counts.learn(segment, &version, 0);
        counts.read(OperationId(operation), segment, 1, 1, Duration::ZERO);
    }
    assert_eq!(counts.report(1, vec![], |_| 0).roots, [(MountId(1), "t".to_string())]);
    assert!(counts.report(2, vec![], |_| 0).roots.is_empty());
}

#[test]
fn replicas_that_nobody_reads_are_reported_too() {
    let (counts, segment, name) = counts();
    let report = counts.report(1, vec![(segment, name.clone())], |_| 9);
    assert_eq!((report.uses.len(), report.uses[0].operations, report.uses[0].held_bytes), (1, 0, 9));
    counts.read(OperationId(1), segment, 1, 9, Duration::ZERO);
    assert_eq!(counts.report(2, vec![(segment, name)], |_| 9).uses.len(), 1);
}

/// Nobody is sent to it, and to drop it for that would have it fetched again and again.
#[test]
fn what_the_worker_reads_for_itself_is_counted_and_is_no_garbage() {
    let (counts, segment, _) = counts();
    assert_eq!(counts.known().len(), 1);
    counts.learn_own(segment, &version(0), 0);
    counts.read(OperationId(1), segment, 1, 9, Duration::ZERO);
    counts.learn(segment, &version(0), 0);
    assert_eq!(counts.report(1, vec![], |_| 9).uses[0].operations, 1);
    assert!(counts.known().is_empty() && counts.is_own(segment), "clients that read it as well change nothing");
    for window in 2..3 + u64::from(FORGOTTEN_AFTER) {
        counts.report(window, vec![], |_| 9);
    }
    assert!(counts.known().len() == 1 && !counts.is_own(segment), "it is here, and not read any more");
}

#[test]
fn counts_do_not_saturate() {
    for (a_second, segments) in [(1, 1), (208, 1), (4000, 1), (20_000, 1), (20_000, 50)] {
        let counts = Popularity::new();
        let versions: Vec<_> = (0..segments).map(version).collect();
        for version in &versions {
            counts.learn(SegmentId::of(version, 0), version, 0);
        }
        let operations = a_second * 60;
        for operation in 0..operations {
            // An operation reads a segment more than once.
            for _ in 0..2 {
                let segment = SegmentId::of(&versions[(operation % segments) as usize], 0);
                counts.read(OperationId(operation), segment, 1, 10, Duration::ZERO);
            }
        }
        let report = counts.report(1, vec![], |_| 0);
        assert_eq!(report.reads_left_out, 0);
        for entry in report.uses {
            let error = f64::from(entry.operations) / (operations / segments) as f64 - 1.0;
            assert!(error.abs() < 0.05, "{} of {operations} over {segments}", entry.operations);
            assert_eq!(entry.reads, 2 * operations / segments);
        }
    }
}

#[test]
fn a_window_of_too_many_segments_keeps_those_that_are_read_most() {
    let (counts, often, _) = counts();
    for number in 0..2 * COUNTED_MAX as u64 {
        let once = SegmentId(u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
        counts.read(OperationId(number), once, 1, 1, Duration::ZERO);
        if number % 100 == 0 {
            counts.read(OperationId(number), often, 1, 1, Duration::ZERO);
        }
    }
    let kept: usize = counts.shards.iter().map(|shard| shard.lock().tallies.len()).sum();
    assert!(kept <= COUNTED_MAX, "{kept}");
    let report = counts.report(1, vec![], |_| 0);
    let counted = f64::from(report.uses[0].operations) / (2.0 * COUNTED_MAX as f64 / 100.0);
    assert!((0.95..1.05).contains(&counted), "{counted}");
    assert!(report.reads_left_out > 0);
}

#[test]
fn what_nobody_reads_any_more_and_is_not_here_is_forgotten() {
    let counts = Popularity::new();
    let segments: Vec<SegmentId> = (0..4)
        .map(|number| {
            let version = version(number);
            let segment = SegmentId::of(&version, 0);
            counts.learn(segment, &version, 0);
            counts.read(OperationId(1), segment, 1, 9, Duration::ZERO);
            segment
        })
        .collect();
    let [read, held, gone, late] = segments[..] else { panic!("four") };
    let is_known = |segment| counts.name(segment).is_some();
    for window in 0..3 * u64::from(FORGOTTEN_AFTER) {
        counts.read(OperationId(window), read, 1, 9, Duration::ZERO);
        if window == u64::from(FORGOTTEN_AFTER) {
            counts.read(OperationId(window), late, 1, 9, Duration::ZERO);
        }
        let report = counts.report(window, vec![], |segment| u64::from(segment == held));
        assert_eq!(report.reads_left_out, 0, "what is read in the last window of its time has its name");
        assert_eq!(is_known(gone), window < u64::from(FORGOTTEN_AFTER), "{window}");
        assert_eq!(is_known(late), window < 2 * u64::from(FORGOTTEN_AFTER), "{window}");
    }
    assert!(is_known(read) && is_known(held));
}
