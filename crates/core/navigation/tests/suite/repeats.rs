//! Calls that are asked for again: whoever they are asked of, and whatever that one has forgotten, each is made once.

use forebay_navigation::{Calls, Made};
use proptest::collection::vec;
use proptest::prelude::*;

#[test]
fn what_may_be_in_an_object_that_was_not_read_is_not_known() {
    let mut calls = Calls::new(5, 10);
    (5..8).for_each(|number| calls.remember(u128::from(number), number));
    assert_eq!([5, 6, 7, 8].map(|call| calls.number_of(call)), [Some(5), Some(6), Some(7), None]);
    assert_eq!(calls.made(6, Some(0)), Made::By(6), "what is known is, whoever asks");
    assert_eq!([None, Some(4), Some(9)].map(|after| calls.made(8, after)), [Made::No; 3]);
    assert_eq!([0, 3].map(|after| calls.made(8, Some(after))), [Made::Unknown; 2]);
}

#[test]
fn what_is_forgotten_is_not_taken_for_what_was_not_made() {
    let mut calls = Calls::new(1, 3);
    (1..=5).for_each(|number| calls.remember(u128::from(number), number));
    assert_eq!([1, 2, 3].map(|call| calls.number_of(call)), [None, None, Some(3)]);
    assert_eq!([0, 1].map(|after| calls.made(9, Some(after))), [Made::Unknown; 2]);
    assert_eq!((calls.made(2, Some(0)), calls.made(9, Some(2))), (Made::Unknown, Made::No));
    // An object of more calls than are remembered.
    (10..15).for_each(|call| calls.remember(call, 6));
    assert_eq!((calls.made(9, Some(5)), calls.made(9, Some(6)), calls.made(14, Some(5))), (Made::Unknown, Made::No, Made::By(6)));
}

#[test]
fn a_call_that_two_objects_have_stays_the_first_ones() {
    let mut calls = Calls::new(1, 2);
    calls.remember(7, 1);
    calls.remember(7, 2);
    assert_eq!(calls.number_of(7), Some(1));
    (3..5).for_each(|number| calls.remember(u128::from(number), number));
    assert_eq!(calls.number_of(7), None);
}

#[test]
fn what_was_forgotten_is_known_again_where_it_was_read() {
    let mut calls = Calls::new(5, 4);
    calls.remember(50, 5);
    calls.recall(3..4, &[(30, 3)]);
    assert_eq!((calls.since(), calls.number_of(30)), (5, None), "object 4 may have anything");
    calls.recall(3..5, &[(30, 3), (40, 4), (41, 4)]);
    assert_eq!((calls.since(), calls.made(30, Some(0)), calls.made(99, Some(2))), (3, Made::By(3), Made::No));
    assert_eq!(calls.made(99, Some(1)), Made::Unknown);
    calls.recall(1..3, &[(10, 1)]);
    assert_eq!((calls.since(), calls.number_of(10)), (3, None), "there is no room");
    calls.remember(60, 6);
    assert_eq!((calls.since(), calls.number_of(30), calls.number_of(40)), (4, None, Some(4)), "the oldest goes first");
}

/// What happens between clients, the workers that they ask and the log.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A client has a call, and knows an object of the log.
    Begin(usize),
    /// It is asked of a worker; the answer may be lost.
    Ask(usize, usize, bool),
    /// A worker begins with what shared storage has, from an object on: what is before that was merged.
    Start(usize, usize),
    /// A worker reads objects that come before what it knows.
    LookBack(usize, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => any::<usize>().prop_map(Step::Begin),
        6 => (any::<usize>(), any::<usize>(), any::<bool>()).prop_map(|(call, worker, is_lost)| Step::Ask(call, worker, is_lost)),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(worker, from)| Step::Start(worker, from)),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(worker, from)| Step::LookBack(worker, from)),
    ];
    vec(step, 0..120)
}

/// A worker that follows the log.
struct Worker {
    calls: Calls,
    next: usize,
}

impl Worker {
    fn new(from: usize) -> Self {
        Self { calls: Calls::new(from as u64, 4), next: from }
    }

    fn catch_up(&mut self, log: &[u128]) {
        for number in self.next..=log.len() {
            self.calls.remember(log[number - 1], number as u64);
        }
        self.next = self.next.max(log.len() + 1);
    }
}

/// A call of a client that has no answer yet.
struct Open {
    id: u128,
    after: u64,
    is_unsure: bool,
}

proptest! {
    #[test]
    fn each_call_is_made_once_whatever_is_lost_merged_and_forgotten(steps in steps()) {
        // An object has one call.
        let mut log: Vec<u128> = Vec::new();
        let mut workers = [Worker::new(1), Worker::new(1)];
        let (mut open, mut drawn) = (Vec::<Open>::new(), 0);
        for step in steps {
            match step {
                Step::Begin(known) => {
                    drawn += 1;
                    open.push(Open { id: drawn, after: (known % (log.len() + 1)) as u64, is_unsure: false });
                }
                Step::Start(worker, from) => workers[worker % 2] = Worker::new(from % (log.len() + 1) + 1),
                Step::LookBack(worker, from) => {
                    let calls = &mut workers[worker % 2].calls;
                    let objects = from as u64 % calls.since() + 1..calls.since();
                    let found: Vec<(u128, u64)> = objects.clone().map(|number| (log[number as usize - 1], number)).collect();
                    calls.recall(objects, &found);
                }
                Step::Ask(call, worker, is_lost) if !open.is_empty() => {
                    let (place, worker) = (call % open.len(), &mut workers[worker % 2]);
                    worker.catch_up(&log);
                    let call = &mut open[place];
                    match worker.calls.made(call.id, Some(call.after).filter(|_| call.is_unsure)) {
                        Made::By(number) => prop_assert_eq!(log[number as usize - 1], call.id),
                        Made::No => {
                            prop_assert!(!log.contains(&call.id), "{} is made a second time", call.id);
                            log.push(call.id);
                        }
                        // It may have been made: another worker may know.
                        Made::Unknown => {
                            prop_assert!(call.is_unsure, "what is asked for first is made");
                            continue;
                        }
                    }
                    call.is_unsure = true;
                    if !is_lost {
                        open.remove(place);
                    }
                }
                Step::Ask(..) => {}
            }
        }
    }
}
