//! Picking values of fixed width and bits by row. Callers have checked that the rows are there.

use arrow_buffer::{Buffer, MutableBuffer};

pub(super) fn gather_fixed(values: &[u8], width: usize, picked: &[u32]) -> Buffer {
    // Aligned for every type of Arrow, which a vector of bytes is not.
    let mut out = MutableBuffer::from_len_zeroed(picked.len() * width);
    match width {
        1 => chunks::<1>(values, picked, &mut out),
        2 => chunks::<2>(values, picked, &mut out),
        4 => chunks::<4>(values, picked, &mut out),
        8 => chunks::<8>(values, picked, &mut out),
        16 => chunks::<16>(values, picked, &mut out),
        32 => chunks::<32>(values, picked, &mut out),
        _ => {
            for (to, &row) in out.chunks_exact_mut(width).zip(picked) {
                to.copy_from_slice(&values[row as usize * width..][..width]);
            }
        }
    }
    out.into()
}

/// A plain loop: what iterators would call for each value is not inlined across codegen units.
#[allow(clippy::needless_range_loop, reason = "the inner loop")]
fn chunks<const W: usize>(values: &[u8], picked: &[u32], out: &mut [u8]) {
    let (values, _) = values.as_chunks::<W>();
    let (out, _) = out.as_chunks_mut::<W>();
    assert_eq!(out.len(), picked.len());
    for at in 0..picked.len() {
        out[at] = values[picked[at] as usize];
    }
}

#[allow(clippy::needless_range_loop, reason = "the inner loop, as above")]
pub(super) fn gather_bits(bits: &[u8], picked: &[u32]) -> Buffer {
    let mut out = vec![0u8; picked.len().div_ceil(8)];
    let (whole, rest) = picked.as_chunks::<8>();
    for at in 0..whole.len() {
        let mut byte = 0;
        for bit in 0..8 {
            let row = whole[at][bit];
            byte |= (bits[row as usize / 8] >> (row % 8) & 1) << bit;
        }
        out[at] = byte;
    }
    for (bit, &row) in rest.iter().enumerate() {
        out[whole.len()] |= (bits[row as usize / 8] >> (row % 8) & 1) << bit;
    }
    Buffer::from_vec(out)
}
