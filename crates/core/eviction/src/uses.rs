//! What reads leave behind for the eviction policy, without a lock that all readers would share.

/// How often each of a segment's blocks was used again since it came in: two bits a block, at most 3.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uses {
    low: u64,
    high: u64,
}

impl Uses {
    /// Counts one more use of each block of the mask.
    pub fn add(&mut self, blocks: u64) {
        let counted = blocks & !(self.low & self.high);
        self.high ^= counted & self.low;
        self.low ^= counted;
    }

    /// Takes one use off a block; false when it has none.
    pub fn take(&mut self, block: u32) -> bool {
        let mask = 1 << block;
        if (self.low | self.high) & mask == 0 {
            return false;
        }
        self.high &= !(mask & !self.low);
        self.low ^= mask;
        true
    }

    /// Forgets the uses of a block.
    pub fn clear(&mut self, block: u32) {
        self.low &= !(1 << block);
        self.high &= !(1 << block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_to_three_and_back() {
        let mut uses = Uses::default();
        (0..5).for_each(|_| uses.add(1 << 7));
        uses.add(1 << 63);
        assert_eq!((0..5).filter(|_| uses.take(7)).count(), 3);
        assert!(uses.take(63) && !uses.take(63) && !uses.take(0));
        uses.add(u64::MAX);
        uses.clear(5);
        assert!(!uses.take(5) && uses.take(6));
    }
}
