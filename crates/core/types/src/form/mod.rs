//! Names of decoded columns: of a Parquet file's, and of a text file's in the form that a query takes it for.

mod cell;
mod text;

pub use cell::Cell;
pub use text::{CellSource, CsvLines, FormId, TEXT_CHUNK_BYTES, TextForm, TextLines, text_chunk};
