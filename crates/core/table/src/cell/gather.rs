//! Picking values of fixed width and bits by row. Callers have checked that the rows are there.

use arrow_buffer::Buffer;

pub(super) fn gather_fixed(values: &[u8], width: usize, picked: &[u32]) -> Buffer {
    match width {
        1 => chunks::<1>(values, picked),
        2 => chunks::<2>(values, picked),
        4 => chunks::<4>(values, picked),
        8 => chunks::<8>(values, picked),
        16 => chunks::<16>(values, picked),
        32 => chunks::<32>(values, picked),
        _ => {
            let mut out = Vec::with_capacity(picked.len() * width);
            picked.iter().for_each(|&row| out.extend_from_slice(&values[row as usize * width..][..width]));
            Buffer::from_vec(out)
        }
    }
}

fn chunks<const W: usize>(values: &[u8], picked: &[u32]) -> Buffer {
    let (values, _) = values.as_chunks::<W>();
    let out = picked.iter().map(|&row| values[row as usize]).collect::<Vec<_>>();
    // Arrow wants the alignment of the value's type, which a vector of bytes may lack.
    Buffer::from_slice_ref(out.as_flattened())
}

pub(super) fn gather_bits(bits: &[u8], picked: &[u32]) -> Buffer {
    let byte =
        |rows: &[u32]| rows.iter().enumerate().fold(0, |byte, (at, &row)| byte | (bits[row as usize / 8] >> (row % 8) & 1) << at);
    Buffer::from_vec(picked.chunks(8).map(byte).collect::<Vec<u8>>())
}
