//! Columns of text: CSV and lines of JSON.
//!
//! Owns: where the rows of a chunk lie, which columns are made in one reading of them, and their decoding.
//!
//! Never does: decode nested columns, or CSV in which a value has lines of its own: those stay raw.
//!
//! Start with `Forms::make_columns`.

mod decode;
mod lines;
mod make;
