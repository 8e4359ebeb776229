//! The checksum is that of RFC 3720, whole and piece by piece; the digest is BLAKE3.

use forebay_types::{crc32c, crc32c_append, digest};
use proptest::prelude::*;

/// Bit by bit, as the polynomial says.
fn by_bits(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0x82f6_3b78 } else { sum >> 1 })
    })
}

/// Section B.4 of the RFC.
#[test]
fn the_examples_of_rfc_3720() {
    assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    assert_eq!(crc32c(&(0..32).collect::<Vec<u8>>()), 0x46dd_794e);
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    assert_eq!(crc32c(b""), 0);
}

/// As its own tests and `b3sum` have them.
#[test]
fn a_digest_is_the_first_half_of_blake3() {
    assert_eq!(digest(&[]), 0xaf13_49b9_f5f9_a1a6_a040_4dea_36dc_c949);
    assert_eq!(digest(&[b"a", b"bc"]), 0x6437_b3ac_3846_5133_ffb6_3b75_273a_8db5);
}

proptest! {
    #[test]
    fn pieces_give_what_the_whole_gives(bytes in proptest::collection::vec(any::<u8>(), 0..5_000), at in any::<prop::sample::Index>()) {
        let (head, tail) = bytes.split_at(at.index(bytes.len() + 1));
        prop_assert_eq!(crc32c(&bytes), by_bits(&bytes));
        prop_assert_eq!(crc32c_append(crc32c(head), tail), crc32c(&bytes));
    }
}
