//! Growing sequences near their least size, still with a value by index and a rank by value.

use bytes::Bytes;

use super::prefetch::with_bit_instructions;
use super::word::{load, select_in_word, width_of};
use super::{Packed, pack};
use crate::steps::step;

/// Ones of the high part between two samples of the selection index.
const SAMPLE: usize = 64;

/// Growing 64-bit integers in about 2 + log2(range / count) bits each (Elias-Fano).
#[derive(Clone, Debug)]
pub(crate) struct EliasFano {
    high: Bytes,
    low: Packed,
    low_bits: u32,
    /// Where each 64th one, and (in the second) each 64th zero, of the high part stands.
    ones: Packed,
    zeros: Packed,
    count: usize,
    last: u64,
}

/// The five sections of growing `values`: low bits and last value, high part, low parts, two selection indexes.
pub(crate) fn encode(values: &[u64]) -> [Vec<u8>; 5] {
    debug_assert!(values.is_sorted(), "values grow");
    let last = values.last().copied().unwrap_or_default();
    let low_bits = (last / values.len().max(1) as u64).max(1).ilog2().min(56);
    let length = (last >> low_bits) as usize + values.len() + 1;
    let mut high = vec![0u8; length.div_ceil(8)];
    for (k, value) in values.iter().enumerate() {
        let bit = (value >> low_bits) as usize + k;
        high[bit / 8] |= 1 << (bit % 8);
    }
    let (mut ones, mut zeros) = (Vec::new(), Vec::new());
    let (mut ones_seen, mut zeros_seen) = (0, 0);
    for bit in 0..length {
        let (seen, samples) =
            if high[bit / 8] >> (bit % 8) & 1 == 1 { (&mut ones_seen, &mut ones) } else { (&mut zeros_seen, &mut zeros) };
        if *seen % SAMPLE == 0 {
            samples.push(bit as u64);
        }
        *seen += 1;
    }
    let mask = (1u64 << low_bits) - 1;
    let low = pack(values.iter().map(|value| value & mask), mask);
    let mut head = Vec::new();
    head.extend_from_slice(&last.to_le_bytes());
    head.extend_from_slice(&u64::from(low_bits).to_le_bytes());
    [head, high, low, pack(ones, length as u64), pack(zeros, length as u64)]
}

impl EliasFano {
    pub(crate) fn new(sections: [Bytes; 5], count: usize) -> Self {
        let [head, high, low, ones, zeros] = sections;
        let last = load(&head, 0);
        let low_bits = (load(&head, 8) as u32).min(56);
        let width = width_of((last >> low_bits).saturating_add((count as u64).saturating_add(1)));
        Self {
            high,
            low: Packed::new(low, low_bits),
            low_bits,
            ones: Packed::new(ones, width),
            zeros: Packed::new(zeros, width),
            count,
            last,
        }
    }

    /// Values `indexes`.
    pub(crate) fn get_all(&self, indexes: &[u32]) -> Vec<u64> {
        let mut out = Vec::with_capacity(indexes.len());
        append_all(self, indexes, &mut out);
        out
    }

    /// Value `index`.
    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> u64 {
        step();
        let at = self.select(&self.ones, index, 0);
        ((at as u64).wrapping_sub(index as u64) << self.low_bits) | self.low.get(index)
    }

    /// The values from `index` on, one after the other.
    pub(crate) fn from(&self, index: usize) -> impl Iterator<Item = u64> + '_ {
        let at = if index < self.count { self.select(&self.ones, index, 0) } else { 0 };
        let mut block = at / 64;
        let mut word = load(&self.high, block * 8) & (u64::MAX << (at % 64));
        (index..self.count).map_while(move |index| {
            step();
            while word == 0 {
                block += 1;
                if block * 8 >= self.high.len() {
                    return None;
                }
                word = load(&self.high, block * 8);
            }
            let at = (block * 64) as u64 + u64::from(word.trailing_zeros());
            word &= word - 1;
            Some((at.wrapping_sub(index as u64) << self.low_bits) | self.low.get(index))
        })
    }

    /// The position of the `k`-th one, or with `invert` all ones the `k`-th zero.
    #[inline(always)]
    fn select(&self, samples: &Packed, k: usize, invert: u64) -> usize {
        let from = samples.get(k / SAMPLE) as usize;
        let mut left = (k % SAMPLE) as u32;
        let mut at = from / 64;
        let mut word = (load(&self.high, at * 8) ^ invert) & (u64::MAX << (from % 64));
        while word.count_ones() <= left {
            left -= word.count_ones();
            at += 1;
            if at * 8 >= self.high.len() {
                return at * 64;
            }
            word = load(&self.high, at * 8) ^ invert;
        }
        at * 64 + select_in_word(word, left) as usize
    }

    /// How many values are below `value`.
    #[inline]
    pub(crate) fn rank(&self, value: u64) -> usize {
        if value > self.last {
            return self.count;
        }
        let upper = value >> self.low_bits;
        let (mut low, mut high) = self.bucket(upper);
        let wanted = value & ((1 << self.low_bits) - 1);
        while high - low > 8 {
            let middle = (low + high) / 2;
            if self.low.get(middle) < wanted { low = middle + 1 } else { high = middle }
        }
        while low < high && self.low.get(low) < wanted {
            low += 1;
        }
        low
    }

    /// The indexes of the values whose high part is `upper`.
    #[inline]
    fn bucket(&self, upper: u64) -> (usize, usize) {
        let from = if upper == 0 { 0 } else { self.select(&self.zeros, upper as usize - 1, u64::MAX) + 1 };
        let low = from.saturating_sub(upper as usize).min(self.count);
        // The bucket is the run of ones from there on.
        let mut at = from;
        loop {
            let word = load(&self.high, at / 64 * 8) >> (at % 64);
            let run = (word.trailing_ones() as usize).min(64 - at % 64);
            at += run;
            if run == 0 || at % 64 != 0 || at / 8 >= self.high.len() {
                break;
            }
        }
        (low, (low + at - from).min(self.count))
    }

    /// The index of `value`, if it is there.
    #[inline]
    pub(crate) fn find(&self, value: u64) -> Option<usize> {
        let index = self.rank(value);
        (index < self.count && self.get(index) == value).then_some(index)
    }
}

with_bit_instructions! {
    fn append_all(values: &EliasFano, indexes: &[u32], out: &mut Vec<u64>) {
        // What an iterator's adapter calls would be compiled without.
        for index in indexes {
            out.push(values.get(*index as usize));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(values: &[u64]) {
        let sections = encode(values).map(|mut section| {
            section.extend_from_slice(&[0; 8]);
            Bytes::from(section)
        });
        let coded = EliasFano::new(sections, values.len());
        for (index, value) in values.iter().enumerate() {
            assert_eq!(coded.get(index), *value);
            assert!(coded.from(index).eq(values[index..].iter().copied()));
            assert_eq!(coded.find(*value), Some(index));
            for near in [value.wrapping_sub(1), value.wrapping_add(1)] {
                assert_eq!(coded.rank(near), values.partition_point(|other| *other < near), "{near} in {values:?}");
            }
        }
        assert_eq!(coded.rank(u64::MAX), values.partition_point(|other| *other < u64::MAX));
    }

    #[test]
    fn no_value_and_one_value() {
        check(&[]);
        check(&[0]);
        check(&[u64::MAX]);
    }

    proptest! {
        #[test]
        fn values_come_back(mut values in prop::collection::vec(prop_oneof![any::<u64>(), 0u64..2000], 0..300)) {
            values.sort_unstable();
            values.dedup();
            check(&values);
        }
    }
}
