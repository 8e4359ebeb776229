//! Who is lost, and when all others know.

use forebay_protocol::{ControlReply, Heartbeat, MemberRequest, WorkerInfo};
use forebay_types::WorkerId;

use super::*;

/// A heartbeat of a worker that has this view: who is woken by it, and the view that it is told all have.
fn settled(state: &mut State, now: f64, worker: u64, have: u64) -> (Vec<Command>, u64) {
    let (commands, reply) = ask(state, now, MemberRequest::Heartbeat(Heartbeat { have, ..blank(worker) }));
    match reply {
        Some(ControlReply::Beat { settled, .. }) => (commands, settled),
        other => panic!("{other:?} is no beat"),
    }
}

/// Workers 1, 2 and 3, who know each other.
fn three() -> State {
    let mut state = joined(3);
    let version = view(&mut state, 0.0).version;
    for worker in [1, 2, 3, 1, 2, 3] {
        settled(&mut state, 1.0, worker, version);
    }
    state
}

#[test]
fn a_loss_is_known_when_all_who_live_have_the_view_that_tells_of_it() {
    let mut state = three();
    let before = view(&mut state, 1.0);
    for second in [2.0, 3.0, 4.0, 5.0, 6.0] {
        settled(&mut state, second, 1, before.version);
        settled(&mut state, second, 2, before.version);
    }
    state.decide(at(6.1), Event::Tick);
    let after = view(&mut state, 6.1);
    assert_eq!(after.losses, before.losses + 1);
    assert_eq!(settled(&mut state, 6.2, 1, after.version).1, before.version, "2 has not said that it knows");
    let (commands, known) = settled(&mut state, 6.3, 2, after.version);
    assert_eq!((commands, known), (vec![Command::Tell(vec![WorkerId(1)])], after.version), "who waits for it is woken");
    assert_eq!(settled(&mut state, 6.4, 1, after.version), (vec![], after.version));
}

#[test]
fn whoever_joins_drains_or_registers_again_is_no_loss() {
    let mut state = three();
    let before = view(&mut state, 1.0).losses;
    register(&mut state, 1.1, 4);
    let again = view(&mut state, 1.1).workers[0].clone();
    ask(&mut state, 1.2, MemberRequest::Register(again));
    assert_eq!(view(&mut state, 1.3).losses, before);
}

#[test]
fn a_new_process_of_a_worker_is_a_loss_of_what_the_old_one_had() {
    let mut state = three();
    let before = view(&mut state, 1.0);
    ask(&mut state, 1.1, MemberRequest::Register(WorkerInfo { turn: 0, ..info(2) }));
    let after = view(&mut state, 1.1);
    assert_eq!((after.losses, after.version), (before.losses + 1, before.version + 1));
}

#[test]
fn a_worker_that_leaves_or_is_late_to_register_is_a_loss_once() {
    let mut state = three();
    let before = view(&mut state, 1.0).losses;
    ask(&mut state, 1.1, MemberRequest::Leave(WorkerId(3)));
    assert_eq!(view(&mut state, 1.1).losses, before + 1);
    // No tick has said so yet.
    register(&mut state, 7.0, 2);
    assert_eq!(view(&mut state, 7.0).losses, before + 2);
    state.decide(at(7.1), Event::Tick);
    assert_eq!(view(&mut state, 7.1).losses, before + 3, "1 is lost by now");
    register(&mut state, 7.2, 1);
    assert_eq!(view(&mut state, 7.2).losses, before + 3, "which its coming back is not once more");
}

#[test]
fn those_who_do_not_come_back_to_a_new_coordinator_are_a_loss_when_their_lease_is_over() {
    let mut state = restarted(2, &[1, 2]);
    let first = register(&mut state, 0.1, 1);
    assert!(first.losses > three().losses.number(), "another number than the coordinator before had");
    state.decide(at(4.9), Event::Tick);
    assert_eq!(view(&mut state, 4.9).losses, first.losses);
    settled(&mut state, 4.9, 1, first.version);
    assert!(state.decide(at(5.1), Event::Tick).contains(&Command::TellAll));
    let after = view(&mut state, 5.1);
    assert_eq!((after.losses, after.version), (first.losses + 1, first.version + 1));
}

/// The coordinator before had it as lost: it must not come back as what it was, nor be the first.
#[test]
fn a_worker_that_a_new_coordinator_has_not_heard_of_comes_as_a_new_one() {
    let mut state = restarted(2, &[2]);
    let view = register(&mut state, 0.1, 1);
    assert!(view.workers[0].turn > 2 << 32, "{}", view.workers[0].turn);
    let view = register(&mut state, 0.1, 2);
    assert_eq!(view.root().map(|root| root.id), Some(WorkerId(2)), "which was live, and goes on with what it has");
}
