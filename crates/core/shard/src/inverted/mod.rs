//! Inverted lists, which two kinds of layers hold: the keys of each value, or its records in few bits, found by hash.

pub(crate) mod index;
pub(crate) mod postings;
