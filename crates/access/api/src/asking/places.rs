//! How many requests of a kind there are at a time.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::StatusCode;
use forebay_types::Error;
use parking_lot::Mutex;

use crate::refusal::Refusal;

/// The requests that are under way, by who asks.
pub(crate) struct Places {
    most: PlacesMax,
    taken: Mutex<HashMap<Arc<str>, usize>>,
}

/// How many there are at most.
#[derive(Clone, Copy)]
pub(crate) struct PlacesMax {
    /// Of all callers at once.
    pub(crate) all: usize,
    /// Of one caller at once: one alone leaves room for others.
    pub(crate) of_one: usize,
}

/// A request that is under way.
pub(crate) struct Place {
    places: Arc<Places>,
    who: Arc<str>,
}

impl Places {
    pub(crate) fn new(most: PlacesMax) -> Arc<Self> {
        assert!(0 < most.of_one && most.of_one <= most.all, "one caller has places, and no more than there are");
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// A place for one more request; 429 where the caller has all that one may have, 503 where all together have.
    pub(crate) fn take(self: &Arc<Self>, who: &str) -> Result<Place, Refusal> {
        let mut taken = self.taken.lock();
        let of_one = taken.get(who).copied().unwrap_or(0);
        if of_one >= self.most.of_one {
            let message = format!("{who} has {of_one} requests under way already: wait for answers, or ask more with each");
            return Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, Error::retry(message)));
        }
        if taken.values().sum::<usize>() >= self.most.all {
            return Err(Error::retry(format!("{} requests are under way already: ask again later", self.most.all)).into());
        }
        let who: Arc<str> = who.into();
        *taken.entry(Arc::clone(&who)).or_default() += 1;
        debug_assert!(
            taken.values().all(|of_one| (1..=self.most.of_one).contains(of_one)),
            "callers have places, and none too many"
        );
        debug_assert!(taken.values().sum::<usize>() <= self.most.all, "more places are taken than there are");
        Ok(Place { places: Arc::clone(self), who })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        let of_one = taken.get_mut(&self.who).expect("a place that was taken");
        assert!(*of_one > 0, "a place is given back once");
        *of_one -= 1;
        if *of_one == 0 {
            taken.remove(&self.who);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_leaves_room_for_others_and_all_together_have_an_end() {
        let places = Places::new(PlacesMax { all: 256, of_one: 64 });
        let refused = |who: &str| places.take(who).err().map(|refusal| refusal.status().as_u16());
        let mut of_a: Vec<Place> = (0..64).map(|_| places.take("a").unwrap()).collect();
        assert_eq!(refused("a"), Some(429));
        let others = ["b", "c", "d"].map(|who| (0..64).map(|_| places.take(who).unwrap()).collect::<Vec<_>>());
        assert_eq!((refused("a"), refused("e")), (Some(429), Some(503)));
        of_a.pop();
        assert_eq!(refused("e"), None, "and it was given back at once");
        drop((of_a, others));
        assert!(places.taken.lock().is_empty(), "nothing is kept of who has gone");
    }

    #[test]
    #[should_panic(expected = "a place is given back once")]
    fn a_place_that_was_given_back_already_is_planted() {
        let places = Places::new(PlacesMax { all: 2, of_one: 1 });
        let place = places.take("a").ok();
        places.taken.lock().insert("a".into(), 0);
        drop(place);
    }

    #[test]
    #[should_panic(expected = "one caller has places, and no more than there are")]
    fn more_places_for_one_than_for_all_are_planted() {
        Places::new(PlacesMax { all: 1, of_one: 2 });
    }
}
