//! Queues in steps: what is there is the sum of what came and has not left.

use forebay_navigation::{QueueLimits, StepQueue};
use proptest::collection::vec;
use proptest::prelude::*;

const LIMITS: QueueLimits = QueueLimits { steps: 1000, calls: 4 };

#[test]
fn one_long_search_closes_a_queue_that_many_gets_leave_open() {
    let mut queue = StepQueue::default();
    let gets: Vec<u64> = (0..3).map(|_| queue.enter(100, &LIMITS).unwrap()).collect();
    assert_eq!((queue.calls(), queue.steps()), (3, 300));
    let search = queue.enter(5000, &LIMITS).expect("what it takes itself is no reason to refuse it");
    assert_eq!(queue.enter(1, &LIMITS), None);
    gets.into_iter().for_each(|get| queue.leave(get));
    assert_eq!(queue.enter(1, &LIMITS), None, "5,000 steps are before it, though of one call");
    queue.leave(search);
    assert!(queue.enter(1, &LIMITS).is_some());
}

#[test]
fn calls_of_few_steps_are_bounded_by_their_number() {
    let mut queue = StepQueue::default();
    let calls: Vec<u64> = (0..4).map(|_| queue.enter(0, &LIMITS).unwrap()).collect();
    assert_eq!((queue.enter(0, &LIMITS), calls), (None, vec![1; 4]), "a call is never for nothing");
    assert_eq!(queue.begin(7), 7, "who does not wait is let in");
    assert_eq!((queue.calls(), queue.steps()), (5, 11));
}

#[test]
#[should_panic(expected = "a call that leaves has come")]
fn a_call_that_leaves_twice_is_caught() {
    let mut queue = StepQueue::default();
    let call = queue.begin(5);
    queue.leave(call);
    queue.leave(call);
}

#[test]
#[should_panic(expected = "7 steps leave a queue of 5")]
fn more_steps_than_came_are_caught() {
    let mut queue = StepQueue::default();
    queue.begin(5);
    queue.leave(7);
}

/// What happens to a queue; numbers choose one of the calls that are there.
#[derive(Clone, Debug)]
enum Event {
    Comes(u64),
    Begins(u64),
    IsWeighed(usize, u64),
    Leaves(usize),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let steps = || prop_oneof![0u64..600, Just(u64::MAX), Just(StepQueue::CALL_STEPS_MAX)];
    vec(
        prop_oneof![
            steps().prop_map(Event::Comes),
            steps().prop_map(Event::Begins),
            (any::<usize>(), steps()).prop_map(|(which, steps)| Event::IsWeighed(which, steps)),
            any::<usize>().prop_map(Event::Leaves),
        ],
        0..60,
    )
}

proptest! {
    #[test]
    fn the_sum_is_that_of_the_calls_that_are_there_and_0_when_all_have_left(events in events()) {
        let (mut queue, mut there) = (StepQueue::default(), Vec::new());
        for event in events {
            let count = there.len().max(1);
            match event {
                Event::Comes(steps) => {
                    let is_full = there.len() >= LIMITS.calls as usize || queue.steps() >= LIMITS.steps;
                    let counts = queue.enter(steps, &LIMITS);
                    prop_assert_eq!(counts.is_none(), is_full);
                    there.extend(counts);
                }
                Event::Begins(steps) => there.push(queue.begin(steps)),
                Event::IsWeighed(which, steps) => {
                    if let Some(counts) = there.get_mut(which % count) {
                        *counts = queue.weigh(*counts, steps);
                    }
                }
                Event::Leaves(which) if !there.is_empty() => queue.leave(there.swap_remove(which % count)),
                Event::Leaves(_) => {}
            }
            prop_assert_eq!((queue.calls() as usize, queue.steps()), (there.len(), there.iter().sum::<u64>()));
            prop_assert!(there.iter().all(|counts| (1..=StepQueue::CALL_STEPS_MAX).contains(counts)));
        }
        there.into_iter().for_each(|counts| queue.leave(counts));
        prop_assert_eq!(queue, StepQueue::default());
    }
}
