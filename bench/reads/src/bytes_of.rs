//! Bytes to write and a way to consume every one of them.

use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};

/// `len` random bytes that a seed makes again.
pub fn random_bytes(seed: u64, len: usize) -> Bytes {
    let mut bytes = vec![0; len];
    StdRng::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes.into()
}

/// Reads every byte, as fast as memory goes.
pub fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().fold(0u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    rest.iter().fold(words, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}
