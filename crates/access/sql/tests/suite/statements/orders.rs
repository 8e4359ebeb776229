//! Orders: those that a limit takes its rows by, wherever they stand.

use crate::support::Lake;

#[tokio::test(flavor = "multi_thread")]
async fn sorts_with_a_limit_below_a_merge_sort_by_all_that_is_merged_by() {
    let lake = Lake::new();
    lake.rows("copy (select cast(null as bigint) as a, value as b from generate_series(1, 50) as t(value)) to '/lake/t.parquet'")
        .await;
    let both = "(select a as x, 1 as y from '/lake/t.parquet' group by a, b) union all (select a + 1, 0 from '/lake/t.parquet')";
    let query = format!("{both} order by 2, 1 nulls first limit 3");
    for _ in 0..20 {
        assert_eq!(lake.rows(&query).await, "0\n0\n0", "the rows of one partition left out those of the other");
    }
    let plan = lake.rows(&format!("explain {query}")).await;
    assert!(plan.contains("TopK(fetch=3), expr=[y@1 ASC NULLS LAST, x@0 ASC]"), "{plan}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_above_a_limit_leaves_the_one_below_it_where_it_is() {
    let lake = Lake::new();
    let t = "(values (1), (2), (3), (4), (5)) t(x)";
    let greatest = format!("(select x from {t} order by x desc limit 2)");
    for (query, rows) in [
        (format!("select x from ({greatest} order by x) d order by x"), "4\n5"),
        (format!("select sum(x) from (select x from {greatest} g order by x) d"), "9"),
        (format!("with g as {greatest} select sum(a.x + b.x) from (select * from g order by x) a join g b on a.x = b.x"), "18"),
        (format!("select sum(x) from (select x from (select x from {t} order by x desc) order by x limit 2) d"), "3"),
    ] {
        assert_eq!(lake.rows(&query).await, rows, "{query}");
    }
    // What nobody sees is not done, and no query is refused for it.
    let plan = lake.rows(&format!("explain select sum(x) from (select x from {t} order by x) d")).await;
    assert!(!plan.contains("Sort"), "{plan}");
    let within = "select count(*) from (values (1), (7)) o(y) where exists (select 1 from";
    assert_eq!(lake.rows(&format!("{within} (select x from {t} order by x) d where d.x = o.y)")).await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_rows_of_groups_are_chosen_when_other_windows_have_seen_all_of_them() {
    let lake = Lake::new();
    lake.rows("set datafusion.optimizer.enable_window_topn = true").await;
    let (over, t) = ("over (partition by k order by v)", "(values (1, 1), (1, 2), (2, 1), (2, 5)) t(k, v)");
    let numbered = format!("select k, v, row_number() {over} as n, lead(v) {over} as l from {t}");
    for (condition, rows) in [("n <= 1", "1 1 2\n2 1 5"), ("n < 1", "")] {
        let query = format!("select k, v, l from ({numbered}) where {condition} order by k");
        assert_eq!(lake.rows(&query).await, rows, "{query}");
    }
}
