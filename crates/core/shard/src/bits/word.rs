//! The loads, cuts and selections that all packed structures are made of; none can read past its bytes.

/// The eight bytes at `at`, little-endian; zeros beyond the end, so that no offset that a file holds can panic.
#[inline(always)]
pub(crate) fn load(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => load_tail(bytes, at),
    }
}

#[cold]
fn load_tail(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    let mut word = [0; 8];
    word[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(word)
}

/// `width` (at most 56) bits from bit `bit` on.
#[inline(always)]
pub(crate) fn bits(bytes: &[u8], bit: usize, width: u32) -> u64 {
    (load(bytes, bit >> 3) >> (bit & 7)) & ((1 << width) - 1)
}

/// How many bits it takes to write `max`.
pub(crate) fn width_of(max: u64) -> u32 {
    64 - max.leading_zeros()
}

/// The position of the `k`-th (from 0) one of `word`, which has more than `k`.
#[inline(always)]
pub(crate) fn select_in_word(word: u64, k: u32) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if super::prefetch::has_bmi2() {
        return super::prefetch::select_bmi2(word, k);
    }
    select_portable(word, k)
}

/// Selection by halving: popcounts of the lower half decide.
pub(crate) fn select_portable(mut word: u64, mut k: u32) -> u32 {
    let mut at = 0;
    for half in [32, 16, 8, 4, 2, 1] {
        let low = (word & ((1u64 << half) - 1)).count_ones();
        if k >= low {
            k -= low;
            word >>= half;
            at += half;
        }
    }
    at
}

/// Appends bits to bytes.
#[derive(Default)]
pub(crate) struct BitWriter {
    bytes: Vec<u8>,
    pending: u64,
    filled: u32,
}

impl BitWriter {
    /// Appends the low `width` (at most 56) bits of `value`.
    pub(crate) fn push(&mut self, value: u64, width: u32) {
        debug_assert!(self.filled + width <= u64::BITS && (width == u64::BITS || value >> width == 0), "{value} in {width} bits");
        self.pending |= value << self.filled;
        self.filled += width;
        while self.filled >= 8 {
            self.bytes.push(self.pending as u8);
            self.pending >>= 8;
            self.filled -= 8;
        }
    }

    /// The bytes, the last one filled with zeros.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        if self.filled > 0 {
            self.bytes.push(self.pending as u8);
        }
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_selections_agree() {
        for word in [1u64, 0x8000_0000_0000_0000, u64::MAX, 0x5555_aaaa_1234_0f01] {
            let mut ones = (0..64).filter(|bit| word >> bit & 1 == 1);
            for k in 0..word.count_ones() {
                let expected = ones.next().unwrap();
                assert_eq!(select_portable(word, k), expected);
                assert_eq!(select_in_word(word, k), expected);
            }
        }
    }

    #[test]
    fn bits_come_back_and_nothing_lies_beyond_the_end() {
        let mut writer = BitWriter::default();
        for value in 0..100u64 {
            writer.push(value, 27);
        }
        let bytes = writer.finish();
        assert!((0..100).all(|i| bits(&bytes, i * 27, 27) == i as u64));
        assert_eq!(bits(&bytes, 1 << 40, 27), 0);
    }
}
