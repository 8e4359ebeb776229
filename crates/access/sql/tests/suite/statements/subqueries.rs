//! Subqueries that stand for one value and name a column of the query around them: one row for each of its rows, or refused.

use forebay_types::ErrorKind;

use crate::support::Lake;

async fn lake() -> Lake {
    let lake = Lake::new();
    let rows = "(1, 'a', '1', 1.2::double), (1, 'b', '01', 1.4::double), (2, 'a', '2', 2.5::double)";
    lake.rows(&format!("copy (select * from (values {rows}) as t(k, j, s, x)) to '/lake/t.parquet'")).await;
    lake.rows("copy (select value as id, value * 10 as v from generate_series(1, 2)) to '/lake/d.parquet'").await;
    let d =
        "create external table d (id bigint not null, v bigint, primary key (id)) stored as parquet location '/lake/d.parquet'";
    lake.rows(d).await;
    lake
}

/// What a subquery is for each of the numbers from 1 to 3.
fn of_each(subquery: &str) -> String {
    format!("select o.n, coalesce(({subquery}), -1) as c from (values (1), (2), (3)) o(n) order by o.n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_may_be_several_is_refused() {
    let lake = lake().await;
    for subquery in [
        "select t.x from '/lake/t.parquet' t where t.k = o.n",
        "select count(*) from '/lake/t.parquet' t where t.k = o.n group by t.j",
        "select count(*) from '/lake/t.parquet' t where t.k = o.n group by rollup (t.k)",
        "select count(*) from '/lake/t.parquet' t where t.k >= o.n group by t.k",
        "select count(*) from '/lake/t.parquet' t where cast(t.x as int) = o.n group by t.x",
        "select count(*) from '/lake/t.parquet' t where t.s = o.n group by t.s",
        "select count(*) from '/lake/t.parquet' t where t.k = o.n and exists (select 1 from d where d.id > length(t.j)) group by t.k, t.j",
        "select count(*) from '/lake/t.parquet' t where t.k = o.n and t.j = (select max(u.j) from '/lake/t.parquet' u where u.s = t.s) \
         group by t.k, t.j",
        "select count(*) from d join '/lake/t.parquet' t on true group by d.id, t.j having d.id = o.n order by 1",
    ] {
        let error = lake.error(&of_each(subquery)).await;
        assert!(error.kind() == ErrorKind::Invalid && error.message().contains("several rows"), "{subquery}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_is_one_is_answered() {
    let lake = lake().await;
    for (subquery, rows) in [
        ("select count(*) from '/lake/t.parquet' t where t.k = o.n", "1 2\n2 1\n3 0"),
        ("select count(*) from '/lake/t.parquet' t where o.n = t.k group by t.k", "1 2\n2 1\n3 -1"),
        ("select count(*) from (select t.j, t.k from '/lake/t.parquet' t where t.k = o.n) group by k", "1 2\n2 1\n3 -1"),
        ("select max(t.k) + 1 from '/lake/t.parquet' t where t.k = o.n group by t.k having count(*) > 1", "1 2\n2 -1\n3 -1"),
        ("select max(t.k) from '/lake/t.parquet' t where t.k = o.n group by t.k having max(t.k) + 1 = o.n + 1", "1 1\n2 2\n3 -1"),
        ("select count(*) from '/lake/t.parquet' t join d on t.k = d.id where t.k = o.n group by t.k", "1 2\n2 1\n3 -1"),
        ("select d.v from d where d.id = o.n", "1 10\n2 20\n3 -1"),
        ("select count(*) from '/lake/t.parquet' t where t.k + 1 = o.n", "1 0\n2 2\n3 1"),
        // The first of several rows.
        ("select t.k from '/lake/t.parquet' t where t.k = o.n limit 1", "1 1\n2 2\n3 -1"),
        ("select t.x from '/lake/t.parquet' t where t.k = o.n order by t.x desc limit 1", "1 1.4\n2 2.5\n3 -1.0"),
        ("select t.x * 2 as y from '/lake/t.parquet' t where t.k = o.n order by t.j desc limit 1", "1 2.8\n2 5.0\n3 -1.0"),
        // What is cast for the comparison: '1' and '01' are one number, 1.2 and 1.4 one whole number.
        ("select count(*) from '/lake/t.parquet' t where cast(t.s as int) = o.n", "1 2\n2 1\n3 0"),
        ("select count(*) from '/lake/t.parquet' t where t.s = o.n", "1 2\n2 1\n3 0"),
        ("select count(*) from '/lake/t.parquet' t where t.j < '9' and cast(t.j as int) = o.n", "1 0\n2 0\n3 0"),
        ("select count(*) from '/lake/t.parquet' t where o.n = cast(t.x as int)", "1 2\n2 1\n3 0"),
        (
            "select max(t.x) from '/lake/t.parquet' t join d on d.id = t.k where cast(t.s as int) = o.n and t.j > ''",
            "1 1.4\n2 2.5\n3 -1.0",
        ),
    ] {
        assert_eq!(lake.rows(&of_each(subquery)).await, rows, "{subquery}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_by_a_dictionary_are_those_of_its_words() {
    let lake = lake().await;
    lake.rows("copy (select arrow_cast(j, 'Dictionary(Int32, Utf8)') as w from '/lake/t.parquet') to '/lake/words.parquet'")
        .await;
    let words = "(select arrow_cast(column1, 'Utf8View') as s from (values ('a'), ('c'))) o";
    let count = "select count(*) from '/lake/words.parquet' t where t.w = o.s group by t.w";
    let sql = format!("select o.s, coalesce(({count}), -1) as c from {words} order by o.s");
    assert_eq!(lake.rows(&sql).await, "a 2\nc -1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_of_which_there_is_none_is_null() {
    let lake = lake().await;
    for (condition, rows) in [
        ("(select count(*) from '/lake/t.parquet' t where t.k = o.n group by t.k) is null", "3"),
        ("coalesce((select 5 from d where d.id = o.n), 7) = 7", "3"),
        ("(select count(*) from '/lake/t.parquet' t where t.k = o.n) is null", ""),
        ("(select count(*) from '/lake/t.parquet' t where t.k > 2 group by t.k) is null", "1\n2\n3"),
        ("(select d.id from d where d.id = 2) = o.n", "2"),
        // A condition that is true of no rows.
        ("(select max(t.k) from '/lake/t.parquet' t where t.k = o.n having count(*) = 0) is null", "1\n2\n3"),
        // The first row, cast for the comparison, beside groups.
        ("cast(2 as double) = (select t.k from '/lake/t.parquet' t where t.k = o.n order by t.j limit 1)", "2"),
        (
            "(cast(2 as double) is distinct from (select t.k from '/lake/t.parquet' t where t.k = o.n order by t.j limit 1)) \
             and (select count(*) from '/lake/t.parquet' t where t.k = o.n group by t.k) is not null",
            "1",
        ),
        ("(select 5 from '/lake/t.parquet' t where t.k = o.n having max(t.k) is null) = 5", "3"),
        ("(select 5 from '/lake/t.parquet' t where t.k = o.n having count(*) is not null) = 5", "1\n2\n3"),
        ("coalesce((select coalesce(max(t.k), 7) from '/lake/t.parquet' t where t.k = o.n having count(*) = 0), o.n) = 7", "3"),
    ] {
        let sql = format!("select o.n from (values (1), (2), (3)) o(n) where {condition} order by o.n");
        assert_eq!(lake.rows(&sql).await, rows, "{condition}");
    }
    let none = "select coalesce((select count(*) from '/lake/t.parquet' t where t.k > 2 group by t.k), -1)";
    assert_eq!(lake.rows(none).await, "-1");
    let made = "select (select d.id from d where d.id = 9) as id";
    assert_eq!(lake.rows(&format!("select count(*), count(id) from ({made})")).await, "1 0");
    let first = "select (select d.id from d where d.v = o.n * 10 order by d.id limit 1) as id from (values (1), (2), (3)) o(n)";
    assert_eq!(lake.rows(&format!("select count(*), count(id), max(coalesce(id, 7)) from ({first})")).await, "3 2 7");
}

#[tokio::test(flavor = "multi_thread")]
async fn aggregates_take_what_is_found_for_each_row() {
    let lake = lake().await;
    let most = "(select max(t.k) from '/lake/t.parquet' t where t.k = o.n)";
    let count = "(select count(*) from '/lake/t.parquet' t where t.k = o.n group by t.k)";
    for (shown, rows) in [
        (format!("max({count}), sum(coalesce({most}, 10)), count(*)"), "2 13 3"),
        (format!("o.n % 2 as g, count({most}) + max(o.n) as c, min({count}) as m"), "0 3 1\n1 4 2"),
    ] {
        let groups = if shown.starts_with("o.n") { "group by o.n % 2 order by g" } else { "" };
        let sql = format!("select {shown} from (values (1), (2), (3)) o(n) {groups}");
        assert_eq!(lake.rows(&sql).await, rows, "{sql}");
    }
    let kept = format!("select o.n % 2 as g from (values (1), (2), (3)) o(n) group by o.n % 2 having sum({most}) > 1");
    assert_eq!(lake.rows(&kept).await, "0");
    // As a query is planned that is cut into tasks.
    lake.rows("set datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery = false").await;
    let same = "select sum(o.n + (select max(d.id) from d)), count(*) from (values (1), (2), (3)) o(n)";
    let largest: i64 = lake.rows("select max(id) from d").await.parse().unwrap();
    assert_eq!(lake.rows(same).await, format!("{} 3", 6 + 3 * largest));
}

#[tokio::test(flavor = "multi_thread")]
async fn in_and_exists_ask_for_what_groups_are_whole() {
    let lake = lake().await;
    for (condition, rows) in [
        // All rows together are one, also where there is none.
        ("exists (select count(*) from '/lake/t.parquet' t where t.k = o.n)", "1\n2\n3"),
        ("not exists (select max(t.x) from '/lake/t.parquet' t where t.k = o.n)", ""),
        ("o.n in (select count(*) + 3 from '/lake/t.parquet' t where t.k = o.n)", "3"),
        ("o.n not in (select max(t.k) from '/lake/t.parquet' t where t.k = o.n)", ""),
        ("exists (select 1 from '/lake/t.parquet' t where t.k = o.n having count(*) = 0)", "3"),
        ("not exists (select 1 from '/lake/t.parquet' t where t.s = o.n having count(*) > 1)", "2\n3"),
        ("not exists (select count(*) from '/lake/t.parquet' t where t.k = o.n having false)", "1\n2\n3"),
        ("o.n in (select count(*) + 3 from '/lake/t.parquet' t where t.k = o.n having count(*) = 0)", "3"),
        ("o.n not in (select count(*) - 1 from '/lake/t.parquet' t where t.k = o.n having count(*) <> 1)", "2\n3"),
        // '1' and '01' are one number.
        ("o.n + 1 in (select count(*) from '/lake/t.parquet' t where t.s = o.n group by t.k)", "1"),
        ("exists (select 1 from '/lake/t.parquet' t where cast(t.s as int) = o.n group by t.k having count(*) > 1)", "1"),
    ] {
        let sql = format!("select o.n from (values (1), (2), (3)) o(n) where {condition} order by o.n");
        assert_eq!(lake.rows(&sql).await, rows, "{condition}");
    }
}
