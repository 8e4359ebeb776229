//! TPC-H's published answers at scale factor 1, which `check` holds answers against.

/// The published answers at scale factor 1: the number of rows, the columns and rows that are kept.
pub(super) const ANSWERS: [&str; 22] = [
    include_str!("../../../../../testing/tpch-answers/sf1/q01.csv"),
    include_str!("../../../../../testing/tpch-answers/sf1/q02.csv"),
    include_str!("../../../../../testing/tpch-answers/sf1/q03.csv"),
    include_str!("../../../../../testing/tpch-answers/sf1/q04.csv"),
    include_str!("../../../../../testing/tpch-answers/sf1/q05.csv"),
    include_str!("../../../../../testing/tpch-answers/sf1/q06.csv"),
    include_str!("../../../../../testing/tpch-answers/sf1/q07.csv"),
    include_str!("../../../../../testing/tpch-answers/sf1/q08.csv"),
    include_str!("../../../../../testing/tpch-answers/sf1/q09.csv"),
    include_str!("../../../../../testing/tpch-answers/sf1/q10.csv"),
    include_str!("../../../../../testing/tpch-answers/sf1/q11.csv"),
    include_str!("../../../../../testing/tpch-answers/sf1/q12.csv"),
    include_str!("../../../../../testing/tpch-answers/sf1/q13.csv"),
    include_str!("../../../../../testing/tpch-answers/sf1/q14.csv"),
    include_str!("../../../../../testing/tpch-answers/sf1/q15.csv"),
    include_str!("../../../../../testing/tpch-answers/sf1/q16.csv"),
    include_str!("../../../../../testing/tpch-answers/sf1/q17.csv"),
    include_str!("../../../../../testing/tpch-answers/sf1/q18.csv"),
    include_str!("../../../../../testing/tpch-answers/sf1/q19.csv"),
    include_str!("../../../../../testing/tpch-answers/sf1/q20.csv"),
    include_str!("../../../../../testing/tpch-answers/sf1/q21.csv"),
    include_str!("../../../../../testing/tpch-answers/sf1/q22.csv"),
];
