//! Whole records as they are: the layer with the fastest gets, nearly as large as the input.

use bytes::Bytes;

use crate::bits::word::{load, width_of};
use crate::bits::{Packed, pack};
use crate::part::Part;

/// A slice of the plain records: bodies back to back, and where each begins.
#[derive(Clone, Debug)]
pub(crate) struct PlainSlice {
    offsets: Packed,
    bodies: Bytes,
}

/// The sections of `bodies`, each one record's.
pub(crate) fn encode(bodies: &[u8], offsets: &[u64]) -> [Vec<u8>; 3] {
    let end = bodies.len() as u64;
    [end.to_le_bytes().to_vec(), pack(offsets.iter().copied(), end), bodies.to_vec()]
}

impl PlainSlice {
    pub(crate) fn open(part: &Part) -> Self {
        let end = load(&part.section(0), 0);
        Self { offsets: Packed::new(part.section(1), width_of(end)), bodies: part.section(2) }
    }

    /// The body of record `index` of the slice, and what follows it.
    #[inline]
    pub(crate) fn body(&self, index: usize) -> &[u8] {
        self.bodies.get(self.offsets.get(index) as usize..).unwrap_or_default()
    }
}
