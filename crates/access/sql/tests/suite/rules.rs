//! Rules of planning that gave wrong rows: joins by `=`, which no null is equal in, beside joins by `is not distinct from`, which nulls
//! are equal in; and aggregates without groups, which give a row also over nothing.

use std::time::{Duration, Instant};

use crate::support::Lake;

#[tokio::test(flavor = "multi_thread")]
async fn keys_by_which_nulls_are_equal_do_not_meet_others() {
    let lake = Lake::new();
    lake.rows("copy (select * from (values (1, null), (null, 1), (1, 1), (null, null)) as t(a, b)) to '/lake/t.parquet'").await;
    let t = "'/lake/t.parquet'";
    // Of each query the number of rows, as it was counted by hand.
    for (from, rows) in [
        (format!("{t} x join {t} y on x.a is not distinct from y.a"), "8"),
        (format!("{t} x join {t} y on x.a is not distinct from y.a where x.b = y.b"), "2"),
        (format!("{t} x join {t} y on (x.a is not distinct from y.a) and x.b = y.b"), "2"),
        (format!("{t} x join {t} y on (x.a is not distinct from y.a) and (x.b is not distinct from y.b)"), "4"),
        (format!("{t} x join {t} y on x.b = y.b join {t} z on z.a is not distinct from y.a"), "8"),
        (format!("{t} x join {t} y on x.a is not distinct from y.a join {t} z on z.b = y.b"), "8"),
        (format!("{t} x, {t} y, {t} z where (x.a is not distinct from y.a) and y.b = z.b and z.a = x.a"), "2"),
        (format!("{t} x right join {t} y on x.a is not distinct from y.a where x.b = y.b"), "2"),
        (format!("{t} x left join {t} y on (x.a is not distinct from y.a) and x.b = y.b"), "4"),
    ] {
        assert_eq!(lake.rows(&format!("select count(*) from {from}")).await, rows, "{from}");
    }
    // A join by nulls alone is still one by hash, and others find their keys beside it.
    let plan = lake
        .rows(&format!("explain select x.a from {t} x, {t} y, {t} z where (x.a is not distinct from y.a) and y.b = z.b"))
        .await;
    assert!(plan.contains("NullsEqual: true") && !plan.contains("CrossJoin") && !plan.contains("NestedLoop"), "{plan}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_that_is_never_true_takes_the_row_of_an_aggregate_away() {
    let lake = Lake::new();
    lake.rows("copy (select * from (values (1, 'x'), (2, 'y')) as t(a, b)) to '/lake/t.parquet'").await;
    let t = "'/lake/t.parquet'";
    // Of each query the number of rows, as it was counted by hand.
    for (from, rows) in [
        (format!("(select min(a) as m, 1 as k from {t}) where k > 5"), "0"),
        (format!("(select min(a) as m, 1 as k from {t}) where k < 5"), "1"),
        (format!("(select a as m, 1 as k from {t} union all select min(a), 2 from {t}) where k <= 1"), "2"),
        (format!("(select a as m, 1 as k from {t} union all select min(a), 2 from {t}) where k not in (1)"), "1"),
        (format!("(select a as m, 1 as k from {t} union all select min(a), null from {t}) where k <= 1"), "2"),
        (format!("(select min(a) as m, 1 as k from {t}) where m = 1 and k = 1"), "1"),
        (format!("(select b, min(a) as m, 1 as k from {t} group by b) where k > 5"), "0"),
        (format!("(select b, min(a) as m from {t} group by b) where b = 'x'"), "1"),
    ] {
        assert_eq!(lake.rows(&format!("select count(*) from {from}")).await, rows, "{from}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_computes_for_ever_leaves_room_for_others() {
    let lake = Lake::new();
    // Each gives rows all the time. A join that finds none goes through what it reads at once without a pause (DataFusion's loop, not a
    // plan's): that one is not kept from doing so.
    let (many, more) = ("generate_series(1, 100000000) a", "generate_series(1, 100000) b");
    for query in [
        format!("select count(*) from {many}, {more} where a.value % 7 = b.value % 11"),
        format!("select count(*) from {many}, {more} where a.value + b.value > 7"),
        format!("select count(a.value + b.value) from {many}, {more}"),
        format!("select count(u) from (select unnest(range(0, a.value % 10000)) as u from {many})"),
        format!("select sum(v) from (select sum(a.value) over (order by a.value % 3 rows 3 preceding) as v from {many})"),
    ] {
        let started = Instant::now();
        // What ends it needs a thread that is free for a moment.
        let ended = tokio::time::timeout(Duration::from_secs(1), lake.rows(&query)).await;
        assert!(ended.is_err(), "{query}");
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}: {query}", started.elapsed());
    }
}
