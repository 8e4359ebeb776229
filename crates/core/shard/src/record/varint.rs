//! Seven bits a byte, the lowest first, the top bit set on all but the last.

pub(crate) fn write(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The number at `at` and the offset after it; 0 beyond the end.
#[inline(always)]
pub(crate) fn read(bytes: &[u8], mut at: usize) -> (u64, usize) {
    let (mut value, mut shift) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 || shift > 56 {
            break;
        }
    }
    (value, at)
}
