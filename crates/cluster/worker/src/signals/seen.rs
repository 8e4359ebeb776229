//! Which operations have read which segments, in memory that does not grow with them.

use forebay_types::{OperationId, SegmentId, mix64};

/// Bits of a filter: 128 KiB.
const BITS: usize = 1 << 20;
/// Places of a pair among them.
const PLACES: u32 = 4;
/// Share of the bits from which the filter is begun anew: 6 of 100 new pairs are taken for old ones then. What it forgets of operations that
/// go on is counted once more.
const FULL: f64 = 0.5;

/// A Bloom filter (Bloom, 1970) of pairs of an operation and a segment.
pub(super) struct Seen {
    bits: Box<[u64]>,
    set: usize,
}

impl Default for Seen {
    fn default() -> Self {
        Self { bits: vec![0; BITS / 64].into_boxed_slice(), set: 0 }
    }
}

impl Seen {
    /// How many pairs this one counts for: none where it was seen before. A new one is taken for an old one now and then, more often the more
    /// there were, so that those that are taken for new count for a little more than one.
    pub(super) fn count(&mut self, operation: OperationId, segment: SegmentId) -> f64 {
        let share = self.set as f64 / BITS as f64;
        if share > FULL {
            self.clear();
            return self.count(operation, segment);
        }
        if self.insert(operation, segment) { 1.0 / (1.0 - share.powi(PLACES as i32)) } else { 0.0 }
    }

    /// Forgets all pairs.
    pub(super) fn clear(&mut self) {
        if self.set > 0 {
            self.bits.fill(0);
            self.set = 0;
        }
    }

    /// Whether it was not there.
    fn insert(&mut self, operation: OperationId, segment: SegmentId) -> bool {
        let (mut place, step) = hash(operation, segment);
        let before = self.set;
        for _ in 0..PLACES {
            let at = place as usize % BITS;
            let (word, bit) = (&mut self.bits[at / 64], 1u64 << (at % 64));
            self.set += usize::from(*word & bit == 0);
            *word |= bit;
            place = place.wrapping_add(step);
        }
        debug_assert!(self.set <= BITS, "a bit is set once");
        self.set > before
    }
}

/// A place and the step to the next ones (Kirsch and Mitzenmacher, 2006), by the finisher of SplitMix64: both numbers are hashes or drawn already.
fn hash(operation: OperationId, segment: SegmentId) -> (u64, u64) {
    let (low, high) = (segment.0 as u64, (segment.0 >> 64) as u64);
    let first = mix64(operation.0 ^ mix64(low) ^ high.rotate_left(32));
    (first, mix64(first.wrapping_add(0x9e37_79b9_7f4a_7c15)) | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_count_once_however_many_there_are() {
        for pairs in [1, 1000, 100_000, 3_000_000u64] {
            let mut seen = Seen::default();
            let mut counted = 0.0;
            for operation in 0..pairs {
                for _ in 0..2 {
                    counted += seen.count(OperationId(operation), SegmentId(u128::from(operation % 7) << 70));
                }
            }
            let error = (counted / pairs as f64 - 1.0).abs();
            assert!(error < 0.01, "{counted} of {pairs}");
            assert!(seen.set as f64 <= BITS as f64 * FULL + f64::from(PLACES));
        }
    }
}
