//! What the steps of a building pass made of whole records, and how the pieces of a slice are put together of it.

use std::ops::Range;

/// What one step made of its records' text.
pub(crate) struct Text {
    pub(crate) first: u32,
    pub(crate) frames: Vec<u8>,
    pub(crate) frame_offsets: Vec<u64>,
    pub(crate) bodies: Vec<u8>,
    pub(crate) body_offsets: Vec<u64>,
}

/// The pieces `range` of all texts back to back, and where each begins.
pub(crate) fn gather<'t>(
    texts: &'t [Text],
    range: Range<u64>,
    records: u64,
    of: impl Fn(&'t Text) -> (&'t Vec<u8>, &'t Vec<u64>),
) -> (Vec<u8>, Vec<u64>) {
    let (mut bytes, mut offsets) = (Vec::new(), Vec::new());
    for text in texts {
        let first = u64::from(text.first) / records;
        let (source, places) = of(text);
        let count = places.len() as u64 - 1;
        let (from, to) = (range.start.max(first), range.end.min(first + count));
        if from >= to {
            continue;
        }
        let places = &places[(from - first) as usize..=(to - first) as usize];
        let shift = places[0];
        let base = bytes.len() as u64;
        offsets.extend(places[..places.len() - 1].iter().map(|place| place - shift + base));
        bytes.extend_from_slice(&source[shift as usize..places[places.len() - 1] as usize]);
    }
    assert_eq!(offsets.len() as u64, range.end - range.start, "each piece of the slice was made");
    (bytes, offsets)
}
