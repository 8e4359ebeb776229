//! Lambdas that name columns beside their lists.

use crate::support::Lake;

#[tokio::test(flavor = "multi_thread")]
async fn a_lambda_finds_its_variables_where_other_columns_are_left_out() {
    let lake = Lake::new();
    lake.rows("set datafusion.sql_parser.dialect = 'duckdb'").await;
    let rows = "(1, [1, 2], 10, [5], 'p'), (2, [3], 20, [6, 7], 'q')";
    lake.rows(&format!("copy (select * from (values {rows}) t(a, l, b, m, s)) to '/lake/t.parquet'")).await;
    lake.rows(&format!("copy (select a, b, s from (values {rows}) t(a, l, b, m, s)) to '/lake/t.csv'")).await;
    let (files, values) = ("'/lake/t.parquet'".to_string(), format!("(values {rows}) t(a, l, b, m, s)"));
    for of in [&files, &values] {
        for (call, shown) in [
            ("array_transform(l, x -> x + b)", "11 12\n23"),
            ("array_transform(l, x -> x + a)", "2 3\n5"),
            ("array_transform(m, x -> case when x > 6 then s else 'r' end)", "r\nr q"),
            ("case when b > 10 then array_transform(m, x -> x + b) else l end", "1 2\n26 27"),
            ("flatten(array_transform(l, x -> array_transform(m, y -> x * y + b)))", "15 20\n38 41"),
        ] {
            let sql = format!("select array_to_string({call}, ' ') as c from {of} order by c");
            assert_eq!(lake.rows(&sql).await, shown, "{sql}");
        }
        let met = format!("select s from {of} where array_any_match(m, x -> x + b > 26)");
        assert_eq!(lake.rows(&met).await, "q");
        let below =
            format!("select c, s from (select s, array_length(array_filter(l, x -> x * 10 > b)) as c from {of}) where s = 'p'");
        assert_eq!(lake.rows(&below).await, "1 p");
    }
    assert_eq!(
        lake.rows("select array_to_string(array_transform([1, 2], x -> x * b), ' ') as c from '/lake/t.csv' where s = 'q'").await,
        "20 40"
    );
}
