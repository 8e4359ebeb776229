//! One asks for all who want the same at the same time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::MutexGuard;

type Last<A> = tokio::sync::Mutex<Option<A>>;

/// Questions that are being asked, each with the last answer for those who came meanwhile. An answer lives as long as somebody
/// waits for its question.
pub(crate) struct SingleFlight<Q: Eq + Hash, A>(Mutex<HashMap<Q, Arc<Last<A>>>>);

impl<Q: Eq + Hash, A> Default for SingleFlight<Q, A> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<Q: Eq + Hash + Clone, A> SingleFlight<Q, A> {
    /// A place among those who ask this.
    pub(crate) fn join(&self, question: Q) -> Asking<'_, Q, A> {
        let last = Arc::clone(self.0.lock().entry(question.clone()).or_default());
        Asking { all: self, question, last }
    }

    /// Whether nobody asks anything.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

/// One who asks.
pub(crate) struct Asking<'a, Q: Eq + Hash, A> {
    all: &'a SingleFlight<Q, A>,
    question: Q,
    last: Arc<Last<A>>,
}

impl<Q: Eq + Hash, A> Asking<'_, Q, A> {
    /// The right to ask, after those who came before; in it is what the last of them heard, to be replaced by who asks again.
    pub(crate) async fn turn(&self) -> MutexGuard<'_, Option<A>> {
        self.last.lock().await
    }
}

impl<Q: Eq + Hash, A> Drop for Asking<'_, Q, A> {
    /// The last one takes the question away.
    fn drop(&mut self) {
        let mut all = self.all.0.lock();
        debug_assert!(all.contains_key(&self.question), "what is asked is known as long as somebody asks it");
        // One in the map and this one: nobody else has it, and nobody can get it while the map is locked.
        if Arc::strong_count(&self.last) == 2 {
            all.remove(&self.question);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_asks_for_those_who_wait_and_nothing_is_left_behind() {
        let flights: SingleFlight<u32, u32> = SingleFlight::default();
        let asked = Mutex::new(0);
        let ask = async || {
            let asking = flights.join(7);
            let mut turn = asking.turn().await;
            if turn.is_none() {
                tokio::task::yield_now().await;
                *asked.lock() += 1;
                *turn = Some(42);
            }
            turn.unwrap()
        };
        assert_eq!(futures::join!(ask(), ask(), ask()), (42, 42, 42));
        assert_eq!(*asked.lock(), 1);
        assert!(flights.is_empty());
        // A later one asks anew.
        assert_eq!(ask().await, 42);
        assert_eq!(*asked.lock(), 2);
    }
}
