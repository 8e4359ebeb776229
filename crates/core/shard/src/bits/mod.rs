//! Bits of words: packed arrays, Elias-Fano, selection.

pub(crate) mod elias_fano;
pub(crate) mod packed;
pub(crate) mod prefetch;
pub(crate) mod word;
