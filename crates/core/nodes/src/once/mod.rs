//! Calls that take effect once, though who asked can't know whether they did when an answer is lost.
//!
//! A client has slots, and in each one call at a time, with a number of its own: so the last call of each slot is all that a worker has to
//! remember. Who has lost an answer asks what became of the call, and makes it anew only when it was not done. From then on it never is under
//! its number, also when its first message comes late.

mod slots;

use std::collections::HashMap;
use std::mem::{replace, take};
use std::time::Duration;

pub use slots::{CallNumber, Slots};

/// Slots that are remembered in each of two parts.
const SLOTS_MAX: usize = 1 << 16;
/// How long a call is remembered at least, while there are no more slots than that. A client asks for 30 s, each time for as long as it waits for an
/// answer (30 s where nobody says otherwise), and a call that comes late does so within seconds: the worker's lease is over before.
const REMEMBERED_FOR: Duration = Duration::from_secs(300);

/// A client, and one of its slots.
type Slot = (u64, u32);

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled<A> {
    /// It was done, with this answer.
    Done(A),
    /// It was not done, and will not be.
    Undone,
    /// Too long ago: it may be done or not.
    Unknown,
}

/// The last call of a slot.
#[derive(Clone, Debug)]
struct Last<A> {
    turn: u64,
    /// None of one that was not done, and never is.
    answer: Option<A>,
}

/// The calls that a worker has answered: the last one of each slot. Changed under the lock of what calls change.
///
/// ```
/// use std::time::Duration;
///
/// use forebay_nodes::{Once, Settled, Slots};
///
/// let (mut slots, mut once) = (Slots::new(7), Once::default());
/// let (first, second, now) = (slots.draw(), slots.draw(), Duration::from_secs(1));
/// once.done(first, "answer", || now);
/// assert_eq!(once.settle(first, now, now), Settled::Done("answer"));
/// assert_eq!(once.settle(second, now, now), Settled::Undone);
/// assert!(!once.is_open(second), "its message comes late");
/// ```
#[derive(Clone, Debug)]
pub struct Once<A> {
    young: HashMap<Slot, Last<A>>,
    /// Those before; one that is in both is the one in `young`.
    old: HashMap<Slot, Last<A>>,
    slots_max: usize,
    /// When `young` was empty.
    began: Duration,
    /// What was done until then may be forgotten.
    forgotten: Option<Duration>,
}

impl<A> Default for Once<A> {
    fn default() -> Self {
        Self::with_slots(SLOTS_MAX)
    }
}

impl<A> Once<A> {
    /// Nothing is done yet; with room for so many slots twice.
    pub fn with_slots(slots_max: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), slots_max, began: Duration::ZERO, forgotten: None }
    }

    /// Whether a call may take effect: it has not, nobody was told that it never will, and no later one of its slot has.
    pub fn is_open(&self, number: CallNumber) -> bool {
        self.last(number).is_none_or(|last| last.turn < number.turn)
    }

    /// A call has taken effect. `now` is the time on a clock that starts with this.
    pub fn done(&mut self, number: CallNumber, answer: A, now: impl FnOnce() -> Duration) {
        debug_assert!(self.is_open(number), "{number:?} takes effect a second time");
        self.keep(number, Some(answer), now);
    }

    /// What became of a call that was sent no longer ago than `within`, whenever its client hears this. One that was not done never is from now on.
    pub fn settle(&mut self, number: CallNumber, within: Duration, now: Duration) -> Settled<A>
    where
        A: Clone,
    {
        match self.last(number) {
            Some(last) if last.turn == number.turn => return last.answer.clone().map_or(Settled::Undone, Settled::Done),
            // A client has one call at a time in a slot.
            Some(last) if last.turn > number.turn => return Settled::Unknown,
            _ => {}
        }
        if self.forgotten.is_some_and(|until| now.saturating_sub(within) <= until) {
            return Settled::Unknown;
        }
        self.keep(number, None, || now);
        debug_assert!(!self.is_open(number), "{number:?} may still take effect");
        Settled::Undone
    }

    /// What calls have changed is lost: none of them is done. Those that were settled stay so.
    pub fn lose(&mut self) {
        self.young.values_mut().chain(self.old.values_mut()).for_each(|last| last.answer = None);
    }

    /// Forgets what was done long ago. To be called every now and then.
    pub fn age(&mut self, now: Duration) {
        if now.saturating_sub(self.began) >= REMEMBERED_FOR {
            self.turn_over(now);
        }
    }

    fn last(&self, number: CallNumber) -> Option<&Last<A>> {
        let slot = (number.client, number.slot);
        self.young.get(&slot).or_else(|| self.old.get(&slot))
    }

    fn keep(&mut self, number: CallNumber, answer: Option<A>, now: impl FnOnce() -> Duration) {
        self.young.insert((number.client, number.slot), Last { turn: number.turn, answer });
        if self.young.len() > self.slots_max {
            self.turn_over(now());
        }
    }

    fn turn_over(&mut self, now: Duration) {
        assert!(now >= self.began, "time goes on: {now:?} is before {:?}", self.began);
        let dropped = replace(&mut self.old, take(&mut self.young));
        if !dropped.is_empty() {
            self.forgotten = Some(self.began);
        }
        self.began = now;
    }
}
