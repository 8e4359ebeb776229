//! Split-block bloom filters, as the Parquet format specifies them: which values a column can't have in a row group.
//!
//! A filter is blocks of eight words. A value's hash picks one block, and one bit of each of its words.

mod hash;

pub(crate) use hash::hash;

use bytes::Bytes;

/// Bytes of a block: eight words of 32 bits.
pub(crate) const BLOCK_BYTES: usize = 32;
/// Most blocks of a filter, which is 2 MiB: more than the values of any row group need.
pub(crate) const BLOCKS_MAX: usize = 1 << 16;

/// Twice the bits that a value takes. With 10.5 bits one value in a hundred that is not there is taken for one that may be.
const HALF_BITS_A_VALUE: usize = 21;

const SALT: [u32; 8] = [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// Blocks of a filter for so many different values.
pub(crate) fn blocks_for(values: usize) -> usize {
    (values * HALF_BITS_A_VALUE).div_ceil(2 * BLOCK_BYTES * 8).clamp(1, BLOCKS_MAX)
}

/// The bytes of a filter that has the values of these hashes, each given once.
pub(crate) fn build(hashes: &[u64]) -> Vec<u8> {
    let mut blocks = vec![[0u32; 8]; blocks_for(hashes.len())];
    let count = blocks.len();
    for &hash in hashes {
        let words = &mut blocks[block_of(hash, count)];
        words.iter_mut().zip(SALT).for_each(|(word, salt)| *word |= bit(hash, salt));
    }
    blocks.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
}

/// A filter that was read.
#[derive(Clone, Debug)]
pub struct BloomFilter {
    /// One block or more.
    blocks: Bytes,
}

impl BloomFilter {
    /// A filter of some whole blocks, of which there is at least one.
    pub(crate) fn new(blocks: Bytes) -> Self {
        debug_assert!(!blocks.is_empty() && blocks.len().is_multiple_of(BLOCK_BYTES), "whoever read it has looked at its length");
        Self { blocks }
    }

    /// Whether the column may have the value of this hash, by [`crate::key_hashes`]: never no for one that it has.
    pub fn may_have(&self, hash: u64) -> bool {
        let at = block_of(hash, self.blocks.len() / BLOCK_BYTES) * BLOCK_BYTES;
        let (words, _) = self.blocks[at..at + BLOCK_BYTES].as_chunks::<4>();
        words.iter().zip(SALT).all(|(word, salt)| u32::from_le_bytes(*word) & bit(hash, salt) != 0)
    }
}

/// The upper half of the hash, spread over the blocks.
fn block_of(hash: u64, blocks: usize) -> usize {
    (((hash >> 32) * blocks as u64) >> 32) as usize
}

/// The bit of one word, by the lower half of the hash.
fn bit(hash: u64, salt: u32) -> u32 {
    1 << ((hash as u32).wrapping_mul(salt) >> 27)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filter(hashes: &[u64]) -> BloomFilter {
        BloomFilter::new(build(hashes).into())
    }

    #[test]
    fn a_filter_stays_below_twice_the_false_positives_that_it_aims_at() {
        for values in [100u64, 3_000, 20_000] {
            let hashes = (0..values).map(|value| hash(&value.to_le_bytes())).collect::<Vec<_>>();
            let filter = filter(&hashes);
            assert!(filter.blocks.len() as u64 <= values * 3 / 2 + 32, "{values}: {} bytes", filter.blocks.len());
            let others = 100_000;
            let wrong = (values..values + others).filter(|other| filter.may_have(hash(&other.to_le_bytes()))).count() as u64;
            assert!(wrong < 2 * others / 100, "{values}: {wrong} of {others}");
        }
    }

    #[test]
    fn a_filter_is_never_larger_than_its_bound() {
        assert_eq!((blocks_for(0), blocks_for(1), blocks_for(25)), (1, 1, 2));
        assert!(blocks_for(1 << 20) < BLOCKS_MAX);
        assert_eq!(blocks_for(1 << 30), BLOCKS_MAX);
    }

    proptest! {
        #[test]
        fn no_value_that_is_there_is_denied(hashes in proptest::collection::vec(any::<u64>(), 1..2000)) {
            let filter = filter(&hashes);
            prop_assert!(hashes.iter().all(|hash| filter.may_have(*hash)));
        }
    }
}
