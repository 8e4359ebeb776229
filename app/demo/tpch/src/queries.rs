//! TPC-H's queries with the specification's validation parameters.

/// The text of a file a query, by what stands before and behind its number.
macro_rules! of_each_query {
    ($before:literal, $after:literal) => {
        of_each_query!($before, $after, "01" "02" "03" "04" "05" "06" "07" "08" "09" "10" "11" "12" "13" "14" "15" "16" "17"
            "18" "19" "20" "21" "22")
    };
    ($before:literal, $after:literal, $($number:literal)*) => {
        [$(include_str!(concat!($before, $number, $after))),*]
    };
}
pub(crate) use of_each_query;

/// The names of the tables.
pub const TABLES: [&str; 8] = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"];

/// The 22 queries, over tables of the specification's names; query 1 is the first.
pub const QUERIES: [&str; 22] = of_each_query!("../queries/q", ".sql");
