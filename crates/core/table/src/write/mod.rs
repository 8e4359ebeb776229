//! Arrow to bytes: row groups are encoded on their own, by as many threads as the caller likes, and put in line by one writer.

mod cut;
mod encode;
mod measure;
mod nested;
mod place;
mod rows;
mod values;
mod writer;

pub use encode::{Encoder, RowGroup};
pub use writer::{Options, Summary, Writer};
