//! Flat text: substring search and extraction anywhere, by the papers' uniformly sampled arrays alone.

pub(crate) mod build;
pub(crate) mod layers;
pub(crate) mod text;

/// Rows, and positions, between the samples that every flat text has.
pub(crate) const BASE_RATE: u32 = 128;
