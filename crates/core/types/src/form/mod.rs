//! Names of decoded columns, of a Parquet file's and of a text file's in the form that a query takes it for, and what is asked of their rows.

mod cell;
mod condition;
mod text;

pub use cell::Cell;
pub use condition::{Comparison, ROW_TESTS_MAX, RowTest};
pub use text::{CellSource, CsvLines, FormId, TEXT_CHUNK_BYTES, TextForm, TextLines, text_chunk};
