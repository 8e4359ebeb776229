//! Decoded columns: the same answers, of the version that is current, whatever becomes of the worker.

mod far;
mod kinds;
mod text;

use std::time::{Duration, Instant};

use forebay_sql::{Engine, EngineSettings};
use object_store::ObjectStoreExt;
use object_store::path::Path;

use crate::cluster::Cluster;
use crate::support::{Lake, rows, settings};
use crate::tpch::{answers, tables, views};

/// Longer than a client believes that a column is not decoded.
pub const QUIET: Duration = Duration::from_millis(1100);

/// Row groups that a query has read decoded.
async fn decoded(engine: &Engine, sql: &str) -> u64 {
    counted(engine, sql, "row_groups_decoded=").await
}

/// The sum of a count over all scans of a query.
pub async fn counted(engine: &Engine, sql: &str, name: &str) -> u64 {
    let text = rows(engine, &format!("explain analyze {sql}")).await;
    let counts = text.split(name).skip(1);
    counts.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u64>().unwrap()).sum()
}

/// Runs a query until all of its row groups are read decoded.
async fn heat(engine: &Engine, sql: &str, row_groups: u64) {
    heat_until(engine, sql, "row_groups_decoded=", row_groups).await;
}

/// Runs a query until it has counted so many.
pub async fn heat_until(engine: &Engine, sql: &str, name: &str, least: u64) {
    let began = Instant::now();
    while counted(engine, sql, name).await < least {
        assert!(began.elapsed() < Duration::from_secs(120), "not decoded: {sql}");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// A file of five row groups whose ids begin at `from`, at `/lake/v.parquet`.
async fn put(cluster: &Cluster, from: i64) {
    let lake = Lake::new();
    lake.rows("set datafusion.execution.parquet.max_row_group_size = 10000").await;
    let select =
        "value as id, nullif(value % 5, 0) as rest, concat('a longer name ', value % 100) as name, value % 2 = 0 as even";
    let sql = format!("copy (select {select} from generate_series({from}, {}) as t(value)) to '/lake/v.parquet'", from + 49_999);
    lake.rows(&sql).await;
    let bytes = lake.store.get(&Path::parse("v.parquet").unwrap()).await.unwrap().bytes().await.unwrap();
    cluster.put("v.parquet", &bytes);
}

const QUERY: &str =
    "select count(*), sum(id), sum(rest), min(name), count(distinct even) from '/lake/v.parquet' where id % 3 = 0";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tpch_answers_the_same_from_decoded_columns() {
    let (cluster, lake) = (Cluster::hot().await, Lake::new());
    for (name, bytes) in tables(0.01) {
        cluster.put(&format!("tpch/{name}.parquet"), &bytes);
        lake.put(&format!("tpch/{name}.parquet"), bytes).await;
    }
    views(&lake.engine).await;
    let raw = answers(&lake.engine).await;
    let engine = cluster.engine();
    views(&engine).await;
    let mut bytes = 0;
    for round in 0.. {
        assert!(round < 12, "columns are still being decoded: {bytes}");
        assert_eq!(answers(&engine).await, raw, "round {round}");
        tokio::time::sleep(QUIET).await;
        let now = cluster.worker().report().form_bytes;
        if now > 0 && now == bytes {
            break;
        }
        bytes = now;
    }
    let scan = "select sum(l_quantity), min(l_shipmode), max(l_shipdate) from lineitem";
    heat(&engine, scan, 1).await;
    let off = Engine::over_client(cluster.client.clone(), EngineSettings { hot_form: false, ..settings() });
    views(&off).await;
    assert_eq!(decoded(&off, scan).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rows_types_order_and_limits_are_the_same() {
    let cluster = Cluster::hot().await;
    put(&cluster, 1).await;
    let (hot, raw) =
        (cluster.engine(), Engine::over_client(cluster.client.clone(), EngineSettings { hot_form: false, ..settings() }));
    let all = "select * from '/lake/v.parquet'";
    heat(&hot, all, 5).await;
    for sql in [
        all,
        "select name, id from '/lake/v.parquet' where rest is null and id between 12000 and 12100",
        "select id from '/lake/v.parquet' limit 7",
        "select id + 1 as next, upper(name) from '/lake/v.parquet' order by id desc limit 20",
        "select arrow_typeof(name), arrow_typeof(rest), arrow_typeof(even) from '/lake/v.parquet' limit 1",
        "select count(*) from '/lake/v.parquet'",
        QUERY,
    ] {
        assert_eq!(rows(&hot, sql).await, rows(&raw, sql).await, "{sql}");
    }
    // Statistics spare row groups of either form.
    assert_eq!(decoded(&hot, "select sum(id) from '/lake/v.parquet' where id > 45000").await, 1);
    // Strings that the session wants in another layout are the same ones.
    for engine in [&hot, &raw] {
        rows(engine, "set datafusion.execution.parquet.schema_force_view_types = false").await;
    }
    let sql = "select max(name), arrow_typeof(max(name)) from '/lake/v.parquet'";
    assert_eq!(rows(&hot, sql).await, rows(&raw, sql).await);
    let sql = "select name, count(*), sum(id) from '/lake/v.parquet' where name like '%7' group by name order by name";
    assert_eq!(rows(&hot, sql).await, rows(&raw, sql).await);
    assert_eq!(decoded(&hot, sql).await, 5, "read decoded as well");
    for engine in [&hot, &raw] {
        rows(engine, "set datafusion.execution.parquet.pushdown_filters = true").await;
    }
    assert_eq!(rows(&hot, QUERY).await, rows(&raw, QUERY).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rows_that_a_join_or_a_top_k_cannot_want_are_dropped_in_the_scan() {
    let cluster = Cluster::hot().await;
    put(&cluster, 1).await;
    let (hot, raw) =
        (cluster.engine(), Engine::over_client(cluster.client.clone(), EngineSettings { hot_form: false, ..settings() }));
    heat(&hot, "select * from '/lake/v.parquet'", 5).await;
    let few = "(select id + 7 as id from '/lake/v.parquet' where name = 'a longer name 7')";
    for (sql, dropped) in [
        (format!("select count(*), sum(v.rest), min(v.name) from '/lake/v.parquet' v join {few} few on v.id = few.id"), true),
        (format!("select count(*), sum(v.rest) from '/lake/v.parquet' v left join {few} few on v.id = few.id"), false),
        (format!("select count(*) from '/lake/v.parquet' v join {few} few on v.rest = few.id % 5 where v.even"), true),
        ("select id, name from '/lake/v.parquet' order by rest, id limit 3".to_string(), true),
        ("select id, name from '/lake/v.parquet' order by name desc nulls first, id limit 9".to_string(), true),
    ] {
        assert_eq!(rows(&hot, &sql).await, rows(&raw, &sql).await, "{sql}");
        assert_eq!(counted(&hot, &sql, "decoded_rows_dropped=").await > 0, dropped, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_overwritten_object_never_answers_with_old_columns() {
    let cluster = Cluster::hot().await;
    let engine = cluster.engine();
    for from in [1, 1_000_001, 2_000_001] {
        put(&cluster, from).await;
        let sql = "select min(id), max(id), count(name) from '/lake/v.parquet' where id % 2 >= 0";
        assert_eq!(rows(&engine, sql).await, format!("{from} {} 50000", from + 49_999));
        heat(&engine, sql, 5).await;
        assert_eq!(rows(&engine, sql).await, format!("{from} {} 50000", from + 49_999));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_dropped_is_read_raw() {
    let cluster = Cluster::hot().await;
    put(&cluster, 1).await;
    let engine = cluster.engine();
    let answer = rows(&engine, QUERY).await;
    heat(&engine, QUERY, 5).await;
    let version = cluster.client.open(&"/lake/v.parquet".parse().unwrap()).await.unwrap().version;
    cluster.client.free([version]).await.unwrap();
    assert_eq!(rows(&engine, QUERY).await, answer);
    assert_eq!(decoded(&engine, QUERY).await, 0);
    heat(&engine, QUERY, 5).await;
    assert_eq!(rows(&engine, QUERY).await, answer, "decoded again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_killed_worker_is_no_failed_query() {
    let mut cluster = Cluster::hot().await;
    put(&cluster, 1).await;
    let engine = cluster.engine();
    let answer = rows(&engine, QUERY).await;
    heat(&engine, QUERY, 5).await;
    cluster.kill_worker();
    for _ in 0..3 {
        assert_eq!(rows(&engine, QUERY).await, answer);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_mount_can_turn_it_off() {
    let cluster = Cluster::hot().await;
    put(&cluster, 1).await;
    let engine = cluster.engine();
    heat(&engine, QUERY, 5).await;
    cluster.set_hot_form(forebay_types::HotForm::Raw).await;
    assert_eq!(decoded(&engine, QUERY).await, 0);
}
