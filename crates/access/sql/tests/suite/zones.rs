//! Times with a zone are instants, wherever they come from.

use crate::support::Lake;

#[tokio::test(flavor = "multi_thread")]
async fn a_declared_time_with_a_zone_is_an_instant() {
    let lake = Lake::new();
    lake.put("t.csv", "at\n2024-01-01T00:00:00+02:00\n2023-12-31T22:00:00Z\n").await;
    let declared = "create external table t (at timestamp with time zone) stored as csv location '/lake/t.csv'";
    lake.rows(&format!("{declared} options ('format.has_header' 'true')")).await;
    assert_eq!(lake.rows("select count(*), count(distinct at) from t").await, "2 1");
    assert_eq!(lake.rows("select distinct arrow_typeof(at) from t").await, "Timestamp(ns, \"UTC\")");
    let instant = "cast('2024-01-01 00:00:00+02:00' as timestamp with time zone)";
    assert_eq!(lake.rows(&format!("select count(*) from t where at = {instant}")).await, "2");
    // A session may have another zone.
    lake.rows("set datafusion.execution.time_zone = '+02:00'").await;
    assert_eq!(lake.rows(&format!("select cast({instant} as varchar)")).await, "2024-01-01T00:00:00+02:00");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_never_null_by_one_side_is_grouped_with_what_may_be() {
    let lake = Lake::new();
    lake.rows("copy (select 'b' as x union all select null) to '/lake/n.parquet'").await;
    let sql = "(select ('a' < x) is not false as y from '/lake/n.parquet') except (select false from '/lake/n.parquet')";
    assert_eq!(lake.rows(sql).await, "true");
}
