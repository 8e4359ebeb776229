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
    held: Mutex<Held<T>>,
    max: usize,
    bytes_max: usize,
    idle: Duration,
}

struct Held<T> {
    things: HashMap<[u8; 16], Thing<T>>,
    /// Of all of them.
    bytes: usize,
}

struct Thing<T> {
    owner: Arc<str>,
    used: Instant,
    bytes: usize,
    thing: T,
}

impl<T> Held<T> {
    /// Takes a thing out, if it is this one's.
    fn remove(&mut self, owner: &str, id: &[u8]) -> Option<Thing<T>> {
        self.things.get(id).filter(|thing| *thing.owner == *owner)?;
        let thing = self.things.remove(id)?;
        self.bytes -= thing.bytes;
        Some(thing)
    }

    /// Takes out what goes first: of the owner with most, as `weight` has it, what was not used for longest.
    fn remove_oldest_of_most(&mut self, weight: impl Fn(&Thing<T>) -> usize) -> Option<Thing<T>> {
        let mut weights = HashMap::<&Arc<str>, usize>::new();
        for thing in self.things.values() {
            *weights.entry(&thing.owner).or_default() += weight(thing);
        }
        let most = weights.into_iter().max_by_key(|(_, weight)| *weight)?.0;
        let theirs = self.things.iter().filter(|(_, thing)| thing.owner == *most);
        let (id, owner) = theirs.min_by_key(|(_, thing)| thing.used).map(|(id, thing)| (*id, Arc::clone(&thing.owner)))?;
        self.remove(&owner, &id)
    }
}

impl<T> Shelf<T> {
    /// With room for so many things, of so many bytes together.
    pub(crate) fn new(max: usize, bytes_max: usize, idle: Duration) -> Self {
        assert!(max > 0, "a shelf has room for something");
        Self { held: Mutex::new(Held { things: HashMap::new(), bytes: 0 }), max, bytes_max, idle }
    }

    /// Keeps a thing that takes so many bytes; gives the handle that its owner asks for it with.
    pub(crate) fn put(&self, owner: &Shown, bytes: usize, thing: T) -> Bytes {
        let id: [u8; 16] = forebay_runtime::random();
        // Dropped after the lock: a query that ends has work of its own to do.
        let _gone = {
            let mut held = self.held.lock();
            self.insert(&mut held, id, Thing { owner: Arc::clone(&owner.0), used: forebay_runtime::now(), bytes, thing })
        };
        Bytes::copy_from_slice(&id)
    }

    /// Changes a thing, which takes so many bytes then; none where there is no such thing.
    pub(crate) fn change(&self, owner: &Shown, handle: &[u8], bytes: usize, change: impl FnOnce(&mut T)) -> Option<()> {
        let id: [u8; 16] = handle.try_into().ok()?;
        let _gone = {
            let mut held = self.held.lock();
            let mut thing = held.remove(&owner.0, handle)?;
            change(&mut thing.thing);
            self.insert(&mut held, id, Thing { used: forebay_runtime::now(), bytes, ..thing })
        };
        Some(())
    }

    /// Puts a thing where others make room for it; gives those. One that is larger than the shelf has it alone.
    fn insert(&self, held: &mut Held<T>, id: [u8; 16], thing: Thing<T>) -> Vec<Thing<T>> {
        let mut gone = Vec::new();
        while held.things.len() >= self.max {
            gone.extend(held.remove_oldest_of_most(|_| 1));
        }
        while !held.things.is_empty() && held.bytes + thing.bytes > self.bytes_max {
            gone.extend(held.remove_oldest_of_most(|thing| thing.bytes));
        }
        held.bytes += thing.bytes;
        held.things.insert(id, thing);
        self.check(held);
        gone
    }

    fn check(&self, held: &Held<T>) {
        let (things, bytes) = (held.things.len(), held.bytes);
        assert!(things <= self.max, "{things} things are on a shelf for {}", self.max);
        assert!(bytes <= self.bytes_max || things == 1, "{bytes} bytes are on a shelf for {}", self.bytes_max);
    }

    /// Takes a thing off.
    pub(crate) fn take(&self, owner: &Shown, handle: &[u8]) -> Option<T> {
        self.held.lock().remove(&owner.0, handle).map(|thing| thing.thing)
    }

    /// Looks at a thing.
    pub(crate) fn with<R>(&self, owner: &Shown, handle: &[u8], look: impl FnOnce(&T) -> R) -> Option<R> {
        let mut held = self.held.lock();
        let thing = held.things.get_mut(handle).filter(|thing| thing.owner == owner.0)?;
        thing.used = forebay_runtime::now();
        Some(look(&thing.thing))
    }

    /// Lets go of what nobody came for.
    pub(crate) fn sweep(&self) {
        let stale: Vec<_> = {
            let mut held = self.held.lock();
            let stale: Vec<_> = held.things.extract_if(|_, thing| thing.used.elapsed() > self.idle).collect();
            held.bytes -= stale.iter().map(|(_, thing)| thing.bytes).sum::<usize>();
            stale
        };
        drop(stale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(who: &str) -> Shown {
        Shown(who.into())
    }

    #[test]
    fn who_leaves_many_things_keeps_nobody_out() {
        let shelf = Shelf::new(3, 0, Duration::from_secs(60));
        let (many, few) = (shown("many"), shown("few"));
        let first = shelf.put(&few, 0, 0);
        let left: Vec<_> = (1..=10).map(|thing| shelf.put(&many, 0, thing)).collect();
        let second = shelf.put(&few, 0, 11);
        assert_eq!((shelf.take(&few, &first), shelf.take(&few, &second)), (Some(0), Some(11)));
        let kept: Vec<_> = left.iter().filter_map(|handle| shelf.take(&many, handle)).collect();
        assert_eq!(kept, [10], "the newest of who left most");
    }

    #[test]
    fn who_leaves_large_things_keeps_nobody_out() {
        let shelf = Shelf::new(100, 10, Duration::from_secs(60));
        let (much, little) = (shown("much"), shown("little"));
        let small = [shelf.put(&little, 1, 0), shelf.put(&little, 1, 1), shelf.put(&little, 1, 2)];
        let large = [shelf.put(&much, 4, 3), shelf.put(&much, 3, 4), shelf.put(&much, 4, 5)];
        let is_there = |who: &Shown, handle: &Bytes| shelf.with(who, handle, |_| ()).is_some();
        assert_eq!(large.each_ref().map(|handle| is_there(&much, handle)), [false, true, true]);
        // What grows is heavier from then on.
        assert_eq!(shelf.change(&much, &large[1], 7, |thing| *thing = 7), Some(()));
        assert_eq!(shelf.change(&little, &large[1], 1, |_| ()), None);
        assert_eq!(large.each_ref().map(|handle| is_there(&much, handle)), [false, true, false]);
        assert!(small.iter().all(|handle| is_there(&little, handle)));
        assert_eq!((shelf.take(&much, &large[1]), shelf.held.lock().bytes), (Some(7), 3));
        // Alone it may be larger than the shelf.
        shelf.put(&much, 11, 8);
        let held = shelf.held.lock();
        assert_eq!((held.bytes, held.things.len()), (11, 1));
    }

    #[test]
    #[should_panic(expected = "a shelf has room for something")]
    fn a_shelf_without_room_is_planted() {
        drop(Shelf::<()>::new(0, 0, Duration::ZERO));
    }

    #[test]
    #[should_panic(expected = "3 things are on a shelf for 1")]
    fn things_that_nobody_put_there_are_planted() {
        let mut shelf = Shelf::new(3, 0, Duration::from_secs(60));
        (0..3).for_each(|thing| drop(shelf.put(&shown("owner"), 0, thing)));
        shelf.max = 1;
        shelf.check(&shelf.held.lock());
    }

    #[test]
    fn a_thing_is_given_to_who_left_it_alone_and_once() {
        let shelf = Shelf::new(2, 9, Duration::from_millis(20));
        let (owner, other) = (shown("owner"), shown("other"));
        let handle = shelf.put(&owner, 1, 1);
        assert_eq!((shelf.with(&other, &handle, |thing| *thing), shelf.take(&other, &handle)), (None, None));
        assert_eq!((shelf.with(&owner, &handle, |thing| *thing), shelf.take(&owner, &handle)), (Some(1), Some(1)));
        assert_eq!(shelf.take(&owner, &handle), None);
        let stale = shelf.put(&owner, 2, 2);
        std::thread::sleep(Duration::from_millis(30));
        shelf.sweep();
        assert_eq!((shelf.take(&owner, &stale), shelf.held.lock().bytes), (None, 0));
    }
}
