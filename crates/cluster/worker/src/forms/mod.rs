//! The table form of popular columns: made once from the bytes that are held, kept as any segment, never written anywhere.
//!
//! A column of a row group of Parquet is made by itself. Of text, the columns of a chunk that readers ask for together are
//! made in one reading of its lines, which is most of the work.

mod cell;
mod clock;
mod costs;
mod footers;
mod gather;
mod known;
mod lines;
mod make;
mod make_parquet;
mod make_text;
mod parquet;
mod queue;
mod read;
mod text;
mod thread;

pub(crate) use queue::Forms;
