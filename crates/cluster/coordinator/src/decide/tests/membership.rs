//! Who is in the view, from the registration to the end of the lease, and when there is a new view.

use forebay_protocol::{ControlReply, ControlRequest, MemberRequest, Warning, WorkerState};
use forebay_types::{ErrorKind, WorkerId};

use super::*;

fn workers(view: &ClusterView) -> Vec<u64> {
    view.workers.iter().map(|worker| worker.id.0).collect()
}

#[test]
fn a_worker_that_registers_is_in_the_view_at_once() {
    let mut state = state();
    let empty = view(&mut state, 0.0);
    assert!(empty.version > 0);
    let first = register(&mut state, 0.0, 7);
    assert_eq!(workers(&first), [7]);
    assert!(first.version > empty.version);
    let second = register(&mut state, 0.5, 3);
    assert_eq!(workers(&second), [3, 7], "by id");
    assert!(second.version > first.version);
}

#[test]
fn a_scheduler_is_known_for_one_lease_after_it_spoke() {
    let mut state = state();
    let mut scheduler = |now: f64, serves: Option<&str>| match ask(
        &mut state,
        now,
        match serves {
            Some(serves) => ControlCall::from(MemberRequest::Scheduler { serves: serves.to_string() }),
            None => ControlRequest::Scheduler.into(),
        },
    )
    .1
    {
        Some(ControlReply::Scheduler(known)) => known,
        other => panic!("{other:?}"),
    };
    let lease = LEASE.as_secs_f64();
    assert_eq!(scheduler(0.0, None), None);
    assert_eq!(scheduler(1.0, Some("h:1")).as_deref(), Some("h:1"));
    assert_eq!(scheduler(1.0 + lease, None).as_deref(), Some("h:1"));
    assert_eq!(scheduler(1.1 + lease, None), None);
    scheduler(20.0, Some("h:1"));
    assert_eq!(scheduler(20.5, Some("i:2")).as_deref(), Some("h:1"), "one at a time");
    assert_eq!(scheduler(20.1 + lease, Some("i:2")).as_deref(), Some("i:2"), "the first has not spoken for a lease");
    assert_eq!(scheduler(20.2 + lease, Some("h:1")).as_deref(), Some("i:2"));
}

#[test]
fn the_view_is_sent_only_when_it_has_changed() {
    let mut state = state();
    let seen = register(&mut state, 0.0, 1).version;
    let (_, unchanged) = ask(&mut state, 0.1, ControlRequest::View { have: seen });
    assert_eq!(unchanged, Some(ControlReply::Unchanged));
    let Some(ControlReply::Beat { view: None, .. }) = ask(&mut state, 1.0, heartbeat(1, seen, 0)).1 else { panic!("no view") };
    register(&mut state, 1.5, 2);
    let Some(ControlReply::Beat { view: Some(view), .. }) = ask(&mut state, 2.0, heartbeat(1, seen, 0)).1 else {
        panic!("a view")
    };
    assert_eq!(workers(&view), [1, 2]);
}

#[test]
fn a_worker_is_lost_one_lease_after_its_last_heartbeat() {
    let mut state = joined(2);
    for second in 1..=4 {
        beat(&mut state, f64::from(second), 1, 0);
    }
    let before = view(&mut state, 5.0);
    assert_eq!(state.decide(at(5.0), Event::Tick), []);
    assert_eq!(workers(&before), [1, 2], "the lease of 2 ends now");
    let lost = state.decide(at(5.001), Event::Tick);
    let reported = Command::ReportLost(WorkerId(2), "10.0.0.2:7000".into());
    assert_eq!(lost, [reported, Command::Remember(remembered(&[1])), Command::TellAll]);
    let after = view(&mut state, 5.001);
    assert_eq!(workers(&after), [1]);
    assert!(after.version > before.version);
    assert_eq!(state.decide(at(5.3), Event::Tick), [], "told once");

    let status = state.status(at(5.3));
    let states: Vec<_> = status.workers.iter().map(|(info, state, _)| (info.id.0, *state)).collect();
    assert_eq!(states, [(1, WorkerState::Live), (2, WorkerState::Lost)]);
}

#[test]
fn a_lost_worker_must_register_again() {
    let mut state = joined(1);
    // Too late, though no tick has come yet.
    let error = error_of(ask(&mut state, 5.1, heartbeat(1, 0, 0)).1);
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("register again"), "{error}");
    state.decide(at(5.2), Event::Tick);
    assert_eq!(error_of(ask(&mut state, 5.3, heartbeat(1, 0, 0)).1).kind(), ErrorKind::NotFound);
    assert_eq!(workers(&register(&mut state, 5.4, 1)), [1]);
    beat(&mut state, 6.0, 1, 0);
}

#[test]
fn nobody_beats_without_registering() {
    let mut state = state();
    let error = error_of(ask(&mut state, 0.0, heartbeat(9, 0, 0)).1);
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("w0000000000000009"), "{error}");
}

#[test]
fn a_worker_that_leaves_is_out_at_once_and_its_share_is_free() {
    let mut state = joined(2);
    for second in [1.0, 2.0, 3.0] {
        rate(&mut state, second, 1, u64::MAX);
        rate(&mut state, second, 2, u64::MAX);
    }
    let (commands, reply) = ask(&mut state, 3.1, MemberRequest::Leave(WorkerId(2)));
    assert_eq!(reply, Some(ControlReply::Done));
    assert_eq!(commands, [Command::Remember(remembered(&[1])), Command::TellAll]);
    assert_eq!(workers(&view(&mut state, 3.1)), [1]);
    assert_eq!(rate(&mut state, 4.0, 1, u64::MAX), BOUND);
    assert_eq!(error_of(ask(&mut state, 4.1, MemberRequest::Leave(WorkerId(2))).1).kind(), ErrorKind::NotFound);
}

#[test]
fn a_worker_that_stops_for_longer_than_its_lease_is_forgotten_as_others_that_leave() {
    let mut state = joined(2);
    for second in 1..62 {
        beat(&mut state, f64::from(second), 1, 0);
        if second == 6 {
            state.decide(at(6.0), Event::Tick);
            let error = error_of(ask(&mut state, 6.0, MemberRequest::Leave(WorkerId(2))).1);
            assert_eq!((error.kind(), state.status(at(6.0)).workers.len()), (ErrorKind::NotFound, 2));
        }
    }
    state.decide(at(61.0), Event::Tick);
    assert_eq!(state.status(at(61.0)).workers.len(), 1);
}

#[test]
fn a_worker_that_comes_back_the_same_changes_no_view() {
    let mut state = state();
    let joined = register(&mut state, 0.0, 1);
    let (first, turn) = (joined.version, joined.workers[0].turn);
    let (commands, _) = ask(&mut state, 1.0, MemberRequest::Register(info(1)));
    assert_eq!(commands, [], "nothing to remember");
    assert_eq!(view(&mut state, 1.0).version, first);
    let larger = WorkerInfo { dram_bytes: 2 << 30, turn, ..info(1) };
    ask(&mut state, 2.0, MemberRequest::Register(larger.clone()));
    let after = view(&mut state, 2.0);
    assert!(after.version > first);
    assert_eq!(after.workers, [larger]);
}

#[test]
fn a_second_process_of_a_worker_is_let_in_when_the_first_has_been_silent() {
    let mut state = joined(2);
    let copy = WorkerInfo { address: "10.9.9.9:7000".into(), turn: 0, ..info(1) };
    beat(&mut state, 1.0, 1, 0);
    let error = error_of(ask(&mut state, 3.0, MemberRequest::Register(copy.clone())).1);
    assert_eq!(error.kind(), ErrorKind::Retry);
    assert!(error.message().contains("10.0.0.1:7000") && error.message().contains("worker-id"), "{error}");
    assert_eq!(view(&mut state, 3.0).workers.iter().find(|worker| worker.id == copy.id).unwrap().address, "10.0.0.1:7000");
    // One that was killed and has moved.
    ask(&mut state, 3.6, MemberRequest::Register(copy.clone()));
    assert_eq!(view(&mut state, 3.6).workers.iter().find(|worker| worker.id == copy.id).unwrap().address, copy.address);
    // With the shortest lease, of which a half is no longer than what lies between two heartbeats.
    state.lease = Duration::from_secs(2);
    ask(&mut state, 5.0, heartbeat(1, 0, 0));
    let first = WorkerInfo { turn: 0, ..info(1) };
    assert_eq!(error_of(ask(&mut state, 6.1, MemberRequest::Register(first)).1).kind(), ErrorKind::Retry);
}

#[test]
fn after_a_restart_of_the_coordinator_a_copy_of_a_worker_does_not_come_before_it() {
    let (copy, restarted) = (WorkerInfo { address: "10.9.9.9:7000".into(), turn: 0, ..info(1) }, || restarted(2, &[1]));
    let mut state = restarted();
    let error = error_of(ask(&mut state, 0.1, MemberRequest::Register(copy.clone())).1);
    assert!(error.kind() == ErrorKind::Retry && error.message().contains("10.0.0.1:7000"), "{error}");
    let back = register(&mut state, 0.9, 1);
    assert_eq!((back.workers[0].address.as_str(), back.workers[0].turn), ("10.0.0.1:7000", 1), "as it was");
    assert_eq!(error_of(ask(&mut state, 3.0, MemberRequest::Register(copy.clone())).1).kind(), ErrorKind::Retry);
    // Where it does not come back, the other one has moved.
    let mut state = restarted();
    ask(&mut state, 2.6, MemberRequest::Register(copy.clone()));
    assert_eq!(view(&mut state, 2.6).workers[0].address, copy.address);
    // One that was started again where it was is not kept waiting.
    let mut state = restarted();
    ask(&mut state, 0.1, MemberRequest::Register(WorkerInfo { turn: 0, ..info(1) }));
    assert_eq!(workers(&view(&mut state, 0.1)), [1]);
}

#[test]
fn a_coordinator_that_ends_early_leaves_to_the_next_one_whoever_has_not_come_back_to_it() {
    let mut state = restarted(2, &[1, 2]);
    let (commands, _) = ask(&mut state, 0.1, MemberRequest::Register(info(1)));
    let all = Command::Remember(remembered(&[1, 2]));
    assert!(commands.contains(&all), "2 may hold shares, and answer from what it knows: {commands:?}");
    let over = state.decide(at(5.05), Event::Tick);
    assert!(over.contains(&Command::Remember(remembered(&[1]))), "until its lease is over: {over:?}");
}

#[test]
fn who_comes_back_to_find_another_process_in_his_place_waits_for_it_and_has_lost_what_he_had() {
    let mut state = joined(2);
    let copy = WorkerInfo { address: "10.9.9.9:7000".into(), turn: 0, ..info(1) };
    beat(&mut state, 3.0, 2, 0);
    ask(&mut state, 3.0, MemberRequest::Register(copy.clone()));
    let back = || MemberRequest::Register(info(1));
    let error = error_of(ask(&mut state, 3.5, back()).1);
    assert!(error.kind() == ErrorKind::Retry && error.message().contains("10.9.9.9:7000"), "{error}");
    assert_eq!(view(&mut state, 3.5).workers[0].address, copy.address);
    let losses = state.losses.clone();
    ask(&mut state, 5.6, back());
    assert_eq!(view(&mut state, 5.6).workers[0].address, info(1).address);
    assert_ne!(format!("{losses:?}"), format!("{:?}", state.losses), "what the other one had is lost to all");
}

#[test]
fn one_whose_address_another_has_before_its_lease_is_over_holds_nobody_up() {
    let mut state = joined(1);
    // A new process in the place of one that was killed, without its data folder.
    let instead = WorkerInfo { address: info(1).address, turn: 0, ..info(2) };
    ask(&mut state, 3.0, MemberRequest::Register(instead));
    assert_eq!(workers(&view(&mut state, 3.0)), [1, 2]);
    state.decide(at(5.1), Event::Tick);
    let now = view(&mut state, 5.1);
    assert_eq!((workers(&now), state.status(at(5.1)).workers.len()), (vec![2], 1));
    let Some(ControlReply::Beat { settled, hears, .. }) = ask(&mut state, 5.2, heartbeat(2, now.version, 0)).1 else {
        panic!("no beat")
    };
    assert_eq!(settled, now.version, "of all that live");
    assert!(hears.is_some());
}

#[test]
fn an_address_that_nobody_can_reach_is_refused() {
    let mut state = state();
    for address in ["", "7000", "host:", "host:port", ":7000", "host:0"] {
        let error = error_of(ask(&mut state, 0.0, MemberRequest::Register(WorkerInfo { address: address.into(), ..info(1) })).1);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{address:?}");
        assert!(error.message().contains("--advertise"), "{error}");
    }
    assert_eq!(view(&mut state, 0.0).workers, []);
}

#[test]
fn views_of_a_later_epoch_are_newer_whatever_came_before() {
    let mut before = state();
    for worker in 1..=50 {
        register(&mut before, 0.0, worker);
    }
    let last = view(&mut before, 0.0);
    let first = view(&mut restarted(2, &[]), 0.0);
    assert!(first.version > last.version);
    assert_eq!((last.epoch, first.epoch), (1, 2));
}

#[test]
fn reports_are_kept_within_limits() {
    let mut state = joined(1);
    let warnings = vec![Warning::of_worker("ü".repeat(10_000)); 1000];
    let report = WorkerReport { warnings, reads: 5, ..WorkerReport::default() };
    let beat = Heartbeat { report, ..blank(1) };
    ask(&mut state, 1.0, MemberRequest::Heartbeat(beat));
    let status = state.status(at(1.0));
    let kept = &status.workers[0].2;
    assert_eq!(kept.reads, 5);
    assert!(kept.warnings.len() <= 16 && kept.warnings.iter().all(|warning| warning.text.len() <= 512));
}
