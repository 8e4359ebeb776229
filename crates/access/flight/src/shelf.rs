//! Keeps queries and prepared statements between a client's calls, by owner and bounded, until they are asked for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::auth::Shown;

/// Things that a client comes back for with another call, each for who left it and nobody else. Bounded: what nobody came for
/// goes after a while, and on a full shelf the oldest thing of who has most there, so that nobody keeps others out.
pub(crate) struct Shelf<T> {
    things: Mutex<HashMap<[u8; 16], Thing<T>>>,
    max: usize,
    idle: Duration,
}

struct Thing<T> {
    owner: Arc<str>,
    used: Instant,
    thing: T,
}

impl<T> Shelf<T> {
    pub(crate) fn new(max: usize, idle: Duration) -> Self {
        assert!(max > 0, "a shelf has room for something");
        Self { things: Mutex::default(), max, idle }
    }

    /// Keeps a thing; gives the handle that its owner asks for it with.
    pub(crate) fn put(&self, owner: &Shown, thing: T) -> Bytes {
        let id: [u8; 16] = forebay_runtime::random();
        let thing = Thing { owner: Arc::clone(&owner.0), used: forebay_runtime::now(), thing };
        // Dropped after the lock: a query that ends has work of its own to do.
        let _gone = {
            let mut things = self.things.lock();
            let gone = (things.len() >= self.max).then(|| oldest_of_most(&things).and_then(|id| things.remove(&id)));
            things.insert(id, thing);
            assert!(things.len() <= self.max, "{} things are on a shelf for {}", things.len(), self.max);
            gone
        };
        Bytes::copy_from_slice(&id)
    }

    /// Takes a thing off.
    pub(crate) fn take(&self, owner: &Shown, handle: &[u8]) -> Option<T> {
        let mut things = self.things.lock();
        things.get(handle).filter(|thing| thing.owner == owner.0)?;
        things.remove(handle).map(|thing| thing.thing)
    }

    /// Looks at a thing, or changes it.
    pub(crate) fn with<R>(&self, owner: &Shown, handle: &[u8], look: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut things = self.things.lock();
        let thing = things.get_mut(handle).filter(|thing| thing.owner == owner.0)?;
        thing.used = forebay_runtime::now();
        Some(look(&mut thing.thing))
    }

    /// Lets go of what nobody came for.
    pub(crate) fn sweep(&self) {
        let stale: Vec<_> = self.things.lock().extract_if(|_, thing| thing.used.elapsed() > self.idle).collect();
        drop(stale);
    }
}

/// What goes first: of the owner with the most things, what was not used for longest.
fn oldest_of_most<T>(things: &HashMap<[u8; 16], Thing<T>>) -> Option<[u8; 16]> {
    let mut counts = HashMap::<&Arc<str>, usize>::new();
    for thing in things.values() {
        *counts.entry(&thing.owner).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count)?.0;
    let theirs = things.iter().filter(|(_, thing)| thing.owner == *most);
    theirs.min_by_key(|(_, thing)| thing.used).map(|(id, _)| *id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(who: &str) -> Shown {
        Shown(who.into())
    }

    #[test]
    fn who_leaves_many_things_keeps_nobody_out() {
        let shelf = Shelf::new(3, Duration::from_secs(60));
        let (many, few) = (shown("many"), shown("few"));
        let first = shelf.put(&few, 0);
        let left: Vec<_> = (1..=10).map(|thing| shelf.put(&many, thing)).collect();
        let second = shelf.put(&few, 11);
        assert_eq!((shelf.take(&few, &first), shelf.take(&few, &second)), (Some(0), Some(11)));
        let kept: Vec<_> = left.iter().filter_map(|handle| shelf.take(&many, handle)).collect();
        assert_eq!(kept, [10], "the newest of who left most");
    }

    #[test]
    #[should_panic(expected = "a shelf has room for something")]
    fn a_shelf_without_room_is_planted() {
        drop(Shelf::<()>::new(0, Duration::ZERO));
    }

    #[test]
    #[should_panic(expected = "3 things are on a shelf for 1")]
    fn things_that_nobody_put_there_are_planted() {
        let mut shelf = Shelf::new(3, Duration::from_secs(60));
        (0..3).for_each(|thing| drop(shelf.put(&shown("owner"), thing)));
        shelf.max = 1;
        shelf.put(&shown("owner"), 3);
    }

    #[test]
    fn a_thing_is_given_to_who_left_it_alone_and_once() {
        let shelf = Shelf::new(2, Duration::from_millis(20));
        let (owner, other) = (shown("owner"), shown("other"));
        let handle = shelf.put(&owner, 1);
        assert_eq!((shelf.with(&other, &handle, |thing| *thing), shelf.take(&other, &handle)), (None, None));
        assert_eq!((shelf.with(&owner, &handle, |thing| *thing), shelf.take(&owner, &handle)), (Some(1), Some(1)));
        assert_eq!(shelf.take(&owner, &handle), None);
        let stale = shelf.put(&owner, 2);
        std::thread::sleep(Duration::from_millis(30));
        shelf.sweep();
        assert_eq!(shelf.take(&owner, &stale), None);
    }
}
