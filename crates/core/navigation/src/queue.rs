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
        steps
    }

    /// More is known of a call that counts as `before`: what it counts as from now on.
    pub fn weigh(&mut self, before: u64, steps: u64) -> u64 {
        let steps = counted(steps);
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
