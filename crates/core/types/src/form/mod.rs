//! Names of decoded columns, of a Parquet file's and of a text file's in the form that a query takes it for, and what is asked of their rows;
//! and how long a list may be that comes from outside.

mod at_most;
mod cell;
mod condition;
mod text;

pub use at_most::at_most;
pub use cell::Cell;
pub use condition::{Comparison, ROW_TESTS_MAX, RowTest};
pub use text::{CellSource, CsvLines, TEXT_CHUNK_BYTES, TextForm, TextLines, text_chunk};
