//! What waits for a shard, in estimated steps of work: one long search is no short queue, and many gets are no long one.

/// How long a queue may be where one more joins it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Steps of the calls that are there.
    pub steps: u64,
    /// The calls, each of which keeps what it asks in memory.
    pub calls: u32,
}

/// What workers go by: about ten seconds of a shard without layers, at 0.1 to 0.2 us a step.
pub const QUEUE_LIMITS: QueueLimits = QueueLimits { steps: 1 << 26, calls: 1024 };

/// Calls to a shard that are under way or waiting, and the steps that they are estimated to take.
///
/// ```
/// use forebay_navigation::{QUEUE_LIMITS, StepQueue};
/// let mut queue = StepQueue::default();
/// let get = queue.enter(120, &QUEUE_LIMITS).expect("nobody is there");
/// // A search is weighed once its hits are known.
/// let search = queue.enter(500, &QUEUE_LIMITS).expect("120 steps are few");
/// let search = queue.weigh(search, 100_000_000);
/// assert_eq!((queue.calls(), queue.steps()), (2, 100_000_120));
/// assert_eq!(queue.enter(1, &QUEUE_LIMITS), None);
/// queue.leave(search);
/// queue.leave(get);
/// assert_eq!((queue.calls(), queue.steps()), (0, 0));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepQueue {
    calls: u32,
    steps: u64,
}

impl StepQueue {
    /// A call counts as no more, so that the sum of all fits.
    pub const CALL_STEPS_MAX: u64 = 1 << 30;

    /// Calls under way or waiting.
    pub fn calls(&self) -> u32 {
        self.calls
    }

    /// Their steps.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// A call comes, and is said to take so many steps: what it counts as. None where as much is there as may; how much it would take itself
    /// plays no part, so that one that is larger than the limit has its turn, too.
    pub fn enter(&mut self, steps: u64, limits: &QueueLimits) -> Option<u64> {
        (self.calls < limits.calls && self.steps < limits.steps).then(|| self.begin(steps))
    }

    /// The same for one that does not wait.
    pub fn begin(&mut self, steps: u64) -> u64 {
        let steps = counted(steps);
        self.calls += 1;
        self.steps += steps;
        debug_assert!(self.steps >= u64::from(self.calls), "each of {} calls counts", self.calls);
        steps
    }

    /// More is known of a call that counts as `before`: what it counts as from now on.
    pub fn weigh(&mut self, before: u64, steps: u64) -> u64 {
        let steps = counted(steps);
        assert!(self.calls > 0, "a call that is weighed is there");
        self.take(before);
        self.steps += steps;
        steps
    }

    /// A call that counts as so many steps has ended, or waits no more.
    pub fn leave(&mut self, steps: u64) {
        assert!(self.calls > 0, "a call that leaves has come");
        self.take(steps);
        self.calls -= 1;
        debug_assert!(self.calls > 0 || self.steps == 0, "with the last call its steps are gone");
    }

    fn take(&mut self, steps: u64) {
        assert!(self.steps >= steps, "{steps} steps leave a queue of {}", self.steps);
        self.steps -= steps;
    }
}

fn counted(steps: u64) -> u64 {
    steps.clamp(1, StepQueue::CALL_STEPS_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

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
}
