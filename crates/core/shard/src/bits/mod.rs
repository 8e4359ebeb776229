//! Bits of words: integers of one odd width, read in place from a section's bytes, Elias-Fano, selection.

pub(crate) mod elias_fano;
pub(crate) mod prefetch;
pub(crate) mod word;

use bytes::Bytes;

use word::{BitWriter, bits, width_of};

/// An array of integers of one width, back to back.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    bytes: Bytes,
    width: u32,
}

impl Packed {
    /// Reads `bytes` as integers of `width` bits.
    pub(crate) fn new(bytes: Bytes, width: u32) -> Self {
        Self { bytes, width: width.min(56) }
    }

    /// The integer at `index`; zero beyond the end.
    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> u64 {
        bits(&self.bytes, index * self.width as usize, self.width)
    }
}

/// Packs `values`, none of them above `max`, at the width of `max`.
pub(crate) fn pack(values: impl IntoIterator<Item = u64>, max: u64) -> Vec<u8> {
    let width = width_of(max);
    let mut writer = BitWriter::default();
    for value in values {
        debug_assert!(value <= max, "{value} has no room in the width of {max}");
        writer.push(value, width);
    }
    writer.finish()
}
