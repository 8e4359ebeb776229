//! How every layer is cut into slices, by nothing but the base, so that no two makers of slices need to agree.

use std::ops::Range;

use super::id::{LayerId, LayerKind};
use crate::base::Base;
use crate::record::blocks::BLOCK_RECORDS;

/// A slice is at most this part of the input, so that the dial has no jumps.
const SLICE_SHARE: f64 = 0.045;
/// Slices of small shards are not cut below this.
const SLICE_BYTES_MIN: f64 = 4096.0;
/// The coarsest and the finest sampling rate of 2^k layers, as logarithms.
pub(crate) const RATE_MAX: u16 = 7;

/// How a layer is cut: the same for a shard at any time, so that slices made apart fit together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Integers, or records, of the layer.
    pub(crate) entries: u64,
    /// A slice has `1 << shift` of them.
    pub(crate) shift: u32,
    /// Bytes of the whole layer, exact for arrays and estimated for text.
    pub(crate) bytes: f64,
}

impl Shape {
    /// The shape of a layer; `None` if this shard can't have it.
    pub(crate) fn of(base: &Base, kind: LayerKind, which: u16) -> Option<Self> {
        let records = base.numbers.records;
        let attribute = (which as usize) < base.schema.attributes.len();
        let flat = base.numbers.flat == 1;
        let array = |entries: u64, bits: u32| (entries, entries as f64 * f64::from(bits) / 8.0);
        let (entries, bytes) = match kind {
            LayerKind::IsaAttribute | LayerKind::SaAttribute if !flat && attribute && which > 0 => {
                array(records, base.record_bits())
            }
            LayerKind::SaRate if which < RATE_MAX => {
                let bits = if flat { base.position_bits() } else { base.record_bits() };
                array(rate_entries(base.rows(), which), bits)
            }
            LayerKind::IsaRate if flat && which < RATE_MAX => {
                array(rate_entries(base.numbers.input_bytes + 1, which), base.row_bits())
            }
            LayerKind::Blocks if which == 0 && base.numbers.block_bytes > 0 => (records, base.numbers.block_bytes as f64),
            LayerKind::Plain if !flat && which == 0 => {
                let input = base.numbers.input_bytes as f64;
                (records, input + records as f64 * f64::from(64 - base.numbers.input_bytes.leading_zeros()) / 8.0)
            }
            LayerKind::Index if !flat && attribute => (records, base.index_bytes(which as usize)),
            LayerKind::Postings if !flat && attribute => (records, base.postings_bytes(which as usize)),
            _ => return None,
        };
        if entries == 0 {
            return None;
        }
        let most = (base.numbers.input_bytes as f64 * SLICE_SHARE).max(SLICE_BYTES_MIN);
        let per_slice = (most / (bytes / entries as f64)).max(f64::from(BLOCK_RECORDS));
        let shift = (per_slice as u64).ilog2().min(entries.next_power_of_two().ilog2());
        Some(Self { entries, shift: shift.max(BLOCK_RECORDS.ilog2()), bytes })
    }

    pub(crate) fn slices(&self) -> usize {
        self.entries.div_ceil(1 << self.shift) as usize
    }

    /// The entries of `slice`.
    pub(crate) fn range(&self, slice: u32) -> Range<u64> {
        let from = u64::from(slice) << self.shift;
        from.min(self.entries)..(from + (1 << self.shift)).min(self.entries)
    }

    pub(crate) fn slice_bytes(&self, slice: u32) -> f64 {
        let range = self.range(slice);
        self.bytes * (range.end - range.start) as f64 / self.entries as f64
    }
}

/// Values of the layer of rate `1 << which` over `count` indexes: those that are an odd multiple of the rate
/// (BlowFish, section 3.1); the coarsest layer has all multiples.
pub(crate) fn rate_entries(count: u64, which: u16) -> u64 {
    let rate = 1u64 << which;
    if which + 1 == RATE_MAX { count.div_ceil(rate) } else { count.saturating_sub(rate).div_ceil(2 * rate) }
}

/// The layer and the entry in it of `index`: the position among the odd multiples of its power of two.
#[inline(always)]
pub(crate) fn rate_place(index: u64) -> (u16, u64) {
    let which = (index | 1 << (RATE_MAX - 1)).trailing_zeros() as u16;
    (which, if which + 1 == RATE_MAX { index >> which } else { index >> (which + 1) })
}

impl LayerId {
    /// Every slice of every layer that the shard can have.
    pub(crate) fn all(base: &Base) -> impl Iterator<Item = (Self, Shape)> + '_ {
        use LayerKind::*;
        [IsaAttribute, SaAttribute, SaRate, IsaRate, Blocks, Plain, Index, Postings].into_iter().flat_map(move |kind| {
            (0..crate::ATTRIBUTES_MAX as u16)
                .filter_map(move |which| Some((which, Shape::of(base, kind, which)?)))
                .flat_map(move |(which, shape)| (0..shape.slices() as u32).map(move |slice| (Self { kind, which, slice }, shape)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The array {6, 4, 3, 8, 9, 2} of BlowFish's section 3.1: a layer of rate 4 keeps {6, 9}, one of rate 2 holds {3} more, so
    /// that both together keep {6, 3, 9}. Rates begin coarser here: each value stands for a run of as many as the rates differ.
    #[test]
    fn blowfish_section_3_1_example() {
        let array = [6, 4, 3, 8, 9, 2];
        let run = 1u64 << (RATE_MAX - 3);
        let kept = |which: u16| -> Vec<i32> {
            let sampled = (0..array.len() as u64 * run).step_by(run as usize).filter(|index| rate_place(*index).0 == which);
            sampled.map(|index| array[(index / run) as usize]).collect()
        };
        let (rate_4, rate_2) = (RATE_MAX - 1, RATE_MAX - 2);
        assert_eq!((kept(rate_4), kept(rate_2)), (vec![6, 9], vec![3]));
        let count = array.len() as u64 * run;
        assert_eq!((rate_entries(count, rate_4), rate_entries(count, rate_2)), (2, 1));
        assert_eq!((rate_place(4 * run), rate_place(2 * run)), ((rate_4, 1), (rate_2, 0)));
    }

    #[test]
    fn every_index_has_one_place_and_places_are_dense() {
        for count in [1u64, 2, 63, 64, 65, 1000] {
            let mut seen = vec![0u64; RATE_MAX as usize];
            for index in 0..count {
                let (which, entry) = rate_place(index);
                assert_eq!(entry, seen[which as usize], "index {index}");
                seen[which as usize] += 1;
            }
            for which in 0..RATE_MAX {
                assert_eq!(rate_entries(count, which), seen[which as usize], "rate {} of {count}", 1 << which);
            }
        }
    }
}
