//! What plans go by: work, room by tier, and what belongs together.

use forebay_placement::{Weigh, holder};
use forebay_protocol::{Order, SegmentUse, WindowReport};

use super::placement::{MIB, beat_with, next_window, read, route, tick, two_workers, version};
use super::*;
use crate::decide::Stored;

/// One object is scanned by few, of the other many read the footer: both at one worker, where one has to go.
fn scanned_and_looked_at(weigh: Option<Weigh>) -> (String, Vec<String>) {
    let placement = PlacementSettings { weigh, ..PlacementSettings::default() };
    let mut state = started(1, &[], placement, None);
    let mut now = 0.0;
    for worker in [1, 2] {
        register(&mut state, 0.0, worker);
    }
    let ids = [WorkerId(1), WorkerId(2)];
    let keys = (0..).map(|n| format!("t/{n}")).filter(|key| holder(route(key), &ids) == Some(WorkerId(1)));
    let keys: Vec<String> = keys.take(2).collect();
    let uses = |worker: u64| match worker {
        1 => vec![
            SegmentUse { reads: 400, bytes: 4000 * MIB, ..read(&keys[0], 40, 5 * MIB) },
            SegmentUse { bytes: 400 * 8192, ..read(&keys[1], 400, 5 * MIB) },
        ],
        _ => vec![],
    };
    now = next_window(&mut state, now, &[1, 2], uses);
    let orders = beat_with(&mut state, now + 0.1, blank(2)).orders;
    let ordered = orders.into_iter().map(|order| match order {
        Order::Hold { version, .. } => version.key.to_string(),
        Order::Drop { .. } => panic!("{order:?}"),
    });
    (keys[0].clone(), ordered.collect())
}

#[test]
fn a_footer_that_is_read_often_weighed_as_much_as_a_scan() {
    let (scanned, ordered) = scanned_and_looked_at(None);
    assert_eq!(ordered, [scanned], "what there is to do is divided");
    let (scanned, ordered) = scanned_and_looked_at(Some(Weigh::Accesses));
    assert!(!ordered.is_empty() && !ordered.contains(&scanned), "the paper's count: {ordered:?}");
}

/// Orders of a plan for a worker whose disk tier of 100 MiB has this in it, when ten segments of 10 MiB are as popular as each
/// other and lie elsewhere.
fn ordered_to(kept: u64, own: u64) -> usize {
    let (mut state, now, window) = two_workers();
    let ids = [WorkerId(1), WorkerId(2)];
    let keys = (0..).map(|n| format!("t/{n}")).filter(|key| holder(route(key), &ids) == Some(WorkerId(1)));
    let keys: Vec<String> = keys.take(10).collect();
    let tiers = |used| WorkerReport {
        dram: (1 << 30, 0, 0),
        disk: (100 * MIB, used, 0),
        kept: (1 << 29, kept * MIB),
        own: (1 << 29, own * MIB),
        ..WorkerReport::default()
    };
    for worker in [1, 2] {
        let uses = if worker == 1 { keys.iter().map(|key| read(key, 100, 10 * MIB)).collect() } else { vec![] };
        let window = Some(WindowReport { window, lasted: at(60.0), uses, ..WindowReport::default() });
        let report =
            if worker == 2 { tiers((kept + own) * MIB) } else { WorkerReport { dram: (1 << 30, 0, 0), ..Default::default() } };
        beat_with(&mut state, now, Heartbeat { window, report, ..blank(worker) });
    }
    tick(&mut state, now + 0.1);
    beat_with(&mut state, now + 0.2, Heartbeat { report: tiers((kept + own) * MIB), ..blank(2) }).orders.len()
}

#[test]
fn a_worker_full_of_temporary_and_kept_data_was_ordered_to_hold_more_than_it_had_room_for() {
    assert_eq!(ordered_to(0, 0), 5, "half of all");
    // 80 MiB of it are for replicas.
    for (kept, own) in [(0, 70), (35, 35), (70, 0), (5, 60), (0, 80), (100, 100)] {
        let ordered = ordered_to(kept, own) as u64;
        assert!(ordered * 10 + kept + own <= 80.max(kept + own), "{ordered} with {kept} and {own} MiB in it");
        assert_eq!(ordered, (80u64.saturating_sub(kept + own) / 10).min(5), "and what there is room for");
    }
}

/// Columns of four, 30 MiB each, that one of two workers is ordered to decode whose DRAM tier of 90 MiB has so much room for them, and whether
/// some find none.
fn decoded_where_there_is_room(form_room_bytes: u64) -> (usize, bool) {
    let (mut state, now, window) = two_workers();
    let cell = |key: &str| SegmentUse {
        index: forebay_types::Cell { row_group: 0, column: 1 }.index().unwrap(),
        ..read(key, 100, 30 * MIB)
    };
    let report = WorkerReport { dram: (90 * MIB, 0, 0), disk: (1 << 40, 0, 0), form_room_bytes, ..WorkerReport::default() };
    for worker in [1, 2] {
        let uses = if worker == 1 { vec![cell("a"), cell("b"), cell("c"), cell("d")] } else { vec![] };
        let window = Some(WindowReport { window, lasted: at(60.0), uses, ..WindowReport::default() });
        beat_with(&mut state, now, Heartbeat { window, report: report.clone(), ..blank(worker) });
    }
    tick(&mut state, now + 0.1);
    let orders = beat_with(&mut state, now + 0.2, Heartbeat { report, ..blank(2) }).orders;
    (orders.len(), !state.placement_status(5).unsatisfied.is_empty())
}

#[test]
fn decoded_columns_are_planned_into_dram_and_not_into_the_disk_tier() {
    assert_eq!(decoded_where_there_is_room(0), (1, true), "half of the tier, of a worker that does not say");
    assert_eq!(decoded_where_there_is_room(40 * MIB), (1, true), "the others find no room");
    assert_eq!(decoded_where_there_is_room(15 * MIB), (0, true), "blocks save more there");
    assert!(decoded_where_there_is_room(u64::MAX).0 <= 2, "no more than replicas may have of the tier, whatever it says");
}

/// Whether a new partition of a table starts as popular as the one before it, when this is what operations read together.
fn starts_like_its_siblings(old: &str, new: &str, roots: &[&str]) -> bool {
    let (mut state, now, window) = two_workers();
    beat_with(&mut state, now, Heartbeat { fresh: vec![version(old)], ..blank(1) });
    let roots: Vec<_> = roots.iter().map(|root| (LAKE, (*root).to_string())).collect();
    for worker in [1, 2] {
        let uses = if worker == 1 { vec![read(old, 100, 5 * MIB)] } else { vec![] };
        let window = Some(WindowReport { window, lasted: at(60.0), uses, roots: roots.clone(), ..WindowReport::default() });
        // The newest one is known by the time that it is read.
        beat_with(&mut state, now, Heartbeat { window, fresh: vec![version(old)], ..blank(worker) });
    }
    tick(&mut state, now + 0.1);
    beat_with(&mut state, now + 2.0, Heartbeat { fresh: vec![version(old), version(new)], ..blank(1) });
    let shown = state.placement_status(10).segments;
    shown.iter().any(|it| it.path.key().as_str() == new && it.popularity > 0.0)
}

#[test]
fn a_partition_was_a_dataset_of_its_own_and_a_new_one_started_unknown() {
    assert!(starts_like_its_siblings("t/dt=1/hour=23/a", "t/dt=2/hour=00/a", &[]));
    assert!(!starts_like_its_siblings("logs/2024/01/a", "logs/2024/02/a", &[]), "nobody knows that they belong together");
    assert!(starts_like_its_siblings("logs/2024/01/a", "logs/2024/02/a", &["logs"]));
    assert!(!starts_like_its_siblings("h/lineitem/a", "h/orders/a", &["logs"]), "tables side by side are none");
}

#[test]
fn roots_that_a_liar_reports_take_bounded_memory() {
    let (mut state, now, window) = two_workers();
    let long = "x".repeat(5000);
    let roots = (0..256).map(|number| (LAKE, format!("{long}{number}"))).collect();
    let report = WindowReport { window, lasted: at(60.0), roots, ..WindowReport::default() };
    beat_with(&mut state, now, Heartbeat { window: Some(report), ..blank(1) });
    assert!(starts_like_its_siblings("t/dt=1/a", "t/dt=2/a", &[&long]));
}

/// Workers that an object is planned on, of three on hosts of their own and among 29 as popular, when its mount has this rule and it has
/// come a moment before or was always there.
fn planned_with_rule(young: &str, key: &str, came: bool) -> usize {
    let mut state = state();
    let options = MountOptions { young: Some(young.parse().unwrap()), ..lake().options };
    state.decide(at(0.0), Event::Stored(Stored::Mount(Mount { options, ..lake() })));
    for worker in 1..=3 {
        let place = format!("host{worker}");
        let info = WorkerInfo { host: HostId(place.clone()), location: place, ..info(worker) };
        ask(&mut state, 0.0, MemberRequest::Register(info));
    }
    if came {
        beat_with(&mut state, 0.5, Heartbeat { fresh: vec![version(key)], ..blank(1) });
    }
    let others: Vec<String> = (0..29).map(|number| format!("other/{number}")).collect();
    let all =
        || -> Vec<SegmentUse> { others.iter().map(String::as_str).chain([key]).map(|key| read(key, 100, 5 * MIB)).collect() };
    next_window(&mut state, 1.0, &[1, 2, 3], |worker| if worker == 1 { all() } else { vec![] });
    let segments = state.placement_status(100).segments;
    let planned = |name: &str| segments.iter().find(|it| it.path.key().as_str() == name).map(|it| it.planned.len());
    assert!(others.iter().all(|other| planned(other.as_str()).is_some_and(|count| count >= 1)), "{segments:?}");
    planned(key).expect("it is read")
}

/// It is noon of the 21st of January 1970.
#[test]
fn what_is_young_has_as_many_replicas_as_its_mount_asks_for() {
    for (young, key, came, planned) in [
        ("2 for 1d", "t/dt=1970-01-20/a", false, 2),
        ("3 for 1d", "t/1970/01/21/a", false, 3),
        ("3 for 1h", "t/dt=1970-01-21/hour=11/a", false, 3),
        ("9 for 1d", "t/dt=1970-01-20/a", false, 3),
        ("2 for 1d", "t/dt=1970-01-19/a", true, 1),
        ("2 for 1h", "t/dt=1970-01-21/hour=10/a", false, 1),
        ("2 for 1h", "t/a", true, 2),
        ("2 for 1s", "t/a", true, 1),
        ("2 for 1h", "t/a", false, 1),
    ] {
        assert_eq!(planned_with_rule(young, key, came), planned, "{young}: {key}, {came}");
    }
}

#[test]
fn objects_that_came_are_remembered_in_bounded_memory() {
    let mut state = state();
    for number in 0..160_000 {
        state.placement.heard_of(at(f64::from(number)), &version(&format!("t/{number}")));
    }
    state.placement.heard_of(at(160_000.0), &version("t/dt=1970-01-20/a"));
    let heard = state.placement.heard_count();
    assert!((50_000..=100_000).contains(&heard), "{heard}");
}

#[test]
fn placement_that_is_off_orders_nothing() {
    let mut state = started(1, &[], PlacementSettings { policy: None, ..PlacementSettings::default() }, None);
    register(&mut state, 0.0, 1);
    register(&mut state, 0.0, 2);
    let mut now = 0.0;
    for _ in 0..3 {
        now = next_window(&mut state, now, &[1, 2], |_| vec![read("hot", 1000, MIB)]);
        assert_eq!(beat_with(&mut state, now + 0.1, blank(2)).orders, []);
    }
    let status = state.placement_status(5);
    assert_eq!((status.policy.as_str(), status.runs, status.routes), ("off", 0, 0));
    assert!(status.segments[0].popularity > 1000.0, "counted all the same");
}
