use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use tonic::Status;

/// Things that a client comes back for with another call. Bounded: what nobody came for goes after a while, and a full
/// shelf takes nothing more.
pub(crate) struct Shelf<T> {
    things: Mutex<HashMap<[u8; 16], (Instant, T)>>,
    max: usize,
    idle: Duration,
}

impl<T> Shelf<T> {
    pub(crate) fn new(max: usize, idle: Duration) -> Self {
        Self { things: Mutex::default(), max, idle }
    }

    /// Keeps a thing; gives the handle that it is asked for with.
    pub(crate) fn put(&self, thing: T) -> Result<Bytes, Status> {
        if self.things.lock().len() >= self.max {
            self.sweep();
        }
        let mut things = self.things.lock();
        if things.len() >= self.max {
            return Err(Status::resource_exhausted(format!("{} statements are open: close some, then try again", self.max)));
        }
        let id: [u8; 16] = forebay_runtime::random();
        things.insert(id, (forebay_runtime::now(), thing));
        Ok(Bytes::copy_from_slice(&id))
    }

    /// Takes a thing off.
    pub(crate) fn take(&self, handle: &[u8]) -> Option<T> {
        self.things.lock().remove(handle).map(|(_, thing)| thing)
    }

    /// Looks at a thing, or changes it.
    pub(crate) fn with<R>(&self, handle: &[u8], look: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut things = self.things.lock();
        let (at, thing) = things.get_mut(handle)?;
        *at = forebay_runtime::now();
        Some(look(thing))
    }

    /// Lets go of what nobody came for.
    pub(crate) fn sweep(&self) {
        // Dropped after the lock: a query that ends has work of its own to do.
        let stale: Vec<_> = self.things.lock().extract_if(|_, (at, _)| at.elapsed() > self.idle).collect();
        drop(stale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_shelf_takes_nothing_until_something_is_stale() {
        let shelf = Shelf::new(2, Duration::from_millis(20));
        let first = shelf.put(1).unwrap();
        shelf.put(2).unwrap();
        assert_eq!(shelf.put(3).unwrap_err().code(), tonic::Code::ResourceExhausted);
        std::thread::sleep(Duration::from_millis(30));
        let fourth = shelf.put(4).unwrap();
        assert_eq!((shelf.take(&first), shelf.with(&fourth, |thing| *thing)), (None, Some(4)));
        assert_eq!((shelf.take(&fourth), shelf.take(&fourth)), (Some(4), None));
    }
}
