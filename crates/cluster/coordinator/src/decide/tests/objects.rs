//! Objects as they come: new ones, overwritten ones, those of an eager mount, and one larger than any can be.

use forebay_placement::holder;
use forebay_protocol::{Order, OrderEnd, SegmentUse, WindowReport};
use forebay_types::{ObjectVersion, SegmentId, VersionTag};

use super::placement::{
    MIB, beat_with, holders, key_at_home, next_window, read, report, route, segment, table, tick, two_workers,
    two_workers_and_what_is_hot, version, workers,
};
use super::*;
use crate::decide::Stored;

#[test]
fn an_overwritten_object_keeps_its_popularity_and_its_replicas_are_loaded_anew() {
    let (mut state, now, hot) = two_workers_and_what_is_hot();
    let fresh = ObjectVersion { tag: VersionTag::etag("\"2\""), ..version(&hot) };
    beat_with(&mut state, now + 1.0, Heartbeat { fresh: vec![fresh.clone()], ..blank(1) });
    let status = state.placement_status(1);
    assert_eq!((status.segments[0].popularity, status.segments[0].held.len()), (100.0, 0));
    assert_eq!(status.segments[0].segment, SegmentId::of(&fresh, 0));
    assert_eq!(holders(&table(&mut state, now + 1.1), &hot), [1, 2], "clients stay where they are");
    let now = next_window(&mut state, now + 1.2, &[1, 2], |_| vec![]);
    let orders: Vec<_> = [1, 2].map(|worker| beat_with(&mut state, now + 0.1, blank(worker)).orders).concat();
    assert!(matches!(&orders[..], [Order::Hold { version, .. }, ..] if *version == fresh), "{orders:?}");
}

#[test]
fn a_new_object_starts_as_popular_as_the_newest_before_it() {
    let (mut state, now, window) = two_workers();
    let old = key_at_home(1, 2);
    beat_with(&mut state, now, Heartbeat { fresh: vec![version(&old)], ..blank(1) });
    assert_eq!(state.placement_status(5).segments, [], "the first of its dataset is as unknown as any");
    for worker in [1, 2] {
        report(&mut state, now, worker, window, vec![read(&old, 50, 5 * MIB)]);
    }
    tick(&mut state, now + 0.1);
    let new = "t/newest";
    beat_with(&mut state, now + 1.0, Heartbeat { fresh: vec![version(new)], ..blank(1) });
    let status = state.placement_status(5);
    let of = |key: &str| status.segments.iter().find(|it| it.path.key().as_str() == key).map(|it| it.popularity);
    assert_eq!((of(&old), of(new)), (Some(100.0), Some(100.0)));
}

#[test]
fn an_eager_mount_s_new_object_goes_to_one_worker_at_once() {
    let (mut state, now, _) = workers(3);
    let mount = Mount { options: MountOptions { eager: true, ..lake().options }, ..lake() };
    state.decide(at(now), Event::Stored(Stored::Mount(mount)));
    let mut chosen = std::collections::BTreeMap::new();
    for n in 0..60 {
        let key = format!("new/{n}");
        beat_with(&mut state, now + 0.1, Heartbeat { fresh: vec![version(&key)], ..blank(1) });
        for worker in 1..=3 {
            for order in beat_with(&mut state, now + 0.2, blank(worker)).orders {
                let Order::Hold { version: ordered, from, .. } = order else { panic!("{order:?}") };
                assert_eq!(ordered, version(&key));
                assert_eq!(from, if worker == 1 { vec![] } else { vec![WorkerId(1)] }, "the writer may have it");
                *chosen.entry(worker).or_insert(0) += 1;
                let ended = vec![OrderEnd { segment: segment(&key), hold: true, held_bytes: 10 * MIB }];
                beat_with(&mut state, now + 0.3, Heartbeat { ended, ..blank(worker) });
            }
        }
    }
    assert_eq!(chosen.values().sum::<u32>(), 60, "one each");
    assert!(chosen.len() == 3 && chosen.values().all(|count| *count >= 8), "at random: {chosen:?}");
    let table = table(&mut state, now + 1.0);
    assert!((25..=55).contains(&table.len()), "the others are at home: {}", table.len());
}

/// What follows from the plan that a request asks for, if it does.
fn solved(state: &mut State, now: f64, request: impl Into<ControlCall>) -> Option<Vec<Command>> {
    let (commands, _) = ask(state, now, request);
    let problem = commands.into_iter().find_map(|command| match command {
        Command::Plan(problem) => Some(problem),
        _ => None,
    })?;
    Some(state.decide(at(now), Event::Planned(Box::new(problem.solve(0)), at(0.001))))
}

/// Until the next plan, the one worker that takes a new object would serve all who want it.
#[test]
fn an_object_that_starts_popular_is_planned_for_at_once_and_who_has_orders_is_woken() {
    let (mut state, now, window) = two_workers();
    let ids = [WorkerId(1), WorkerId(2)];
    let keys = (0..).map(|n| format!("new/{n}")).filter(|key| holder(route(key), &ids) == Some(WorkerId(1)));
    let keys: Vec<String> = keys.take(2).collect();
    beat_with(&mut state, now, Heartbeat { fresh: vec![version(&keys[0])], ..blank(1) });
    report(&mut state, now, 1, window, vec![read(&keys[0], 100, 5 * MIB)]);
    let told = WindowReport { window, lasted: at(60.0), ..WindowReport::default() };
    let last = MemberRequest::Heartbeat(Heartbeat { window: Some(told), ..blank(2) });
    let commands = solved(&mut state, now, last).expect("the last report has a plan made");
    assert!(commands.contains(&Command::Tell(vec![WorkerId(2)])), "{commands:?}");
    assert_eq!(beat_with(&mut state, now + 0.1, blank(2)).orders.len(), 1);

    let beat = || MemberRequest::Heartbeat(Heartbeat { fresh: vec![version(&keys[1])], ..blank(1) });
    solved(&mut state, now + 2.0, beat()).expect("the new object has a plan made");
    let planned = state.placement_status(5).segments.into_iter().map(|segment| segment.planned);
    assert!(
        planned.clone().count() == 2 && planned.clone().all(|workers| !workers.is_empty()),
        "{:?}",
        planned.collect::<Vec<_>>()
    );
    assert!(solved(&mut state, now + 2.2, beat()).is_none(), "it is known");
}

#[test]
fn an_object_larger_than_any_can_be_is_counted_for_nothing() {
    let mut state = joined(1);
    for size in [200_000_000_000_000_000, 300_000_000_000_000_000, u64::MAX] {
        let huge = SegmentUse { version: ObjectVersion { size, ..version("huge") }, ..read("huge", 3, u64::MAX) };
        let uses = vec![huge.clone(), SegmentUse { held_bytes: u64::MAX, bytes: u64::MAX, ..read("a", 1, 0) }];
        let window = state.placement.window();
        let report = WindowReport { window, lasted: Duration::from_secs(1), uses, ..WindowReport::default() };
        let fresh = vec![huge.version];
        let (_, answer) = ask(&mut state, 1.0, MemberRequest::Heartbeat(Heartbeat { window: Some(report), fresh, ..blank(1) }));
        assert!(matches!(answer, Some(ControlReply::Beat { .. })), "{answer:?}");
    }
    assert_eq!(state.placement_status(10).segments.iter().map(|it| it.path.key().as_str()).collect::<Vec<_>>(), ["a"]);
}
