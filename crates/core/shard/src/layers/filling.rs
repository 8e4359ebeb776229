//! Slices that fill up by what queries find on their way, without a lock between those who write and read.

// The primitives that the models of loom replace.
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, Ordering};

/// No value yet.
const EMPTY: u32 = u32::MAX;

/// A slice that is filled with what queries compute anyway (BlowFish, section 3.1: opportunistic construction).
///
/// One word a value tells both whether it is there and what it is, so a reader needs one load. All who store a value
/// store the same one, so there is nothing to order.
#[derive(Debug)]
pub(crate) struct Filling {
    cells: Box<[AtomicU32]>,
    filled: AtomicU32,
}

impl Filling {
    pub(crate) fn new(count: usize) -> Self {
        Self { cells: (0..count).map(|_| AtomicU32::new(EMPTY)).collect(), filled: AtomicU32::new(0) }
    }

    /// The value at `index`, if it is there.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<u32> {
        let value = self.cells.get(index)?.load(Ordering::Relaxed);
        (value != EMPTY).then_some(value)
    }

    /// Stores a value that was computed on the way.
    #[inline]
    pub(crate) fn store(&self, index: usize, value: u32) {
        let Some(cell) = self.cells.get(index) else { return };
        if cell.load(Ordering::Relaxed) == EMPTY && cell.swap(value, Ordering::Relaxed) == EMPTY {
            self.filled.fetch_add(1, Ordering::Release);
        }
    }

    /// Stores a value without counting it, for a pass that stores them all.
    #[inline]
    pub(crate) fn put(&self, index: usize, value: u32) {
        if let Some(cell) = self.cells.get(index) {
            cell.store(value, Ordering::Relaxed);
        }
    }

    /// How many values are there.
    pub(crate) fn filled(&self) -> usize {
        let filled = self.filled.load(Ordering::Acquire) as usize;
        debug_assert!(filled <= self.cells.len(), "each value is counted once: {filled} of {}", self.cells.len());
        filled
    }

    /// How many there will be.
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// All values, with zeros where there is none: for arrays over rows, of which a few are unused.
    pub(crate) fn with_gaps(&self) -> Option<Vec<u32>> {
        let value = |cell: &AtomicU32| Some(cell.load(Ordering::Relaxed)).filter(|value| *value != EMPTY).unwrap_or_default();
        Some(self.cells.iter().map(value).collect())
    }

    /// All values, once they are there.
    pub(crate) fn complete(&self) -> Option<Vec<u32>> {
        self.cells.iter().map(|cell| Some(cell.load(Ordering::Relaxed)).filter(|value| *value != EMPTY)).collect()
    }
}

#[cfg(all(test, loom))]
#[allow(clippy::unwrap_used, reason = "a model fails by panicking")]
mod models {
    use loom::sync::{Arc, RwLock};
    use loom::thread;

    use super::*;

    /// The value that any walk computes for `index`.
    fn value(index: usize) -> u32 {
        index as u32 * 10
    }

    /// Two queries fill the same values while a third reads: what is there is right, and the count is that of the values.
    #[test]
    fn fillers_and_readers_agree() {
        loom::model(|| {
            let filling = Arc::new(Filling::new(2));
            let fillers: Vec<_> = (0..2)
                .map(|_| {
                    let filling = filling.clone();
                    thread::spawn(move || (0..2).for_each(|index| filling.store(index, value(index))))
                })
                .collect();
            for index in 0..2 {
                assert!(filling.get(index).is_none_or(|seen| seen == value(index)));
            }
            if filling.filled() == 2 {
                assert_eq!(filling.complete(), Some(vec![value(0), value(1)]));
            }
            fillers.into_iter().for_each(|filler| filler.join().unwrap());
            assert_eq!(filling.filled(), 2);
            assert_eq!(filling.complete(), Some(vec![value(0), value(1)]));
        });
    }

    /// What a reader can find in the place of a slice.
    enum Slice {
        Filling(Arc<Filling>),
        Sealed(Vec<u32>),
        Dropped,
    }

    /// The set is swapped from filling to sealed to dropped under a reader that fills: whatever set it holds, answers are
    /// right, and the last one to let go of the array frees it (loom reports what leaks).
    #[test]
    fn sealing_and_dropping_under_a_reader() {
        loom::model(|| {
            let present = Arc::new(RwLock::new(Arc::new(Slice::Filling(Arc::new(Filling::new(1))))));
            let reader = {
                let present = present.clone();
                thread::spawn(move || {
                    for _ in 0..2 {
                        let set = present.read().unwrap().clone();
                        let seen = match &*set {
                            Slice::Filling(filling) => {
                                filling.store(0, value(0));
                                filling.get(0)
                            }
                            Slice::Sealed(values) => Some(values[0]),
                            Slice::Dropped => None,
                        };
                        assert!(seen.is_none_or(|seen| seen == value(0)));
                    }
                })
            };
            let set = present.read().unwrap().clone();
            if let Slice::Filling(filling) = &*set
                && filling.filled() == filling.len()
            {
                let sealed = filling.complete().unwrap();
                *present.write().unwrap() = Arc::new(Slice::Sealed(sealed));
            }
            *present.write().unwrap() = Arc::new(Slice::Dropped);
            reader.join().unwrap();
        });
    }
}
