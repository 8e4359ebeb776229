//! What a shard's answers took, and what the next ones are presumed to take before more is known.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use super::answer::Questions;

/// What a call is presumed to take at most, in microseconds, that is answered by a thread which other calls wait for: about what a
/// change of threads takes on a busy machine. A shard whose bytes have to come from disk is found out by its time.
const AT_HAND_US: f64 = 100.0;
/// How much of what was known of searches stays with a new one.
const KEEP: f64 = 0.9;

/// What its answers took.
pub(super) struct Spent {
    answered: AtomicU64,
    /// Estimated steps of a get.
    get_steps: u64,
    /// What a get takes.
    pace: Mutex<Pace>,
    /// Estimated steps of a question that is none, aged.
    search_steps: Mutex<f64>,
}

/// What a get takes, aged; unknown before the first one.
#[derive(Default)]
struct Pace(Option<f64>);

impl Pace {
    /// How much of what was known stays with a new measurement.
    const KEEP: f64 = 0.9;
    /// A thread that has lost its turn to others says little about the shard, however long it did.
    const US_MAX: f64 = 500.0;

    fn answered(&mut self, us: f64) {
        let us = us.min(Self::US_MAX);
        self.0 = Some(self.0.map_or(us, |before| before * Self::KEEP + us * (1.0 - Self::KEEP)));
    }

    fn of(&self, gets: usize) -> f64 {
        self.0.map_or(f64::INFINITY, |us| us * gets as f64)
    }
}

impl Spent {
    /// Of a shard of which a get is estimated to take so many steps.
    pub(super) fn new(get_steps: u64) -> Self {
        // Until there was a search, it is taken for a get: its own weight is known soon.
        Self { answered: AtomicU64::new(0), get_steps, pace: Mutex::default(), search_steps: Mutex::new(get_steps as f64) }
    }

    /// Steps that questions are presumed to take: of gets these are what they count as.
    pub(super) fn presumed(&self, questions: &Questions) -> u64 {
        let each = if questions.are_gets { self.get_steps } else { *self.search_steps.lock() as u64 };
        each.max(1).saturating_mul(questions.len() as u64)
    }

    /// Questions of so many steps were answered in so many microseconds.
    pub(super) fn answered(&self, questions: &Questions, steps: u64, us: f64) {
        self.answered.fetch_add(1, Relaxed);
        let count = questions.len().max(1) as f64;
        match questions.are_gets {
            true => self.pace.lock().answered(us / count),
            false => {
                let mut search = self.search_steps.lock();
                *search = *search * KEEP + steps as f64 / count * (1.0 - KEEP);
            }
        }
    }

    /// Whether questions are gets that are presumed to be answered at once.
    pub(super) fn is_quick(&self, questions: &Questions) -> bool {
        questions.are_gets && self.pace.lock().of(questions.len()) <= AT_HAND_US
    }

    /// Calls that were answered.
    pub(super) fn calls(&self) -> u64 {
        self.answered.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shards::answer::What;

    fn questions(are_gets: bool, count: usize) -> Questions {
        Questions { what: What::Lines(vec![bytes::Bytes::new(); count]), are_gets }
    }

    #[test]
    fn a_get_is_quick_once_it_was_and_not_when_its_bytes_come_from_disk() {
        let mut pace = Pace::default();
        assert!(pace.of(1) > AT_HAND_US, "nothing is known yet");
        pace.answered(5.0);
        assert!(pace.of(16) <= AT_HAND_US && pace.of(32) > AT_HAND_US);
        pace.answered(50_000.0);
        assert!(pace.of(1) <= AT_HAND_US, "one that had to wait is none of many");
        (0..3).for_each(|_| pace.answered(400.0));
        assert!(pace.of(1) > AT_HAND_US);
    }

    #[test]
    fn a_search_is_presumed_to_be_like_those_before_it_and_a_get_like_its_record() {
        let spent = Spent::new(120);
        let presumed = [(true, 3), (false, 3), (true, 0)].map(|(are_gets, count)| spent.presumed(&questions(are_gets, count)));
        assert_eq!(presumed, [360, 360, 0]);
        (0..100).for_each(|_| spent.answered(&questions(false, 2), 80_000, 1e5));
        let search = spent.presumed(&questions(false, 1));
        assert!((39_000..=40_000).contains(&search), "{search}");
        assert_eq!((spent.presumed(&questions(true, 1)), spent.calls()), (120, 100), "gets are what they were");
        assert!(!spent.is_quick(&questions(true, 1)), "none was answered");
        spent.answered(&questions(true, 10), 1200, 50.0);
        assert!(spent.is_quick(&questions(true, 10)) && !spent.is_quick(&questions(false, 1)));
    }
}
