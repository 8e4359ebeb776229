//! CRC-32C, the checksum of frames, pages, tables and shards; BLAKE3, by which things are named; SplitMix64; and how hashes are written.

use crc_fast::CrcAlgorithm::Crc32Iscsi;

/// The checksum of `bytes`.
#[inline]
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// The checksum of what has the checksum `before`, followed by `bytes`.
#[inline]
#[must_use]
pub fn crc32c_append(before: u32, bytes: &[u8]) -> u32 {
    if before == 0 {
        // The state at the start; most appends are to nothing.
        return crc32c(bytes);
    }
    // The state is the checksum before its bits are turned over at the end.
    let mut digest = crc_fast::Digest::new_with_init_state(Crc32Iscsi, u64::from(!before));
    digest.update(bytes);
    digest.finalize() as u32
}

/// What things are named by that must not be taken for one another whoever chose what they are made of: the first half of the BLAKE3
/// of `parts`, one behind the other. Who calls it sees to it that no two things have the same parts in a row.
#[must_use]
pub fn digest(parts: &[&[u8]]) -> u128 {
    let mut hash = blake3::Hasher::new();
    for part in parts {
        hash.update(part);
    }
    let hash: [u8; blake3::OUT_LEN] = hash.finalize().into();
    u128::from_be_bytes(std::array::from_fn(|at| hash[at]))
}

/// The finisher of SplitMix64 (G. Steele and others, OOPSLA 2014): each bit of the answer hangs on each of `value`.
#[inline]
#[must_use]
pub fn mix64(value: u64) -> u64 {
    let once = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let twice = (once ^ (once >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    twice ^ (twice >> 31)
}

/// The next number of SplitMix64: numbers that look random and follow from a seed, which `state` is at the start.
#[inline]
pub fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mix64(*state)
}

/// Bytes in hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let text: String = digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect();
    debug_assert_eq!(text.len(), 2 * bytes.len(), "each byte has two digits");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_seed_are_those_of_the_paper() {
        let mut state = 1_234_567;
        let numbers = [0; 3].map(|_: u8| split_mix(&mut state));
        assert_eq!(numbers, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn bytes_are_written_as_two_digits_each() {
        assert_eq!(hex(&[0, 9, 0x1f, 0xff]), "00091fff");
    }
}
