use crate::sync::{AtomicU32, Ordering};

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
        self.filled.load(Ordering::Acquire) as usize
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
