//! A drained worker stays in the view, gets nothing new until it resumes, and passes the root on for good.

use forebay_protocol::{AdminRequest, ControlReply, MemberRequest};
use forebay_types::{ErrorKind, WorkerId};

use super::*;

fn drain(state: &mut State, now: f64, worker: u64, draining: bool) -> Option<ControlReply> {
    ask(state, now, AdminRequest::Drain { worker: WorkerId(worker), draining }).1
}

fn pass(state: &mut State, now: f64, from: u64, to: u64) -> Option<ControlReply> {
    ask(state, now, MemberRequest::PassRoot { from: WorkerId(from), to: WorkerId(to) }).1
}

fn placeable(view: &ClusterView) -> Vec<u64> {
    view.placeable().map(|worker| worker.id.0).collect()
}

#[test]
fn a_draining_worker_is_there_and_is_given_nothing_until_it_resumes() {
    let mut state = state();
    let before = [1, 2].map(|worker| register(&mut state, 0.0, worker))[1].version;
    assert_eq!(drain(&mut state, 0.1, 1, true), Some(ControlReply::Done));
    let draining = view(&mut state, 0.2);
    assert!(draining.version > before);
    assert_eq!((placeable(&draining), draining.workers.len()), (vec![2], 2));
    // It has not heard of it when it registers again.
    assert_eq!(placeable(&register(&mut state, 0.3, 1)), [2]);
    drain(&mut state, 0.4, 2, true);
    assert_eq!(placeable(&view(&mut state, 0.4)), [1, 2], "when all drain somebody has to");
    drain(&mut state, 0.5, 1, false);
    assert_eq!(placeable(&view(&mut state, 0.5)), [1]);
    assert_eq!(error_of(drain(&mut state, 0.6, 9, true)).kind(), ErrorKind::NotFound);
}

#[test]
fn a_worker_that_was_drained_and_stopped_comes_back_as_any_other() {
    let mut state = joined(2);
    drain(&mut state, 0.1, 1, true);
    ask(&mut state, 0.2, MemberRequest::Leave(WorkerId(1)));
    assert_eq!(placeable(&register(&mut state, 0.3, 1)), [1, 2]);
    // One that goes on while the coordinator starts anew says it itself.
    let mut after = restarted(2, &[1, 2]);
    let mut draining = info(1);
    draining.draining = true;
    ask(&mut after, 0.0, MemberRequest::Register(draining));
    assert_eq!(placeable(&register(&mut after, 0.1, 2)), [2]);
}

#[test]
fn who_was_drained_stopped_replaced_or_is_away_for_a_day_is_forgotten() {
    let mut state = joined(5);
    let known = |state: &mut State, now: f64| {
        state.decide(at(now), Event::Tick);
        let members = state.status(at(now)).workers;
        members.into_iter().map(|(info, ..)| info.id.0).collect::<Vec<_>>()
    };
    drain(&mut state, 0.1, 2, true);
    ask(&mut state, 0.2, MemberRequest::Leave(WorkerId(5)));
    for second in 1..62 {
        beat(&mut state, f64::from(second), 1, 0);
        if second == 8 {
            assert_eq!(known(&mut state, 8.0), [1, 2, 3, 4, 5], "2, 3 and 4 are lost as well");
            // Another machine in the place of the third.
            let instead = WorkerInfo { address: info(3).address, turn: 0, ..info(6) };
            ask(&mut state, 8.0, MemberRequest::Register(instead));
            assert_eq!(known(&mut state, 8.1), [1, 2, 4, 5, 6]);
        } else if second > 8 {
            beat(&mut state, f64::from(second), 6, 0);
        }
    }
    assert_eq!(known(&mut state, 62.0), [1, 4, 6], "the fourth may come back");
    assert_eq!(known(&mut state, 86_420.0), [1, 6], "it has not, in a day");
    assert_eq!(placeable(&register(&mut state, 86_421.0, 4)), [4], "it is let in all the same");
}

#[test]
fn the_root_is_passed_once_and_stays_where_it_went() {
    let mut state = joined(3);
    let root = |view: ClusterView| view.root().unwrap().id.0;
    assert_eq!(root(view(&mut state, 0.1)), 1);
    assert_eq!(error_of(pass(&mut state, 0.2, 2, 3)).kind(), ErrorKind::Conflict, "it is not the second's");
    assert_eq!(error_of(pass(&mut state, 0.2, 1, 9)).kind(), ErrorKind::NotFound);
    let Some(ControlReply::View(passed)) = pass(&mut state, 0.3, 1, 3) else { panic!("a view") };
    assert_eq!(root(passed.clone()), 3);
    assert_eq!(error_of(pass(&mut state, 0.4, 1, 3)).kind(), ErrorKind::Conflict, "said again by who lost the answer");
    // Both register with what they knew before.
    register(&mut state, 0.5, 1);
    assert_eq!(root(register(&mut state, 0.5, 3)), 3);
    // And with the next coordinator with what the view said.
    let mut after = restarted(2, &[1, 2, 3]);
    passed.workers.into_iter().for_each(|info| drop(ask(&mut after, 0.0, MemberRequest::Register(info))));
    assert_eq!(root(view(&mut after, 0.1)), 3);
}
