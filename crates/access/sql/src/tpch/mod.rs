//! TPC-H: its queries with the specification's validation parameters, and its published answers.

mod check;

pub use check::{check_answer, same_answer};

/// The names of the tables.
pub const TPCH_TABLES: [&str; 8] = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"];

/// The 22 queries, over tables of the specification's names; query 1 is the first.
pub const TPCH_QUERIES: [&str; 22] = [
    include_str!("../../tpch/q01.sql"),
    include_str!("../../tpch/q02.sql"),
    include_str!("../../tpch/q03.sql"),
    include_str!("../../tpch/q04.sql"),
    include_str!("../../tpch/q05.sql"),
    include_str!("../../tpch/q06.sql"),
    include_str!("../../tpch/q07.sql"),
    include_str!("../../tpch/q08.sql"),
    include_str!("../../tpch/q09.sql"),
    include_str!("../../tpch/q10.sql"),
    include_str!("../../tpch/q11.sql"),
    include_str!("../../tpch/q12.sql"),
    include_str!("../../tpch/q13.sql"),
    include_str!("../../tpch/q14.sql"),
    include_str!("../../tpch/q15.sql"),
    include_str!("../../tpch/q16.sql"),
    include_str!("../../tpch/q17.sql"),
    include_str!("../../tpch/q18.sql"),
    include_str!("../../tpch/q19.sql"),
    include_str!("../../tpch/q20.sql"),
    include_str!("../../tpch/q21.sql"),
    include_str!("../../tpch/q22.sql"),
];
