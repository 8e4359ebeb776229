//! XXH64 with the seed 0, the hash of Parquet's bloom filters.

const PRIME_1: u64 = 0x9e37_79b1_85eb_ca87;
const PRIME_2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const PRIME_3: u64 = 0x1656_67b1_9e37_79f9;
const PRIME_4: u64 = 0x85eb_ca77_c2b2_ae63;
const PRIME_5: u64 = 0x27d4_eb2f_1656_67c5;

/// The hash of a value's bytes.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let (stripes, rest) = bytes.as_chunks::<32>();
    let mut sum = if stripes.is_empty() { PRIME_5 } else { of_stripes(stripes) };
    sum = sum.wrapping_add(bytes.len() as u64);
    let (words, rest) = rest.as_chunks::<8>();
    for word in words {
        sum ^= round(0, u64::from_le_bytes(*word));
        sum = sum.rotate_left(27).wrapping_mul(PRIME_1).wrapping_add(PRIME_4);
    }
    let (halves, rest) = rest.as_chunks::<4>();
    for half in halves {
        sum ^= u64::from(u32::from_le_bytes(*half)).wrapping_mul(PRIME_1);
        sum = sum.rotate_left(23).wrapping_mul(PRIME_2).wrapping_add(PRIME_3);
    }
    for byte in rest {
        sum ^= u64::from(*byte).wrapping_mul(PRIME_5);
        sum = sum.rotate_left(11).wrapping_mul(PRIME_1);
    }
    sum = (sum ^ (sum >> 33)).wrapping_mul(PRIME_2);
    sum = (sum ^ (sum >> 29)).wrapping_mul(PRIME_3);
    sum ^ (sum >> 32)
}

fn of_stripes(stripes: &[[u8; 32]]) -> u64 {
    let mut lanes = [PRIME_1.wrapping_add(PRIME_2), PRIME_2, 0, 0u64.wrapping_sub(PRIME_1)];
    for stripe in stripes {
        let (words, _) = stripe.as_chunks::<8>();
        lanes.iter_mut().zip(words).for_each(|(lane, word)| *lane = round(*lane, u64::from_le_bytes(*word)));
    }
    let turned = lanes.iter().zip([1, 7, 12, 18]).map(|(lane, by)| lane.rotate_left(by));
    let sum = turned.fold(0u64, u64::wrapping_add);
    lanes.iter().fold(sum, |sum, lane| (sum ^ round(0, *lane)).wrapping_mul(PRIME_1).wrapping_add(PRIME_4))
}

fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(PRIME_2)).rotate_left(31).wrapping_mul(PRIME_1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_reference() {
        assert_eq!(hash(b""), 0xef46_db37_51d8_e999);
        assert_eq!(hash(b"abc"), 0x44bc_2cf5_ad77_0999);
        assert_eq!(hash(b"Nobody inspects the spammish repetition"), 0xfbce_a83c_8a37_8bf1);
        let bytes = (0..100).collect::<Vec<u8>>();
        assert_eq!(hash(&bytes), 0x6ac1_e580_3216_6597);
    }
}
