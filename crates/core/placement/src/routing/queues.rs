//! What a client knows of the queues that it chooses between.

/// What a client knows of one worker's queue: what its answers carried, and the client's own requests that aren't
/// answered yet.
///
/// An answer is old news soon. A queue changes within a few requests, and clients that all believe the same old length
/// send too much to the worker that was idle: in simulation, with 16 clients, taking the last length as it is has a
/// median a third longer than this has. So what was heard last fades within [`Self::FADES_US`] towards what is usual of
/// that worker, which is what tells a slow one, and that fades in turn when the worker isn't heard of any more.
///
/// Time is an argument, in microseconds from any origin.
///
/// ```
/// use forebay_placement::QueueView;
///
/// let mut view = QueueView::default();
/// view.sent();
/// assert_eq!(view.expected(0), Some(100), "its own one, in hundredths");
/// view.answered(10_000, 8);
/// assert!(view.expected(10_000) > view.expected(40_000));
/// assert_eq!(view.expected(70_000_000), None, "that was long ago");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueView {
    /// The client's own requests that are on their way.
    own: u32,
    /// Requests of others in the queue when the last answer left it.
    last: f32,
    /// The same, on average over a while.
    usual: f32,
    heard_us: Option<u64>,
}

impl QueueView {
    /// How fast the last length heard loses its meaning.
    pub const FADES_US: u64 = 30_000;
    /// Over how long an average is taken, and how fast it loses its meaning.
    pub const USUAL_US: u64 = 10_000_000;
    /// Not hearing of a worker for so long is knowing nothing.
    pub const FORGOTTEN_US: u64 = 60_000_000;

    /// A request left for the worker.
    pub fn sent(&mut self) {
        self.own += 1;
    }

    /// An answer came, and told how many requests waited at the worker when it left.
    pub fn answered(&mut self, now_us: u64, waiting: u32) {
        self.own = self.own.saturating_sub(1);
        self.told(now_us, waiting);
    }

    /// The worker was asked how many requests wait there, this client's among them, and has told.
    pub fn told(&mut self, now_us: u64, waiting: u32) {
        let others = waiting.saturating_sub(self.own) as f32;
        self.usual = match self.heard_us {
            Some(before) => others + (self.usual - others) * fading(now_us.saturating_sub(before), Self::USUAL_US),
            None => others,
        };
        (self.last, self.heard_us) = (others, Some(now_us));
    }

    /// Whether the worker was heard of within so many microseconds.
    pub fn is_fresh(&self, now_us: u64, within_us: u64) -> bool {
        self.heard_us.is_some_and(|heard| now_us.saturating_sub(heard) <= within_us)
    }

    /// A request ended without an answer.
    pub fn gave_up(&mut self) {
        self.own = self.own.saturating_sub(1);
    }

    /// Requests that are to be expected in the queue, in hundredths, for [`Candidate::queue`](crate::Candidate::queue);
    /// none when nothing is known.
    pub fn expected(&self, now_us: u64) -> Option<u32> {
        let age = self.heard_us.map(|heard| now_us.saturating_sub(heard)).filter(|age| *age < Self::FORGOTTEN_US);
        let others = age.map(|age| {
            let usual = self.usual * fading(age, Self::USUAL_US);
            usual + (self.last - usual) * fading(age, Self::FADES_US)
        });
        match (others, self.own) {
            (None, 0) => None,
            (others, own) => Some(((others.unwrap_or(0.0) + own as f32) * 100.0) as u32),
        }
    }
}

/// What is left of 1 after `age`.
fn fading(age_us: u64, fades_us: u64) -> f32 {
    (-(age_us as f32) / fades_us as f32).exp()
}
