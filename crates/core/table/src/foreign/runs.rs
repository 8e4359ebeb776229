//! Numbers of some bits, as the format has them: in runs and in packs.

use super::thrift::Reader;
use super::{PageFault, damage};

/// Bits of a number at most.
pub(super) const BITS_MAX: u32 = 32;

/// Reads at most `count` numbers of some bits, which stand in runs and in packs of eight, and tells each with how often it stands there.
pub(super) fn runs(
    reader: &mut Reader<'_>,
    bits: u32,
    count: u64,
    mut each: impl FnMut(u64, u64) -> Result<(), PageFault>,
) -> Result<(), PageFault> {
    debug_assert!(bits <= BITS_MAX, "numbers of {bits} bits");
    let mut left = count;
    while left > 0 && reader.left() > 0 {
        let head = reader.unsigned()?;
        let (is_run, packs) = (head & 1 == 0, head >> 1);
        // Decoders keep 32 bits of a length, and don't agree on whether a number stands behind a run of none.
        if head == 0 || packs.saturating_mul(if is_run { 1 } else { 8 }) > u64::from(u32::MAX) {
            return damage(format!("a page has a run of {packs} numbers"));
        }
        if is_run {
            let value =
                reader.take(u64::from(bits.div_ceil(8)))?.iter().rev().fold(0, |value, byte| (value << 8) | u64::from(*byte));
            let times = left.min(packs);
            each(value, times)?;
            left -= times;
            continue;
        }
        // The last ones need not all be there.
        let bytes = reader.take(packs.saturating_mul(u64::from(bits)).min(reader.left() as u64))?;
        let values = left.min(packs.saturating_mul(8));
        if bits == 0 {
            each(0, values)?;
            left -= values;
            continue;
        }
        let values = values.min(bytes.len() as u64 * 8 / u64::from(bits));
        for place in 0..values {
            each(packed(bytes, bits, place), 1)?;
        }
        left -= values;
    }
    Ok(())
}

/// The number at a place among those of as many bits, the lowest bit first.
pub(super) fn packed(bytes: &[u8], bits: u32, place: u64) -> u64 {
    debug_assert!((1..=BITS_MAX).contains(&bits), "numbers of {bits} bits");
    let bit = place * u64::from(bits);
    let from = (bit / 8) as usize;
    let mut word = [0; 8];
    for (byte, read) in word.iter_mut().zip(&bytes[from..]) {
        *byte = *read;
    }
    (u64::from_le_bytes(word) >> (bit % 8)) & ((1 << bits) - 1)
}
