//! Columns of one name in what a join gives, and what the engine takes one of them for.

use crate::support::Lake;

/// Two tables with a column `s` each.
async fn two() -> Lake {
    let lake = Lake::new();
    lake.rows("copy (select 'x' as s, 1 as n) to '/lake/a.parquet'").await;
    lake.rows("copy (select 'y' as s, 'x' as n) to '/lake/b.parquet'").await;
    lake
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_of_one_side_of_a_join_is_not_asked_of_the_others_column_of_its_name() {
    let lake = two().await;
    let join = "from '/lake/a.parquet' a right join '/lake/b.parquet' b on a.s = b.n";
    for (columns, filter) in [
        ("b.s", "concat('a', '-', a.s) <> 'a-y'"),
        ("b.s", "concat('a', '-', a.s) = 'a-x'"),
        ("b.s", "coalesce(a.s, 'z') < 'y'"),
        ("a.s as t, b.s", "upper(coalesce(a.s, '')) = 'X'"),
    ] {
        let rows = lake.rows(&format!("select {columns} {join} where {filter}")).await;
        assert_eq!(rows.split(' ').next_back(), Some("y"), "{filter}");
    }
    assert_eq!(lake.rows(&format!("select b.s {join} where coalesce(a.s, '') = 'y'")).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_with_a_semi_join_does_not_filter_by_a_column_that_only_has_the_name_of_the_key() {
    let lake = Lake::new();
    lake.rows("copy (select 5 as k) to '/lake/d.parquet'").await;
    lake.rows("copy (select value as k, value as x from generate_series(0, 99) as t(value)) to '/lake/l.parquet'").await;
    lake.rows("copy (select value as id, 1000 - value as k from generate_series(0, 99) as t(value)) to '/lake/r.parquet'").await;
    let semi = "select l.k from '/lake/l.parquet' l left semi join '/lake/r.parquet' r on l.k = r.id and l.x < r.k";
    assert_eq!(lake.rows(&format!("select s.k from '/lake/d.parquet' d join ({semi}) s on d.k = s.k")).await, "5");
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_of_columns_that_are_told_apart_still_reach_their_files() {
    let lake = two().await;
    let joined = "from '/lake/a.parquet' a join '/lake/b.parquet' b on a.s = b.n";
    let plan = lake.rows(&format!("explain select a.n as one, b.s as two {joined} where upper(b.s) = 'Y'")).await;
    assert!(plan.contains("predicate=upper"), "{plan}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_passed_down_to_the_groups_that_it_is_of_only() {
    let lake = Lake::new();
    let groups = "(select distinct value % 20 as k from generate_series(1, 1000) as t(value))";
    for (select, first) in [
        (format!("select k from {groups} order by k limit 2"), "0\n1"),
        (format!("select k from (select -k as k from {groups}) order by k limit 2"), "-19\n-18"),
        (format!("select -k as k from (select k as other, k from {groups}) order by 1 limit 2"), "-19\n-18"),
        (format!("select k from (select -other as k from (select k as other from {groups})) order by k limit 2"), "-19\n-18"),
        (format!("select j, k from (select -k as j, k from {groups}) order by j limit 2"), "-19 19\n-18 18"),
        (format!("select k, min(k) over (order by k desc rows 1 preceding) as m from {groups} order by 1 limit 2"), "0 0\n1 1"),
        (
            format!(
                "select k, min(k) over (order by k rows between current row and 1 following) as m from {groups} order by k desc limit 1"
            ),
            "19 19",
        ),
        (
            format!(
                "select k, max(k) over (order by k desc rows between current row and 2 following) from {groups} order by 1 desc limit 1"
            ),
            "19 19",
        ),
        (
            format!(
                "select k, min(k) over (order by k desc rows between 2 preceding and current row) from {groups} order by 1 limit 1"
            ),
            "0 0",
        ),
        (format!("select k, sum(k) over (order by k desc) as s from {groups} order by k limit 1"), "0 190"),
    ] {
        assert_eq!(lake.rows(&select).await, first, "{select}");
    }
    let floats = "(values (1.5), (cast('nan' as double)), (cast('inf' as double)), (null), (-2.0)) as t(x)";
    lake.rows(&format!("copy (select cast(x as double) as x from {floats}) to '/lake/floats.parquet'")).await;
    let grouped = "from '/lake/floats.parquet' group by x order by x";
    assert_eq!(lake.rows(&format!("select x {grouped} desc nulls last limit 3")).await, "NaN\ninf\n1.5");
    assert_eq!(lake.rows(&format!("select x {grouped} limit 2")).await, "-2.0\n1.5");
    assert_eq!(lake.rows(&format!("select x, max(x) {grouped} limit 2")).await, "-2.0 -2.0\n1.5 1.5");
    let plan = lake.rows(&format!("explain select k as j from {groups} order by j limit 2")).await;
    assert!(plan.contains("lim=[2]"), "{plan}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_computed_of_itself_twice_is_computed_twice() {
    let lake = Lake::new();
    lake.rows("copy (select value as s, value % 3 as t from generate_series(1, 3) as t(value)) to '/lake/s.parquet'").await;
    let nested = |columns: &str, times: usize| {
        (0..times).fold("'/lake/s.parquet'".to_string(), |below, _| format!("(select {columns} from {below})"))
    };
    for (select, rows) in [
        (format!("select s from {} order by s", nested("s + s as s", 3)), "8\n16\n24"),
        (format!("select max(s) from {}", nested("s + s as s", 2)), "12"),
        (format!("select min(s), max(s) from {}", nested("s + 1 as s", 4)), "5 7"),
        (format!("select s, t from {} order by s", nested("t as s, s as t", 2)), "1 1\n2 2\n3 0"),
        (format!("select s, t from {} order by t", nested("t as s, s as t", 3)), "1 1\n2 2\n0 3"),
        (format!("select s from {} where s > 5 order by s", nested("s * s as s, t + s as t", 2)), "16\n81"),
        (
            format!(
                "select s from (select s + s as s from (select s + s as s, t from {})) order by s",
                nested("s + s as s, t", 1)
            ),
            "8\n16\n24",
        ),
        (
            format!("select s from {} group by s having s > '2' order by s", nested("s::varchar || s::varchar as s", 2)),
            "2222\n3333",
        ),
        (
            format!("select a.s from {} a join {} b on a.s = b.s order by 1", nested("-s * 2 as s", 2), nested("-s * 2 as s", 2)),
            "4\n8\n12",
        ),
        (format!("select s from {} order by s", nested("s, t", 3)), "1\n2\n3"),
        // Equal when what lies between them is merged.
        (
            format!("select s from (select s + s as s from (select s as s from {})) order by s", nested("s + s as s", 2)),
            "8\n16\n24",
        ),
        (
            format!("select s from (select s + 1 as s from (select s * 2 as s from {})) order by s", nested("s * 2 + 1 as s", 2)),
            "15\n23\n31",
        ),
    ] {
        assert_eq!(lake.rows(&select).await, rows, "{select}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_keys_of_groups_that_have_one_name_stay_two_in_the_order_of_a_join() {
    let lake = Lake::new();
    lake.rows("copy (select value as id, value % 5 as v from generate_series(0, 39) as t(value)) to '/lake/t.parquet'").await;
    // Both sides of the join are passed on by its keys.
    for of in ["", "_rows"] {
        lake.rows(&format!("set datafusion.optimizer.hash_join_single_partition_threshold{of} = 0")).await;
    }
    let t = "'/lake/t.parquet'";
    let groups = format!("(select a.id as x, b.id as y from {t} a cross join {t} b group by a.id, b.id)");
    for kind in ["join", "full join"] {
        let joined = format!("select count(t.id + d.x) from {t} t {kind} {groups} d on t.v = d.y and t.id = d.x");
        assert_eq!(lake.rows(&joined).await, "40", "{kind}");
    }
}
