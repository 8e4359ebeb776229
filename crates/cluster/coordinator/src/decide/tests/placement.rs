//! Popularity, plans, orders and routes, in simulated time.

use forebay_placement::holder;
use forebay_protocol::{Order, OrderEnd, RouteTable, SegmentUse, WindowReport};
use forebay_types::{ErrorKind, Key, ObjectVersion, RouteKey, SegmentId, VersionTag};

use super::*;
use crate::decide::Stored;

pub(super) const MIB: u64 = 1 << 20;
/// The time of the day in these tests: noon of the 21st of January 1970.
const TODAY: u64 = 20 * 86_400 + 43_200;

pub(super) fn version(key: &str) -> ObjectVersion {
    ObjectVersion { mount: LAKE, key: Key::new(key).unwrap(), tag: VersionTag::etag("\"1\""), size: 10 * MIB }
}

pub(super) fn route(key: &str) -> RouteKey {
    RouteKey::of(LAKE, &Key::new(key).unwrap(), 0)
}

pub(super) fn segment(key: &str) -> SegmentId {
    SegmentId::of(&version(key), 0)
}

/// What a worker read of an object and holds of it.
pub(super) fn read(key: &str, operations: u32, held_bytes: u64) -> SegmentUse {
    SegmentUse {
        version: version(key),
        index: 0,
        operations,
        reads: operations.into(),
        bytes: u64::from(operations) * MIB,
        service: Duration::from_millis(operations.into()),
        peak: 1,
        held_bytes,
    }
}

/// What a heartbeat brought.
pub(super) struct Answer {
    pub(super) orders: Vec<Order>,
    pub(super) window: u64,
    pub(super) commands: Vec<Command>,
    /// The checkpoint, when it was the last report of a window.
    kept: Option<Checkpoint>,
}

pub(super) fn beat_with(state: &mut State, now: f64, heartbeat: Heartbeat) -> Answer {
    let (commands, reply) = ask(state, now, MemberRequest::Heartbeat(heartbeat));
    match reply {
        Some(ControlReply::Beat { orders, window, .. }) => {
            let kept = carry_out(state, now, commands.clone());
            Answer { orders, window, commands, kept }
        }
        other => panic!("{other:?} is no beat"),
    }
}

pub(super) fn report(state: &mut State, now: f64, worker: u64, window: u64, uses: Vec<SegmentUse>) -> Answer {
    let report = WindowReport { window, lasted: at(60.0), uses, ..WindowReport::default() };
    beat_with(state, now, Heartbeat { window: Some(report), ..blank(worker) })
}

/// Ticks, and makes what plans are asked for; gives the last checkpoint.
pub(super) fn tick(state: &mut State, now: f64) -> Option<Checkpoint> {
    let commands = state.decide(at(now), Event::Tick);
    carry_out(state, now, commands)
}

fn carry_out(state: &mut State, now: f64, commands: Vec<Command>) -> Option<Checkpoint> {
    let mut kept = None;
    for command in commands {
        match command {
            Command::Plan(problem) => {
                let outcome = problem.solve(TODAY);
                assert_eq!(outcome, problem.solve(TODAY), "a plan is a function of its problem");
                state.decide(at(now), Event::Planned(Box::new(outcome), at(0.001)));
            }
            Command::Checkpoint(checkpoint) => kept = Some(*checkpoint),
            _ => {}
        }
    }
    kept
}

/// The routing table as a client has it that follows from nothing.
pub(super) fn table(state: &mut State, now: f64) -> RouteTable {
    match ask(state, now, ControlRequest::Routes { have: 0 }).1 {
        Some(ControlReply::Routes(delta)) => RouteTable::default().with(delta).unwrap(),
        other => panic!("{other:?} are no routes"),
    }
}

pub(super) fn holders(table: &RouteTable, key: &str) -> Vec<u64> {
    table.holders(route(key)).map(|holders| holders.iter().map(|(worker, _)| worker.0).collect()).unwrap_or_default()
}

/// Workers 1 and 2, live, after 60 seconds: the window has closed.
pub(super) fn two_workers() -> (State, f64, u64) {
    workers(2)
}

/// Two workers that have told of reads of an object at home with the first, and the plan that came of it.
pub(super) fn two_workers_and_what_is_hot() -> (State, f64, String) {
    let (mut state, now, window) = two_workers();
    let hot = key_at_home(1, 2);
    for worker in [1, 2] {
        report(&mut state, now, worker, window, vec![read(&hot, 50, 5 * MIB)]);
    }
    tick(&mut state, now + 0.1);
    (state, now, hot)
}

pub(super) fn workers(count: u64) -> (State, f64, u64) {
    let mut state = joined(count);
    let mut now = 0.0;
    let mut window = 0;
    while now < 60.0 {
        now += 1.0;
        for worker in 1..=count {
            window = beat_with(&mut state, now, blank(worker)).window;
        }
        tick(&mut state, now);
    }
    let window_now = beat_with(&mut state, now + 0.01, blank(1)).window;
    assert_eq!(window_now, window + 1, "the window closes after its time");
    (state, now + 0.01, window_now)
}

pub(super) fn key_at_home(worker: u64, count: u64) -> String {
    let ids: Vec<_> = (1..=count).map(WorkerId).collect();
    (0..).map(|n| format!("t/{n}")).find(|key| holder(route(key), &ids) == Some(WorkerId(worker))).unwrap()
}

/// One more segment is hot than fits on its worker: the other one is ordered to hold it, copied from the first.
#[test]
fn a_hot_segment_gets_a_second_worker_and_clients_hear_of_it_when_it_is_there() {
    let (mut state, now, window) = two_workers();
    let hot = key_at_home(1, 2);
    let first = report(&mut state, now, 1, window, vec![read(&hot, 100, 5 * MIB)]);
    assert_eq!((first.orders, first.commands), (vec![], vec![]), "nothing is planned before all have reported");
    let last = report(&mut state, now, 2, window, vec![]);
    assert!(
        last.orders.is_empty() && last.commands.iter().any(|command| matches!(command, Command::Plan(_))),
        "{:?}",
        last.commands
    );
    tick(&mut state, now + 0.2);
    let expected = Order::Hold { version: version(&hot), index: 0, from: vec![WorkerId(1)] };
    for repeated in 0..3 {
        let orders = beat_with(&mut state, now + 0.3 + f64::from(repeated), blank(2)).orders;
        assert_eq!(orders, std::slice::from_ref(&expected), "until it says how that ended");
    }
    assert!(table(&mut state, now + 4.0).is_empty(), "make before break");
    assert_eq!(state.placement_status(10).segments[0].loading, [WorkerId(2)]);

    let ended = vec![OrderEnd { segment: segment(&hot), hold: true, held_bytes: 5 * MIB }];
    let orders = beat_with(&mut state, now + 4.1, Heartbeat { ended, ..blank(2) }).orders;
    assert_eq!(orders, []);
    assert_eq!(holders(&table(&mut state, now + 4.2), &hot), [1, 2]);
    let status = state.placement_status(10);
    let shown = &status.segments[0];
    assert_eq!((shown.path.to_string(), shown.popularity, shown.in_table), (format!("/lake/{hot}"), 100.0, true));
    assert_eq!(shown.routing.iter().map(|(_, percent)| percent).sum::<u32>(), 100);
    assert_eq!((status.replicas_held, status.replicas_loading, status.routes, status.runs), (2, 0, 1, 1));
}

#[test]
fn a_copy_that_fails_changes_nothing_and_is_tried_with_the_next_plan() {
    let (mut state, now, window) = two_workers();
    let hot = key_at_home(1, 2);
    for worker in [1, 2] {
        let uses = if worker == 1 { vec![read(&hot, 100, 5 * MIB)] } else { vec![] };
        report(&mut state, now, worker, window, uses);
    }
    tick(&mut state, now + 0.2);
    assert_eq!(beat_with(&mut state, now + 0.3, blank(2)).orders.len(), 1);
    let ended = vec![OrderEnd { segment: segment(&hot), hold: true, held_bytes: 0 }];
    assert_eq!(beat_with(&mut state, now + 0.4, Heartbeat { ended, ..blank(2) }).orders, []);
    assert!(table(&mut state, now + 0.5).is_empty());
    let now = next_window(&mut state, now, &[1, 2], |worker| match worker {
        1 => vec![read(&hot, 100, 5 * MIB)],
        _ => vec![],
    });
    assert_eq!(beat_with(&mut state, now + 0.3, blank(2)).orders.len(), 1);
}

#[test]
fn a_copy_that_is_said_to_be_larger_than_anything_counts_as_the_most_that_one_can_be() {
    let (mut state, now, window) = two_workers();
    let hot = key_at_home(1, 2);
    for worker in [1, 2] {
        let uses = if worker == 1 { vec![read(&hot, 100, 5 * MIB)] } else { vec![] };
        report(&mut state, now, worker, window, uses);
    }
    tick(&mut state, now + 0.2);
    assert_eq!(beat_with(&mut state, now + 0.3, blank(2)).orders.len(), 1);
    let ended = vec![OrderEnd { segment: segment(&hot), hold: true, held_bytes: u64::MAX }];
    assert_eq!(beat_with(&mut state, now + 0.4, Heartbeat { ended, ..blank(2) }).orders, []);
    // Twice of it is reckoned with here, and no number is so large.
    let now = next_window(&mut state, now + 0.4, &[1, 2], |worker| match worker {
        1 => vec![read(&hot, 100, 5 * MIB)],
        _ => vec![],
    });
    assert_eq!(holders(&table(&mut state, now + 0.1), &hot), [1, 2]);
}

/// Goes on to the next window's end, has the workers report, and makes the plan.
pub(super) fn next_window(state: &mut State, now: f64, live: &[u64], uses: impl Fn(u64) -> Vec<SegmentUse>) -> f64 {
    let before = beat_with(state, now, blank(live[0])).window;
    let mut now = now;
    loop {
        now += 1.0;
        tick(state, now);
        let windows: Vec<u64> = live.iter().map(|worker| beat_with(state, now, blank(*worker)).window).collect();
        if windows[0] > before {
            live.iter().for_each(|worker| _ = report(state, now, *worker, windows[0], uses(*worker)));
            tick(state, now + 0.1);
            return now + 0.1;
        }
    }
}

#[test]
fn what_is_not_needed_any_more_goes_one_at_a_time_and_only_when_no_client_can_name_it() {
    let (mut state, now, window) = workers(3);
    let hot = key_at_home(1, 3);
    let all = [1, 2, 3];
    // Everywhere.
    for worker in all {
        report(&mut state, now, worker, window, vec![read(&hot, 100, 5 * MIB)]);
    }
    tick(&mut state, now + 0.1);
    assert_eq!(holders(&table(&mut state, now + 0.2), &hot), all);
    // Now others are as hot, and this one is not.
    let others: Vec<_> = (1..=3).map(|worker| key_at_home(worker, 3) + "x").collect();
    let mut now = now + 0.2;
    let mut drops = Vec::new();
    for _ in 0..12 {
        now = next_window(&mut state, now, &all, |worker| {
            let mut uses = vec![read(&others[worker as usize - 1], 1000, 5 * MIB)];
            if worker == 1 {
                uses.push(read(&hot, 1, 5 * MIB));
            }
            if worker != 1 && !drops.contains(&worker) {
                uses.push(read(&hot, 0, 5 * MIB));
            }
            uses
        });
        let named = holders(&table(&mut state, now), &hot);
        let mut run = Vec::new();
        for worker in all {
            for order in beat_with(&mut state, now + 0.1, blank(worker)).orders {
                match order {
                    Order::Drop { segment: dropped } if dropped == segment(&hot) => {
                        assert!(!named.contains(&worker), "{worker} is named");
                        run.push(worker);
                        let ended = vec![OrderEnd { segment: dropped, hold: false, held_bytes: 0 }];
                        beat_with(&mut state, now + 0.2, Heartbeat { ended, ..blank(worker) });
                    }
                    Order::Hold { version, index, .. } => {
                        let ended = OrderEnd { segment: SegmentId::of(&version, index), hold: true, held_bytes: 5 * MIB };
                        beat_with(&mut state, now + 0.2, Heartbeat { ended: vec![ended], ..blank(worker) });
                    }
                    Order::Drop { .. } => {}
                }
            }
        }
        assert!(run.len() <= 1, "one replica a run: {run:?}");
        drops.extend(run);
    }
    assert_eq!(drops.len(), 2, "one is left");
}

#[test]
fn a_lost_worker_is_in_no_route_and_its_counts_stay() {
    let (mut state, now, hot) = two_workers_and_what_is_hot();
    assert_eq!(holders(&table(&mut state, now + 0.2), &hot), [1, 2]);
    for second in 1..=6 {
        beat_with(&mut state, now + f64::from(second), blank(2));
        tick(&mut state, now + f64::from(second));
    }
    assert!(table(&mut state, now + 6.1).is_empty(), "worker 2 is its home now");
    let status = state.placement_status(1);
    assert_eq!(status.segments[0].popularity, 100.0, "what the lost worker counted counts");
    assert_eq!(status.segments[0].routing, [(WorkerId(2), 100)]);
}

#[test]
fn a_restarted_coordinator_goes_on_with_counts_and_routes() {
    let (mut state, now, hot) = two_workers_and_what_is_hot();
    let now = next_window(&mut state, now, &[1, 2], |_| vec![read(&hot, 50, 5 * MIB)]);
    let mut kept = None;
    let mut later = now;
    while kept.is_none() {
        later += 1.0;
        for worker in [1, 2] {
            kept = kept.or(beat_with(&mut state, later, blank(worker)).kept);
        }
        kept = kept.or(tick(&mut state, later));
    }
    let before = state.placement_status(5);
    let mut next = started(2, &[1, 2], PlacementSettings::default(), kept);
    let after = next.placement_status(5);
    assert!((after.segments[0].popularity - before.segments[0].popularity).abs() < 0.01);
    assert_eq!(holders(&table(&mut next, 0.0), &hot), [1, 2], "before anyone is back");
    register(&mut next, 1.0, 1);
    assert_eq!(holders(&table(&mut next, 1.0), &hot), [1, 2]);
    // Worker 2 does not come back.
    for second in 2..=7 {
        beat_with(&mut next, f64::from(second), blank(1));
        tick(&mut next, f64::from(second));
    }
    assert!(holders(&table(&mut next, 7.0), &hot).is_empty(), "worker 1 is all there is");
}

#[test]
fn a_checkpoint_that_is_none_is_told_and_done_without() {
    let checkpoint = Some(Checkpoint { window: 1, popularity: vec![1, 2], routes: vec![9, 9] });
    let catalogue = Catalogue::default();
    let placement = PlacementSettings::default();
    let start = Start { epoch: 1, lease: LEASE, metadata: "sqlite", catalogue, presumed: vec![], placement, seed: 1, checkpoint };
    let (mut state, restored) = State::new(start);
    assert!(matches!(restored.unwrap_err().kind(), ErrorKind::Invalid | ErrorKind::Corrupt));
    register(&mut state, 0.0, 1);
}

#[test]
fn a_worker_that_comes_back_empty_holds_nothing() {
    let (mut state, now, hot) = two_workers_and_what_is_hot();
    assert_eq!(holders(&table(&mut state, now + 0.2), &hot), [1, 2]);
    register(&mut state, now + 0.3, 2);
    beat_with(&mut state, now + 0.4, blank(2));
    assert_eq!(state.placement_status(1).segments[0].held, [(WorkerId(1), 5 * MIB)]);
    // One that only registered again, after the coordinator was away, has what it had.
    register(&mut state, now + 0.5, 1);
    let report = WorkerReport { segments: 3, ..WorkerReport::default() };
    beat_with(&mut state, now + 0.6, Heartbeat { report, ..blank(1) });
    assert_eq!(state.placement_status(1).segments[0].held, [(WorkerId(1), 5 * MIB)]);
}

#[test]
fn a_report_counts_once_and_a_long_window_as_one() {
    let (mut state, now, window) = two_workers();
    for _ in 0..3 {
        report(&mut state, now, 1, window, vec![read("a", 10, MIB)]);
    }
    assert_eq!(state.placement_status(5).segments[0].popularity, 10.0);
    let long = WindowReport { window, lasted: at(600.0), uses: vec![read("a", 50, MIB)], ..WindowReport::default() };
    beat_with(&mut state, now, Heartbeat { window: Some(long), ..blank(2) });
    assert_eq!(state.placement_status(5).segments[0].popularity, 15.0, "50 in ten periods are 5 in one");
}

#[test]
fn segments_of_a_mount_that_is_gone_are_forgotten() {
    let (mut state, now, window) = two_workers();
    for worker in [1, 2] {
        report(&mut state, now, worker, window, vec![read("a", 50, 5 * MIB)]);
    }
    tick(&mut state, now + 0.1);
    state.decide(at(now + 0.2), Event::Stored(Stored::MountRemoved(LAKE)));
    assert_eq!(state.placement_status(5).segments_known, 0);
    assert!(table(&mut state, now + 0.3).is_empty());
}

#[test]
fn all_are_woken_when_a_window_closes() {
    let (mut state, now, _) = two_workers();
    let woken = |commands: &[Command]| commands.contains(&Command::TellAll);
    assert!(!woken(&state.decide(at(now + 1.0), Event::Tick)));
    let due = state.next_tick();
    assert!(due > at(now) && due <= at(now + 2.6), "when reports are late");
    tick(&mut state, now + 3.0);
    let due = state.next_tick();
    assert!(woken(&state.decide(due, Event::Tick)), "not a moment after its end");
}
