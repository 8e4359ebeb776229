//! Eight rows of bits as columns at once, for whoever turns rows into columns or back.

/// Turns 8x8 bits about their diagonal: bit `j` of byte `i` becomes bit `i` of byte `j` (Hacker's Delight, 7-3).
#[inline]
pub(crate) fn transpose_bits(mut square: u64) -> u64 {
    for (shift, mask) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)] {
        let swapped = (square ^ (square >> shift)) & mask;
        square ^= swapped ^ (swapped << shift);
    }
    square
}

#[cfg(test)]
mod tests {
    use super::transpose_bits;

    #[test]
    fn rows_become_columns() {
        for (i, j) in (0..8).flat_map(|i| (0..8).map(move |j| (i, j))) {
            assert_eq!(transpose_bits(1 << (8 * i + j)), 1 << (8 * j + i));
        }
    }
}
