//! The words of shared memory, and bytes in them. In the models of loom they are loom's.

#[cfg(feature = "models")]
pub(super) use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(feature = "models"))]
pub(super) use std::sync::atomic::{AtomicU64, Ordering};

use Ordering::Relaxed;

/// Copies bytes into shared words, the last one filled up with zeros; the words that took them.
pub(super) fn copy_in(words: &[AtomicU64], bytes: &[u8]) -> usize {
    let (whole, rest) = bytes.as_chunks::<8>();
    for (word, chunk) in words.iter().zip(whole) {
        word.store(u64::from_ne_bytes(*chunk), Relaxed);
    }
    if rest.is_empty() {
        return whole.len();
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    words[whole.len()].store(u64::from_ne_bytes(last), Relaxed);
    whole.len() + 1
}

pub(super) fn copy_out(words: &[AtomicU64], len: usize) -> Vec<u8> {
    let words = &words[..len.div_ceil(8)];
    let mut bytes = vec![0; words.len() * 8];
    for (chunk, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *chunk = word.load(Relaxed).to_ne_bytes();
    }
    bytes.truncate(len);
    bytes
}
