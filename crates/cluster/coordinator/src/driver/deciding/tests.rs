//! What is left after decisions that fail in the middle.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use forebay_protocol::{AdminRequest, ControlRequest, Pin, SegmentUse, TableDefinition, WindowReport, WorkerInfo};
use forebay_types::{
    BitRate, ErrorKind, Grant, HostId, Key, Mount, MountId, MountOptions, ObjectVersion, Role, TokenKeys, Verifier, VersionTag,
};

use super::*;
use crate::PlacementSettings;
use crate::decide::{Catalogue, Start, Stored, fail_at};
use crate::driver::running_time::RunningTime;

fn deciding() -> Deciding {
    of(Catalogue::default())
}

fn of(catalogue: Catalogue) -> Deciding {
    let (lease, placement) = (Duration::from_secs(5), PlacementSettings::default());
    let start =
        Start { epoch: 1, lease, metadata: "sqlite", catalogue, presumed: Vec::new(), placement, seed: 7, checkpoint: None };
    Deciding::new(State::new(start).0)
}

fn register(worker: u64) -> MemberRequest {
    let address = format!("10.0.0.{worker}:7000");
    let info = WorkerInfo::new(WorkerId(worker), HostId("host".into()), address);
    MemberRequest::Register(WorkerInfo { dram_bytes: 1 << 30, location: "host".into(), ..info })
}

fn heartbeat(worker: u64, key: &str) -> MemberRequest {
    let version = ObjectVersion { mount: MountId(1), key: Key::new(key).expect("a key"), tag: VersionTag::etag("1"), size: 9 };
    let (operations, service) = (1, Duration::from_millis(1));
    let uses = vec![SegmentUse { version, index: 0, operations, reads: 1, bytes: 9, service, peak: 1, held_bytes: 9 }];
    let window = Some(WindowReport { window: 1 << 32, lasted: Duration::from_secs(60), uses, ..WindowReport::default() });
    MemberRequest::Heartbeat(Heartbeat { demand: vec![(MountId(1), 1)], window, ..Heartbeat::silent(WorkerId(worker)) })
}

fn ask(deciding: &mut Deciding, ms: u64, call: impl Into<ControlCall>) -> ControlReply {
    let commands = deciding.decide(Duration::from_millis(ms), Event::Asked(call.into()), &"a test");
    let answers = commands.into_iter().filter_map(|command| match command {
        Command::Answer(reply) => Some(reply),
        _ => None,
    });
    let answers: Vec<_> = answers.collect();
    assert_eq!(answers.len(), 1, "{answers:?}");
    answers.into_iter().next().expect("one")
}

#[test]
fn no_worker_is_lost_because_the_coordinator_was_stopped() {
    let (mut deciding, mut time) = (deciding(), RunningTime::default());
    let mut tick = |deciding: &mut Deciding, ms: u64| {
        let now = time.at(Duration::from_millis(ms));
        let commands = deciding.decide(now, Event::Tick, &"a test");
        (now.as_millis() as u64, commands.iter().any(|command| matches!(command, Command::ReportLost(..))))
    };
    let (now, _) = tick(&mut deciding, 250);
    ask(&mut deciding, now, register(1));
    // Longer than a lease, in which nobody could have been heard.
    let (now, lost) = tick(&mut deciding, 9_000);
    assert!(!lost, "lost while the coordinator stood still");
    let beat = ask(&mut deciding, now, heartbeat(1, "a"));
    assert!(matches!(beat, ControlReply::Beat { .. }), "{beat:?}");
    // From then on a worker that says nothing is lost as ever.
    let lost: Vec<u64> = (9_250..20_000).step_by(250).filter(|ms| tick(&mut deciding, *ms).1).collect();
    assert_eq!(lost, [14_250]);
}

#[test]
fn a_report_that_fails_a_thousand_times_stops_nobody_else() {
    let mut deciding = deciding();
    for worker in 1..=3 {
        ask(&mut deciding, 0, register(worker));
    }
    let views = ask(&mut deciding, 1, ControlRequest::View { have: 0 });
    let ControlReply::View(before) = views else { panic!("{views:?}") };
    fail_at(Some("use of poisoned"));
    for round in 0..1_000 {
        let ms = 10 + round * 10;
        for (worker, key) in [(1, "poisoned"), (2, "a"), (3, "b")] {
            let reply = ask(&mut deciding, ms, heartbeat(worker, key));
            assert!(matches!(reply, ControlReply::Beat { .. }), "worker {worker} in round {round}: {reply:?}");
        }
        let view = ask(&mut deciding, ms, ControlRequest::View { have: 0 });
        let ControlReply::View(view) = view else { panic!("{view:?}") };
        assert!(view.workers.len() == 3 && view.version > before.version);
        assert_eq!(deciding.decide(Duration::from_millis(ms), Event::Tick, &"a test"), []);
    }
    // It failed once: what others have said since then stands.
    assert_eq!(deciding.state.placement_status(10).segments_known, 2);
    // A new process of that worker is believed, once more.
    ask(&mut deciding, 20_000, register(1));
    assert!(!deciding.workers.contains_key(&WorkerId(1)));
}

#[test]
fn a_request_that_fails_is_refused_and_others_are_answered() {
    let mut deciding = deciding();
    fail_at(Some(&format!("registering {}", WorkerId(9))));
    for round in 0..1_000 {
        let reply = ask(&mut deciding, round, register(9));
        assert!(matches!(&reply, ControlReply::Failed { kind, .. } if *kind == forebay_types::ErrorKind::Internal), "{reply:?}");
        let reply = ask(&mut deciding, round, register(1));
        assert!(matches!(&reply, ControlReply::View(view) if view.workers.len() == 1), "{reply:?}");
    }
    assert_eq!(deciding.requests.len(), 1);
}

const LAKE: MountId = MountId(1);

fn lake() -> Mount {
    let options = MountOptions { bandwidth: Some(BitRate::from_bytes_per_sec(50_000_000)), ..MountOptions::default() };
    Mount { id: LAKE, name: "lake".parse().unwrap(), url: "s3://lake".into(), options }
}

fn pin(prefix: &str) -> Pin {
    Pin { mount: LAKE, prefix: Key::new(prefix).unwrap() }
}

/// Three workers, of which the first has the root, and a bit of everything else.
fn busy() -> Deciding {
    fail_at(None);
    let catalogue = Catalogue { mounts: [(LAKE, lake())].into(), pins: vec![pin("kept")], ..Catalogue::default() };
    let mut deciding = of(catalogue);
    for worker in 1..=3 {
        ask(&mut deciding, worker, register(worker));
        ask(&mut deciding, worker, heartbeat(worker, "a"));
    }
    ask(&mut deciding, 4, ControlRequest::Budget { client: 1, mount: LAKE });
    ask(&mut deciding, 4, MemberRequest::Scheduler { serves: "10.0.0.1:1".into() });
    deciding
}

/// Has a decision fail at a place in each of a thousand rounds: nothing of it is left, and others are answered as ever.
fn fails_for_ever(place: &str, event: impl Fn() -> Event) {
    let mut deciding = busy();
    for round in 0..1_000 {
        let ms = 10 + round * 10;
        if round % 10 == 0 {
            // What is remembered of it is forgotten from time to time, so that it comes that far again.
            deciding.requests.clear();
            deciding.workers.clear();
        }
        let before = deciding.state.whole();
        fail_at(Some(place));
        let commands = deciding.decide(Duration::from_millis(ms), event(), &"somebody");
        fail_at(None);
        let is_refused =
            |command: &Command| matches!(command, Command::Answer(ControlReply::Failed { kind: ErrorKind::Internal, .. }));
        assert!(commands.iter().all(is_refused), "{place} in round {round}: {commands:?}");
        assert_eq!(deciding.state.whole(), before, "{place} in round {round}");
        assert_eq!(commands.is_empty(), matches!(event(), Event::Loaded(_)), "{place}");

        let beat = ask(&mut deciding, ms, heartbeat(2, "a"));
        assert!(matches!(beat, ControlReply::Beat { .. }), "{place} in round {round}: {beat:?}");
        let budget = ask(&mut deciding, ms, ControlRequest::Budget { client: 1, mount: LAKE });
        assert!(matches!(budget, ControlReply::Budget(_)), "{place} in round {round}: {budget:?}");
        if round % 50 == 0 {
            for worker in [1, 3] {
                let beat = ask(&mut deciding, ms, heartbeat(worker, "b"));
                assert!(matches!(beat, ControlReply::Beat { .. }), "{place} in round {round}: {beat:?}");
            }
        }
        let view = ask(&mut deciding, ms, ControlRequest::View { have: 0 });
        assert!(matches!(&view, ControlReply::View(view) if view.workers.len() == 3 && view.mounts.len() == 1), "{view:?}");
    }
    // What failed is done once it fails no more.
    deciding.requests.clear();
    deciding.workers.clear();
    let before = deciding.state.whole();
    let commands = deciding.decide(Duration::from_millis(10_100), event(), &"somebody");
    assert!(!commands.iter().any(|command| matches!(command, Command::Answer(ControlReply::Failed { .. }))), "{commands:?}");
    assert_ne!(deciding.state.whole(), before, "{place} is on the way of it");
}

fn asked(call: impl Into<ControlCall>) -> Event {
    Event::Asked(call.into())
}

#[test]
fn members_are_as_they_were_when_a_decision_about_them_fails() {
    let of = |worker| WorkerId(worker);
    fails_for_ever(&format!("registering {}", of(9)), || asked(register(9)));
    fails_for_ever(&format!("registered {}", of(9)), || asked(register(9)));
    // A new process of a worker.
    fails_for_ever(&format!("registered {}", of(1)), || asked(register(1)));
    fails_for_ever(&format!("leaving of {}", of(1)), || asked(MemberRequest::Leave(of(1))));
    fails_for_ever(&format!("draining of {}", of(1)), || asked(AdminRequest::Drain { worker: of(1), draining: true }));
    fails_for_ever(&format!("root to {}", of(2)), || asked(MemberRequest::PassRoot { from: of(1), to: of(2) }));
    fails_for_ever("scheduler", || asked(MemberRequest::Scheduler { serves: "10.0.0.1:1".into() }));
}

#[test]
fn the_catalogue_is_as_it_was_when_a_change_of_it_fails() {
    let options = MountOptions { read_only: true, ..lake().options };
    fails_for_ever("mount lake", || Event::Stored(Stored::Mount(Mount { options: options.clone(), ..lake() })));
    fails_for_ever("no mount 1", || Event::Stored(Stored::MountRemoved(LAKE)));
    fails_for_ever("pin", || Event::Stored(Stored::Pin(LAKE, Key::new("x").unwrap())));
    let table = TableDefinition { name: "t".into(), statement: "s".into() };
    fails_for_ever("table", || Event::Stored(Stored::Table(table.clone())));
    let token = || Verifier {
        id: "etl.1".into(),
        grant: Grant::everywhere(Role::Read),
        created: 1,
        keys: TokenKeys { stored: [1; 32], server: [2; 32] },
    };
    fails_for_ever("token etl.1", || Event::Stored(Stored::Token(token())));
    let other = Catalogue { mounts: [(LAKE, lake())].into(), pins: vec![pin("x")], ..Catalogue::default() };
    fails_for_ever("catalogue", || Event::Loaded(other.clone()));
}

#[test]
fn shares_are_as_they_were_when_a_decision_about_them_fails() {
    fails_for_ever("share of Client(7)", || asked(ControlRequest::Budget { client: 7, mount: LAKE }));
    fails_for_ever("share of Worker(WorkerId(9))", || asked(register(9)));
}

#[test]
fn a_worker_whose_reports_fail_as_a_whole_is_not_heard_and_what_others_said_stands() {
    for place in [format!("report of {}", WorkerId(3)), "share of Worker(WorkerId(3))".into()] {
        let mut deciding = busy();
        fail_at(Some(&place));
        for round in 0..1_000 {
            let ms = 10 + round * 10;
            let beat = ask(&mut deciding, ms, heartbeat(3, "a"));
            assert!(matches!(beat, ControlReply::Failed { kind: ErrorKind::Internal, .. }), "{beat:?}");
            for worker in [1, 2] {
                let beat = ask(&mut deciding, ms, heartbeat(worker, "b"));
                assert!(matches!(beat, ControlReply::Beat { .. }), "{beat:?}");
            }
            assert!(deciding.workers.len() == 1 && deciding.state.placement_status(10).segments_known >= 1);
        }
        fail_at(None);
        // Its lease has run out meanwhile; a new process of it is believed.
        let view = ask(&mut deciding, 10_010, register(3));
        assert!(matches!(&view, ControlReply::View(view) if view.workers.len() == 3), "{view:?}");
        assert!(matches!(ask(&mut deciding, 10_010, heartbeat(3, "a")), ControlReply::Beat { .. }));
    }
}

#[test]
fn time_goes_on_when_a_lease_that_is_over_can_not_be_ended() {
    let mut deciding = busy();
    fail_at(Some(&format!("lease of {}", WorkerId(3))));
    for round in 0..1_000 {
        let ms = 10 + round * 10;
        for worker in [1, 2] {
            let beat = ask(&mut deciding, ms, heartbeat(worker, "b"));
            assert!(matches!(beat, ControlReply::Beat { .. }), "{beat:?}");
        }
        let before = deciding.state.whole();
        assert_eq!(deciding.decide(Duration::from_millis(ms), Event::Tick, &"the clock"), []);
        if ms > 5_100 {
            assert_eq!(deciding.state.whole(), before);
        }
    }
    fail_at(None);
    let lost = deciding.decide(Duration::from_millis(10_010), Event::Tick, &"the clock");
    assert!(lost.iter().any(|command| matches!(command, Command::ReportLost(WorkerId(3), _))), "{lost:?}");
}
