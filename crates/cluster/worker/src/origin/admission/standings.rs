//! What the plans of operations count for, which their reads on demand don't say.

use std::num::NonZeroUsize;

use forebay_types::OperationId;
use lru::LruCache;
use parking_lot::Mutex;

/// Operations that are remembered; who reads on is not forgotten.
const OPERATIONS_MAX: NonZeroUsize = NonZeroUsize::new(16_384).expect("some");

/// The priorities of operations that have one, as far as their plans have said it here.
pub(crate) struct Standings(Mutex<LruCache<OperationId, i32>>);

impl Default for Standings {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(OPERATIONS_MAX)))
    }
}

impl Standings {
    /// A plan of an operation has this priority, which may be another one than before.
    pub(crate) fn learn(&self, operation: OperationId, priority: i32) {
        let mut known = self.0.lock();
        match priority {
            0 => _ = known.pop(&operation),
            priority => _ = known.put(operation, priority),
        }
    }

    /// An operation's priority: 0 where nothing else was said.
    pub(crate) fn of(&self, operation: OperationId) -> i32 {
        self.0.lock().get(&operation).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_on_is_remembered_and_the_others_make_room() {
        let standings = Standings::default();
        standings.learn(OperationId(1), -5);
        standings.learn(OperationId(2), 0);
        let count = OPERATIONS_MAX.get() as u64;
        for operation in 3..2 * count {
            assert_eq!(standings.of(OperationId(1)), -5);
            standings.learn(OperationId(operation), 7);
        }
        assert_eq!((standings.of(OperationId(2)), standings.of(OperationId(3))), (0, 0));
        assert_eq!(standings.0.lock().len() as u64, count);
        standings.learn(OperationId(1), 0);
        assert_eq!(standings.of(OperationId(1)), 0, "its plan is as any other by now");
    }
}
