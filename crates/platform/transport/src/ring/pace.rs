//! Whether a call keeps its thread until its answer is there, or lets others of the thread go on meanwhile.

use std::cell::Cell;

/// Of calls that come one after the other, each so many-th lets others go on: were there any, they show by that. It takes longer
/// than one that spins, and is less than one in a hundred.
const TRIED_EVERY: u64 = 128;
/// So many calls more do so after one during which others were made.
const TOGETHER: u32 = 64;

thread_local! {
    static OF_THREAD: Cell<Pace> = const { Cell::new(Pace { begun: 0, together: 0 }) };
}

/// What is known of a thread's calls. One that spins for its answer is over before the thread makes another, so that calls which
/// could be in flight together never are; one that lets others go on is a look at whether there are any. Where calls come one after the other
/// spinning is sooner, and where several are in flight the server answers one while the next is made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// Calls of the thread so far.
    begun: u64,
    /// Calls that are still to let others go on.
    together: u32,
}

impl Pace {
    /// Changes what is known of this thread's calls.
    pub(super) fn of_thread<T>(change: impl FnOnce(&mut Self) -> T) -> T {
        let mut pace = OF_THREAD.get();
        let changed = change(&mut pace);
        OF_THREAD.set(pace);
        changed
    }

    /// A call begins; its number where it is to let others go on.
    pub(super) fn begin(&mut self) -> Option<u64> {
        self.begun += 1;
        let goes_on = self.together > 0;
        self.together = self.together.saturating_sub(1);
        (goes_on || self.begun.is_multiple_of(TRIED_EVERY)).then_some(self.begun)
    }

    /// A call that has let others go on has its answer.
    pub(super) fn end(&mut self, number: u64) {
        // Another number may be another thread's, which the call has come from.
        if self.begun != number {
            self.together = TOGETHER;
        }
    }

    /// The next calls let others go on.
    #[cfg(all(test, not(feature = "models")))]
    pub(super) fn together(calls: u32) -> Self {
        Self { begun: 0, together: calls }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of so many calls, one after the other, those that let others go on.
    fn one_by_one(pace: &mut Pace, calls: u64) -> usize {
        let mut begin_and_end = || pace.begin().map(|number| pace.end(number));
        (0..calls).filter(|_| begin_and_end().is_some()).count()
    }

    #[test]
    fn calls_that_come_one_after_the_other_spin_but_for_a_few() {
        assert_eq!(one_by_one(&mut Pace::default(), 10 * TRIED_EVERY), 10);
    }

    #[test]
    fn calls_let_others_go_on_while_there_are_some() {
        let mut pace = Pace::default();
        let first = (0..TRIED_EVERY).find_map(|_| pace.begin()).unwrap();
        assert_eq!(pace.begin(), None, "that others are made is not known yet");
        pace.end(first);
        for _ in 0..100 {
            let made: Vec<u64> = (0..16).filter_map(|_| pace.begin()).collect();
            assert_eq!(made.len(), 16, "all of them");
            made.into_iter().for_each(|number| pace.end(number));
        }
        let since = one_by_one(&mut pace, 1_000);
        assert!((60..90).contains(&since), "{since} did when there were no others any more");
    }
}
