//! What an engine does beside running queries: says what a statement would be, what a file is, and rewrites files.

mod convert;
mod describe;
mod inspect;

pub use convert::{Conversion, ConversionProgress};
pub use describe::Description;
pub use inspect::TableFile;
