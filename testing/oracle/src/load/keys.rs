//! Keys of records that are changed for a while each, then the next ones: so histories stay short enough to be searched for an order.

/// Some keys that are changed now, each with the calls on it; and the next one.
#[derive(Debug, Default)]
pub struct Keys {
    now: Vec<(u64, u32)>,
    next: u64,
    calls: u32,
}

impl Keys {
    /// So many at a time from a first one on, each left after so many calls.
    pub fn new(first: u64, count: usize, calls: u32) -> Self {
        let next = first + count as u64;
        Self { now: (first..next).map(|key| (key, 0)).collect(), next, calls }
    }

    /// The key of a place, for one call more.
    pub fn at(&mut self, place: usize) -> u64 {
        if self.now[place].1 == self.calls {
            self.leave(self.now[place].0);
        }
        self.now[place].1 += 1;
        self.now[place].0
    }

    /// A call on a key may be done or not: the next calls are on another one.
    pub fn leave(&mut self, key: u64) {
        if let Some(now) = self.now.iter_mut().find(|(now, _)| *now == key) {
            *now = (self.next, 0);
            self.next += 1;
        }
    }

    /// The first key that was not used.
    pub fn next(&self) -> u64 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_left_after_some_calls_and_when_one_of_them_is_uncertain() {
        let mut keys = Keys::new(2_000, 24, 60);
        let first = keys.at(0);
        (1..60).for_each(|_| assert_eq!(keys.at(0), first));
        let second = keys.at(0);
        assert_ne!(second, first);
        keys.leave(second);
        // Word of it may come twice.
        keys.leave(second);
        let third = keys.at(0);
        assert_eq!((third, keys.next()), (second + 1, second + 2));
        assert!(keys.now[1..].iter().all(|(key, calls)| *key < 2_024 && *calls == 0));
    }
}
