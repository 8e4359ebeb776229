//! Random numbers that follow from a seed.

use forebay_types::split_mix;

/// Random numbers from a seed: SplitMix64 (G. Steele and others, OOPSLA 2014), enough to try things in another order.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub(crate) fn next(&mut self) -> u64 {
        split_mix(&mut self.0)
    }

    /// A number below `end`, which isn't 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// Puts `things` in random order.
    pub(crate) fn shuffle<T>(&mut self, things: &mut [T]) {
        for at in (1..things.len()).rev() {
            things.swap(at, self.below(at + 1));
        }
    }
}
