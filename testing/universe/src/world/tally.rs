//! What queries came to, and what schedulers and executors say that they have at hand.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Of all schedulers and executors of a world.
#[derive(Default)]
pub(super) struct Tally {
    counts: Mutex<BTreeMap<&'static str, u64>>,
    /// By process; none where it has nothing.
    at_hand: Mutex<BTreeMap<String, Option<String>>>,
}

impl Tally {
    pub(super) fn count(&self, what: &'static str, more: u64) {
        *self.counts.lock().entry(what).or_default() += more;
    }

    pub(super) fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.counts.lock().clone()
    }

    /// What a process has at hand now.
    pub(super) fn says(&self, process: &str, at_hand: Option<String>) {
        self.at_hand.lock().insert(process.to_owned(), at_hand);
    }

    /// What is at hand, and where.
    pub(super) fn left(&self) -> Vec<String> {
        let at_hand = self.at_hand.lock();
        at_hand.iter().filter_map(|(process, what)| Some(format!("{process}: {}", what.as_ref()?))).collect()
    }
}
