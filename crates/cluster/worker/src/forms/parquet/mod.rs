//! Columns of Parquet.
//!
//! Owns: the footers of the files whose columns are being made, where a column's bytes lie, and its decoding.
//!
//! Never does: decode nested columns, or what is larger than a segment: those stay raw.
//!
//! Start with `Forms::make_column`.

mod decode;
mod footers;
mod make;

pub(super) use footers::Footers;
