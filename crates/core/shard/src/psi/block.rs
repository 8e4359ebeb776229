//! One block: up to 128 growing values as a base and the excess over base + j, by the shortest of four codings.
//!
//! | coding | bytes |
//! |---|---|
//! | run | none: the excess is zero throughout; the directory says so |
//! | sparse | count, width, the positions where the excess grows (a byte each), the excess after each |
//! | bitmap | 0x40 + l, length of the high part, 128 bits of positions, then the excess after each in Elias-Fano |
//! | full | 0x80 + l, length of the high part, then the excess of values 1.. in Elias-Fano |

use super::BLOCK;
use crate::bits::word::{BitWriter, bits, load, select_in_word, width_of};

const SPARSE_MAX: usize = 16;
const BITMAP: u8 = 0x40;
const FULL: u8 = 0x80;

/// Appends the payload of `values`, or nothing for a run.
pub(crate) fn encode(values: &[u32], out: &mut Vec<u8>) {
    assert!(!values.is_empty() && values.len() <= BLOCK as usize);
    let mut excess = [0u32; BLOCK as usize];
    let mut positions = [0u8; BLOCK as usize];
    let mut grown = [0u32; BLOCK as usize];
    let mut count = 0;
    for j in 1..values.len() {
        excess[j] = values[j] - values[0] - j as u32;
        if excess[j] != excess[j - 1] {
            positions[count] = j as u8;
            grown[count] = excess[j];
            count += 1;
        }
    }
    if count == 0 {
        return;
    }
    let (positions, grown, all) = (&positions[..count], &grown[..count], &excess[1..values.len()]);
    let width = width_of(u64::from(grown[count - 1]));
    let sparse = if count <= SPARSE_MAX { 2 + count + (count * width as usize).div_ceil(8) } else { usize::MAX };
    let (bitmap_low, bitmap) = best_split(grown);
    let (full_low, full) = best_split(all);
    if sparse <= bitmap + 18 && sparse <= full + 2 {
        out.extend_from_slice(&[count as u8, width as u8]);
        out.extend_from_slice(positions);
        let mut writer = BitWriter::default();
        grown.iter().for_each(|value| writer.push(u64::from(*value), width));
        out.extend_from_slice(&writer.finish());
    } else if bitmap + 16 < full {
        let marks = positions.iter().fold(0u128, |marks, position| marks | 1 << position);
        elias_fano(grown, bitmap_low, BITMAP, &marks.to_le_bytes(), out);
    } else {
        elias_fano(all, full_low, FULL, &[], out);
    }
}

/// The number of low bits that makes growing `values` shortest, and the bytes then.
fn best_split(values: &[u32]) -> (u32, usize) {
    let last = values[values.len() - 1];
    (0..=31)
        .map(|low| (low, high_bytes(last, values.len(), low), (values.len() * low as usize).div_ceil(8)))
        .filter(|(_, high, _)| *high <= 255)
        .map(|(low, high, rest)| (low, high + rest))
        .min_by_key(|(_, bytes)| *bytes)
        .expect("31 low bits leave a short high part")
}

fn high_bytes(last: u32, count: usize, low: u32) -> usize {
    ((last >> low) as usize + count).div_ceil(8)
}

fn elias_fano(values: &[u32], low: u32, tag: u8, marks: &[u8], out: &mut Vec<u8>) {
    let length = high_bytes(values[values.len() - 1], values.len(), low);
    out.extend_from_slice(&[tag | low as u8, length as u8]);
    out.extend_from_slice(marks);
    let from = out.len();
    out.resize(from + length, 0);
    let mut writer = BitWriter::default();
    for (k, value) in values.iter().enumerate() {
        let bit = (value >> low) as usize + k;
        out[from + bit / 8] |= 1 << (bit % 8);
        writer.push(u64::from(*value) & ((1 << low) - 1), low);
    }
    out.extend_from_slice(&writer.finish());
}

/// The excess of value `j` in the block whose payload begins at `at`: one or two cache lines, no loop over values.
#[inline(always)]
pub(crate) fn excess(payload: &[u8], at: usize, j: u32) -> u32 {
    let head = load(payload, at);
    let tag = head as u8;
    let second = (head >> 8) as u8 as usize;
    if tag & (BITMAP | FULL) == 0 {
        let count = tag as usize;
        let grown = positions_up_to(load(payload, at + 2), load(payload, at + 10), tag, j);
        if grown == 0 {
            return 0;
        }
        return bits(payload, (at + 2 + count) * 8 + (grown as usize - 1) * second, second as u32 & 31) as u32;
    }
    let low = u32::from(tag & 31);
    let (high, k) = if tag & BITMAP != 0 {
        let marks = u128::from(load(payload, at + 2)) | u128::from(load(payload, at + 10)) << 64;
        (at + 18, (marks & (u128::MAX >> (127 - j))).count_ones())
    } else {
        (at + 2, j)
    };
    if k == 0 {
        return 0;
    }
    let k = k - 1;
    // Smaller than `k` only for damage that checksums did not see.
    let upper = select(payload, high, k).wrapping_sub(k);
    let lower = bits(payload, (high + second) * 8 + k as usize * low as usize, low);
    (upper << low) | lower as u32
}

/// How many of the first `count` (at most 16) bytes of two words, each below 128, are at most `j`.
#[inline(always)]
fn positions_up_to(first: u64, second: u64, count: u8, j: u32) -> u32 {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let wanted = (u64::from(j) * 0x0101_0101_0101_0101) | HIGH;
    let hits = |word: u64, count: u32| {
        let valid = if count >= 8 { u64::MAX } else { (1 << (8 * count)) - 1 };
        ((wanted - (word & !HIGH)) & HIGH & valid).count_ones()
    };
    hits(first, u32::from(count)) + if count > 8 { hits(second, u32::from(count) - 8) } else { 0 }
}

/// The bit of the `k`-th one from `at` on.
#[inline(always)]
fn select(payload: &[u8], at: usize, mut k: u32) -> u32 {
    for step in 0..32u32 {
        let word = load(payload, at + step as usize * 8);
        let ones = word.count_ones();
        if k < ones {
            return step * 64 + select_in_word(word, k);
        }
        k -= ones;
    }
    k
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(values: &[u32]) {
        let mut payload = vec![7; 3];
        encode(values, &mut payload);
        let run = payload.len() == 3;
        for (j, value) in values.iter().enumerate() {
            let more = if run { 0 } else { excess(&payload, 3, j as u32) };
            assert_eq!(values[0] + j as u32 + more, *value, "value {j} of {values:?}");
        }
    }

    #[test]
    fn a_run_costs_nothing() {
        let mut payload = Vec::new();
        encode(&(40..168).collect::<Vec<_>>(), &mut payload);
        assert!(payload.is_empty());
    }

    proptest! {
        #[test]
        fn every_coding_gives_its_values_back(
            first in 0u32..1 << 30,
            deltas in prop::collection::vec(prop_oneof![8 => Just(1u32), 1 => 1u32..40, 1 => 1u32..1_000_000], 0..128),
        ) {
            let mut values = vec![first];
            for delta in deltas {
                values.push(values[values.len() - 1] + delta);
            }
            check(&values);
        }

        #[test]
        fn dense_blocks_give_their_values_back(deltas in prop::collection::vec(1u32..9000, 127)) {
            let mut values = vec![0];
            for delta in deltas {
                values.push(values[values.len() - 1] + delta);
            }
            check(&values);
        }
    }
}
