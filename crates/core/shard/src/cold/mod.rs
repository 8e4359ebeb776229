//! A shard's cold file: its records as few ranges of bytes as they can be read by from far away.
//!
//! Owns: the bytes of the file (docs/specs/shard-cold.md), how it is made, and which ranges a record, or the keys of a value, are in.
//!
//! Never does: read the file. Whoever asks brings the ranges that it names, from wherever they are.
//!
//! Start with [`ColdTail`].

mod block;
mod bucket;
mod cursor;
mod postings;
mod tail;
mod write;

pub use tail::{ColdRange, ColdTail};
pub use write::{ColdFile, ColdWriter};
