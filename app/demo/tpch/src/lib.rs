//! TPC-H for the demo, the benchmarks and the tests: its data as Parquet, its queries, its published answers.
//!
//! Start with [`prepare`] (the data), [`Tpch`] (an engine with the tables) and [`check_answer`].

mod answers;
mod data;
mod engine;

pub use answers::{check_answer, same_answer};
pub use data::{Progress, Tables, prepare};
pub use engine::{QUERIES, TABLES, Tpch};
