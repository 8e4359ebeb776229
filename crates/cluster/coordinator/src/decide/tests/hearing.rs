//! Who may answer from what it knows, and when one that was not told has forgotten.

use forebay_protocol::{ControlReply, ControlRequest, Heartbeat, MemberRequest};
use forebay_types::{ErrorKind, WorkerId};

use super::*;

/// A heartbeat of a worker that has this view and has forgotten with this number; what it hears from now on.
fn hears(state: &mut State, now: f64, worker: u64, have: u64, heard: Option<u64>) -> Option<u64> {
    let beat = MemberRequest::Heartbeat(Heartbeat { have, heard, ..blank(worker) });
    match ask(state, now, beat).1 {
        Some(ControlReply::Beat { hears, .. }) => hears,
        other => panic!("{other:?} is no beat"),
    }
}

fn unheard(state: &mut State, now: f64, worker: u64, number: Option<u64>) -> Option<u64> {
    match ask(state, now, ControlRequest::Unheard { mount: LAKE, worker: WorkerId(worker), number }).1 {
        Some(ControlReply::Unheard { number }) => Some(number),
        Some(ControlReply::Done) => None,
        other => panic!("{other:?}"),
    }
}

/// Workers 1 and 2, who hear; their numbers.
fn pair() -> (State, u64, u64) {
    let mut state = joined(1);
    let version = register(&mut state, 0.0, 2).version;
    assert_eq!(hears(&mut state, 0.1, 1, version, None), None, "the other one has not said which view it has");
    let two = hears(&mut state, 0.1, 2, version, None).unwrap();
    let one = hears(&mut state, 0.2, 1, version, None).unwrap();
    assert_eq!(
        (hears(&mut state, 0.3, 1, version, Some(one)), hears(&mut state, 0.3, 2, version, Some(two))),
        (Some(one), Some(two))
    );
    (state, one, two)
}

#[test]
fn a_new_worker_hears_once_all_others_know_of_it() {
    let (mut state, one, _) = pair();
    let old = view(&mut state, 1.0).version;
    let new = register(&mut state, 1.0, 3).version;
    assert_eq!(hears(&mut state, 1.1, 3, new, None), None);
    assert_eq!(hears(&mut state, 1.1, 1, new, Some(one)), Some(one), "who heard goes on to hear");
    assert_eq!(hears(&mut state, 1.2, 3, new, None), None, "2 has the view of before");
    let beat = MemberRequest::Heartbeat(Heartbeat { have: new, ..blank(2) });
    let (commands, _) = ask(&mut state, 1.3, beat);
    assert_eq!(commands, [Command::Tell(vec![WorkerId(3)])], "it is woken to hear of it");
    assert!(hears(&mut state, 1.4, 3, new, None).is_some());
    assert!(old < new);
}

#[test]
fn a_lost_worker_keeps_a_new_one_waiting_no_longer_than_its_lease() {
    let (mut state, one, _) = pair();
    let new = register(&mut state, 1.0, 3).version;
    for second in [2.0, 3.0, 4.0, 5.0] {
        hears(&mut state, second, 1, new, Some(one));
        assert_eq!(hears(&mut state, second, 3, new, None), None, "2 has not said that it knows");
    }
    state.decide(at(5.4), Event::Tick);
    let without = view(&mut state, 5.4).version;
    assert!(hears(&mut state, 5.5, 3, without, None).is_some());
}

#[test]
fn one_that_was_not_told_has_forgotten_when_its_beat_says_so() {
    let (mut state, _, two) = pair();
    let version = view(&mut state, 1.0).version;
    let number = unheard(&mut state, 1.0, 2, None).unwrap();
    assert!(number > two);
    assert_eq!(unheard(&mut state, 1.0, 2, None), Some(number), "no beat has carried it: it does for both who ask");
    assert_eq!(hears(&mut state, 1.1, 2, version, Some(two)), Some(number));
    assert_eq!(unheard(&mut state, 1.2, 2, Some(number)), Some(number), "told, and nothing heard");
    let later = unheard(&mut state, 1.2, 2, None).unwrap();
    assert!(later > number, "what was changed after the beat was not forgotten with it");
    hears(&mut state, 1.3, 2, version, Some(number));
    assert_eq!((unheard(&mut state, 1.4, 2, Some(number)), unheard(&mut state, 1.4, 2, Some(later))), (None, Some(later)));
    hears(&mut state, 1.5, 2, version, Some(later));
    assert_eq!(unheard(&mut state, 1.6, 2, Some(later)), None);
}

#[test]
fn one_that_is_lost_answers_from_nothing_and_neither_does_one_that_came_back() {
    let (mut state, one, _) = pair();
    let number = unheard(&mut state, 1.0, 2, None).unwrap();
    for second in [2.0, 3.0, 4.0, 5.0] {
        hears(&mut state, second, 1, 0, Some(one));
    }
    assert_eq!(unheard(&mut state, 5.2, 2, Some(number)), Some(number), "its lease is not over");
    state.decide(at(5.4), Event::Tick);
    assert_eq!(unheard(&mut state, 5.4, 2, Some(number)), None);
    register(&mut state, 6.0, 2);
    assert_eq!(unheard(&mut state, 6.0, 2, Some(number)), None, "it forgot before it registered");
    assert_eq!(unheard(&mut state, 6.0, 2, None), None);
}

#[test]
fn after_a_restart_nobody_hears_until_all_are_back_or_their_leases_are_over() {
    let mut state = restarted(2, &[1, 2]);
    let version = register(&mut state, 0.1, 1).version;
    assert_eq!(hears(&mut state, 0.2, 1, version, None), None);
    let beat = ControlRequest::Unheard { mount: LAKE, worker: WorkerId(2), number: None };
    assert_eq!(error_of(ask(&mut state, 0.2, beat).1).kind(), ErrorKind::Retry, "it may still answer");
    assert_eq!(hears(&mut state, 4.9, 1, version, None), None);
    state.decide(at(5.1), Event::Tick);
    assert!(hears(&mut state, 5.2, 1, version, None).is_some());
    assert_eq!(unheard(&mut state, 5.2, 2, None), None);

    let mut state = restarted(2, &[1, 2]);
    register(&mut state, 0.1, 1);
    let version = register(&mut state, 0.2, 2).version;
    hears(&mut state, 0.3, 1, version, None);
    assert!(hears(&mut state, 0.4, 2, version, None).is_some());
}

/// Two workers that have registered, and what is spoiled of who has which view before the next decision.
fn spoiled(spoil: impl FnOnce(&mut State)) {
    let mut state = joined(2);
    spoil(&mut state);
    state.decide(at(1.0), Event::Tick);
}

#[test]
#[should_panic(expected = "each live worker has a view, and nobody else")]
fn a_live_worker_whose_view_is_not_counted_is_caught() {
    spoiled(|state| state.settling.left(WorkerId(1), state.members.hearing(WorkerId(1)).unwrap()));
}

#[test]
#[should_panic(expected = "is counted for who has it")]
fn a_worker_that_leaves_too_often_is_caught() {
    spoiled(|state| (0..3).for_each(|_| state.settling.left(WorkerId(1), state.members.hearing(WorkerId(1)).unwrap())));
}

#[test]
#[should_panic(expected = "who settles has no number yet")]
fn a_number_that_is_given_before_all_know_of_a_worker_is_caught() {
    spoiled(|state| {
        state.members.live_member(WorkerId(1)).unwrap().hearing.number = Some(1);
        let view = state.versions.view;
        [1, 2].into_iter().for_each(|worker| drop(ask(state, 0.5, heartbeat(worker, view, 0))));
    });
}
