//! TPC-H for the demo, the benchmarks and the tests: its data as Parquet, its queries, its published answers.
//!
//! Start with [`prepare`] (the data), [`Tpch`] (an engine with the tables) and [`check_answer`].

mod data;
mod engine;

pub use data::{Progress, Tables, prepare};
pub use engine::Tpch;
pub use forebay_sql::tpch::{TPCH_QUERIES as QUERIES, TPCH_TABLES as TABLES, check_answer, same_answer};
