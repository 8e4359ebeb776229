//! Arrow to bytes: row groups are encoded on their own, by as many threads as the caller likes, and put in line by one writer.

mod blooms;
mod cut;
mod encode;
mod measure;
mod nested;
mod place;
mod rows;
mod values;
mod writer;

pub use blooms::{Blooms, key_hashes};
pub use encode::{Encoder, RowGroup};
pub use writer::{Options, Summary, Writer};
