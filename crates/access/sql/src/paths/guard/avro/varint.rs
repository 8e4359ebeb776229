//! Avro's whole numbers: seven bits a byte, the lowest first, signs in the lowest bit.

/// Bytes of the longest.
pub(super) const BYTES_MAX: usize = 10;

/// Takes a number without its sign sorted out; none where there is none.
pub(super) fn take_bits(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        *bytes = rest;
        return Some(u64::from(first));
    }
    let mut bits = 0u64;
    for (at, &byte) in bytes.iter().take(BYTES_MAX).enumerate() {
        if at == BYTES_MAX - 1 && byte > 1 {
            return None;
        }
        bits |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            *bytes = &bytes[at + 1..];
            return Some(bits);
        }
    }
    None
}

/// Takes a number.
pub(super) fn take(bytes: &mut &[u8]) -> Option<i64> {
    take_bits(bytes).map(|bits| (bits >> 1) as i64 ^ -((bits & 1) as i64))
}

/// Takes a number that is no less than none.
pub(super) fn take_count(bytes: &mut &[u8]) -> Option<u64> {
    take(bytes).and_then(|count| u64::try_from(count).ok())
}

/// Appends a count.
pub(super) fn put_count(count: usize, out: &mut Vec<u8>) {
    let mut bits = (count as u64) << 1;
    while bits >= 0x80 {
        out.push(bits as u8 | 0x80);
        bits >>= 7;
    }
    out.push(bits as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for (bytes, number) in [(&[0u8][..], 0), (&[1], -1), (&[2], 1), (&[0x80, 1], 64), (&[0xff, 1], -128)] {
            assert_eq!(take(&mut &bytes[..]), Some(number), "{bytes:?}");
        }
        let least = [&[0xff; 9][..], &[1]].concat();
        assert_eq!(take(&mut &least[..]), Some(i64::MIN));
        assert_eq!(take(&mut &[&[0xff; 9][..], &[2]].concat()[..]), None, "more than 64 bits");
        assert_eq!((take(&mut &[0x80][..]), take(&mut &[][..])), (None, None));
        for count in [0, 63, 64, 8_192, usize::MAX >> 2] {
            let mut out = Vec::new();
            put_count(count, &mut out);
            assert_eq!(take_count(&mut &out[..]), Some(count as u64));
        }
    }
}
