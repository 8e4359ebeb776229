//! Records by a key that is bound to the statement: once it was planned they are read without the planner, and are the same.

use std::collections::HashMap;
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use forebay_shard::{Key, Value};
use forebay_shard_store::{Column, ColumnKind, Columns, Store};
use forebay_shards::{Shards, create};
use forebay_sql::{Engine, ParamValues, Query, ScalarValue};
use forebay_types::Result;
use serde_json::json;

use super::lake;
use crate::cluster::Cluster;
use crate::support::{rows, text};

/// What a statement gave, and whether it was read without the planner.
struct Answer {
    schema: SchemaRef,
    rows: Vec<RecordBatch>,
    is_kept: bool,
}

async fn answer(query: Result<Query>) -> std::result::Result<Answer, String> {
    let mut query = query.map_err(|error| error.to_string())?;
    let (schema, is_kept) = (query.schema(), query.plan_text().contains("planned before"));
    let rows = query.collect().await.map_err(|error| error.to_string())?;
    Ok(Answer { schema, rows, is_kept })
}

async fn bound(engine: &Engine, sql: &str, value: ScalarValue) -> std::result::Result<Answer, String> {
    answer(engine.execute_with(sql, ParamValues::from(vec![value])).await).await
}

fn int(key: i64) -> ScalarValue {
    ScalarValue::Int64(Some(key))
}

/// The name that a key has, by a statement that is kept or, where `is_kept` is false, not.
async fn name(engine: &Engine, key: i64, is_kept: bool) -> String {
    let answer = bound(engine, "select name from t where id = $1", int(key)).await.unwrap();
    assert_eq!(answer.is_kept, is_kept, "{key}");
    text(&answer.rows)
}

/// A dataset of one shard in the place of what is there.
async fn put(cluster: &Cluster, path: &str, columns: Columns, records: Vec<(Key, Vec<Value>)>) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("built");
    let mut building = Store::build(&folder, columns.clone(), 0.9).unwrap();
    for (key, values) in records {
        building.push(key, values).unwrap();
    }
    building.finish().unwrap();
    let mut creating = create(&cluster.client, &path.parse().unwrap(), columns, vec![0.9], true).await.unwrap();
    creating.push(&folder, |_| {}).await.unwrap();
    creating.finish().await.unwrap();
}

fn named(key: ColumnKind) -> Columns {
    Columns::new(vec![Column::new("name", ColumnKind::Text), Column::new("id", key)], "id").unwrap()
}

async fn put_named(cluster: &Cluster, path: &str, name: &str) {
    put(cluster, path, named(ColumnKind::Int), vec![(Key::U64(7), vec![Value::Text(name.into())])]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bound_key_is_read_without_the_planner_once_it_was_planned() {
    let (_cluster, engine) = lake().await;
    rows(&engine, "create external table t stored as shard location '/lake/t.shards'").await;
    for sql in [
        "select * from t where id = $1",
        "select weight, id, at, is_new from t where id = $1",
        "select price from t where $1 = id limit 3",
        "select x.day, x.part from t as x where x.id = $1",
        "select name from '/lake/t.shards' where id = $1",
        "select id from t where id = $1",
    ] {
        // The third one has nulls, the fourth is none.
        for (place, key) in [7, 8, -625, 99_999].into_iter().enumerate() {
            let kept = bound(&engine, sql, int(key)).await.unwrap();
            let planned = answer(engine.execute(&sql.replace("$1", &key.to_string())).await).await.unwrap();
            assert_eq!((kept.schema, kept.rows), (planned.schema, planned.rows), "{sql}: {key}");
            assert_eq!((kept.is_kept, planned.is_kept), (place > 0, false), "{sql}: {key}");
        }
    }
    let sql = "select name from t where id = $key";
    for is_kept in [false, true] {
        let values = ParamValues::from(HashMap::from([("key".to_string(), int(7))]));
        let by_name = answer(engine.execute_with(sql, values).await).await.unwrap();
        assert_eq!((text(&by_name.rows), by_name.is_kept), (rows(&engine, "select name from t where id = 7").await, is_kept));
    }
    let explained = bound(&engine, "explain select name from t where id = $1", int(7)).await.unwrap();
    assert!(text(&explained.rows).contains("without the planner"), "{}", text(&explained.rows));
    let plain = rows(&engine, "explain select name from t where id = 7").await;
    assert!(plain.contains("1 keys") && !plain.contains("without the planner"), "{plain}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn values_of_other_types_are_the_planners() {
    let (cluster, engine) = lake().await;
    rows(&engine, "create external table t stored as shard location '/lake/t.shards'").await;
    let sql = "select name, id from t where id = $1";
    let of_key = bound(&engine, sql, int(7)).await.unwrap();
    for value in [
        ScalarValue::Int32(Some(7)),
        ScalarValue::UInt64(Some(7)),
        ScalarValue::UInt64(Some(u64::MAX)),
        ScalarValue::Float64(Some(7.0)),
        ScalarValue::Float64(Some(7.5)),
        ScalarValue::Utf8(Some("7".into())),
        ScalarValue::Utf8(Some("x".into())),
        ScalarValue::Decimal128(Some(70), 5, 1),
        ScalarValue::Boolean(Some(true)),
        ScalarValue::Date32(Some(7)),
        ScalarValue::Int64(None),
        ScalarValue::Null,
    ] {
        let both = (bound(&engine, sql, value.clone()).await, bound(&cluster.engine(), sql, value.clone()).await);
        match both {
            (Ok(known), Ok(new)) => {
                assert_eq!((known.schema, known.rows, known.is_kept), (new.schema, new.rows, false), "{value:?}");
            }
            (known, new) => assert_eq!(known.err(), new.err(), "{value:?}"),
        }
    }
    let two = ParamValues::from(vec![int(7), int(8)]);
    let refused = answer(engine.execute_with(sql, two).await).await.err().unwrap();
    assert!(refused.contains("a value for $2"), "{refused}");
    let again = bound(&engine, sql, int(7)).await.unwrap();
    assert_eq!((again.rows, again.is_kept), (of_key.rows, true));

    put(
        &cluster,
        "/lake/texts.shards",
        named(ColumnKind::Text),
        vec![("a".into(), vec![Value::Text("one".into())]), ("é'".into(), vec![Value::Null])],
    )
    .await;
    let whole = vec![(Key::U64(5), vec![Value::Text("five".into())]), (Key::U64(u64::MAX), vec![Value::Text("most".into())])];
    put(&cluster, "/lake/whole.shards", named(ColumnKind::Uint), whole).await;
    let of_text = |text: &str| ScalarValue::Utf8(Some(text.into()));
    let of_whole = |number| ScalarValue::UInt64(Some(number));
    for (sql, values) in [
        ("select name, id from '/lake/texts.shards' where id = $1", ["a", "é'", "b", "none"].map(of_text)),
        ("select id, name from '/lake/whole.shards' where id = $1", [5, u64::MAX, 0, 6].map(of_whole)),
    ] {
        for (place, value) in values.into_iter().enumerate() {
            let (known, new) =
                (bound(&engine, sql, value.clone()).await.unwrap(), bound(&cluster.engine(), sql, value).await.unwrap());
            assert_eq!((known.schema, known.rows), (new.schema, new.rows), "{sql}, {place}");
            assert_eq!((known.is_kept, new.is_kept), (place > 0, false), "{sql}, {place}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_other_statements_are_planned_each_time() {
    let (_cluster, engine) = lake().await;
    rows(&engine, "create external table t stored as shard location '/lake/t.shards'").await;
    rows(&engine, "create view v as select name, id from t").await;
    for sql in [
        "select name as n from t where id = $1",
        "select name || 'x' from t where id = $1",
        "select name from t where id = $1 and part = 2",
        "select name from t where id = $1 or id = 8",
        "select count(*) from t where id = $1",
        "select name from t where id = $1 limit 0",
        "select name from t where id = $1 limit 1 offset 1",
        "select name from t where id + 0 = $1",
        "select name from t where part = $1 order by name",
        "select distinct name from t where id = $1",
        "select name from v where id = $1",
        "select a from t as x(a, b, c, d, e, f, g, h, i) where a = $1",
        "select name from t where id = $1 union all select name from t where id = $1",
        "select name from '/lake/t.parquet' where id = $1",
    ] {
        let planned = answer(engine.execute(&sql.replace("$1", "7")).await).await.unwrap();
        for _ in 0..2 {
            let again = bound(&engine, sql, int(7)).await.unwrap();
            assert_eq!((text(&again.rows), again.is_kept), (text(&planned.rows), false), "{sql}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_with_other_settings_keep_their_own() {
    let (_cluster, engine) = lake().await;
    rows(&engine, "create external table t stored as shard location '/lake/t.shards'").await;
    let sessions = [engine.session(), engine.session()];
    rows(&sessions[1], "set datafusion.execution.batch_size = 100").await;
    for is_kept in [false, true, true] {
        for session in &sessions {
            name(session, 7, is_kept).await;
        }
    }
    let long = format!("select name{}from t where id = $1", " ".repeat(40 << 10));
    for _ in 0..2 {
        assert!(!bound(&engine, &long, int(7)).await.unwrap().is_kept, "a text of 40 KiB is kept");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_others_change_is_seen_by_statements_that_are_kept() {
    let (cluster, engine) = lake().await;
    let other = cluster.engine();
    put_named(&cluster, "/lake/u.shards", "second").await;
    rows(&engine, "create external table t stored as shard location '/lake/t.shards'").await;
    let first = name(&engine, 7, false).await;
    assert_eq!(name(&engine, 7, true).await, first);

    let shards = Shards::open(&cluster.client, &"/lake/t.shards".parse().unwrap()).await.unwrap();
    for number in 0..20 {
        let changed = format!("name {number}");
        shards.change(&[json!({"put": {"id": 7, "name": changed}})]).await.unwrap();
        assert_eq!(text(&bound(&engine, "select name from t where id = $1", int(7)).await.unwrap().rows), changed);
    }
    shards.change(&[json!({"delete": 7})]).await.unwrap();
    assert!(bound(&engine, "select name from t where id = $1", int(7)).await.unwrap().rows.is_empty());

    rows(&other, "create or replace external table t stored as shard location '/lake/u.shards'").await;
    assert_eq!(name(&engine, 7, false).await, "second");
    assert_eq!(name(&engine, 7, true).await, "second");
    rows(&engine, "set datafusion.execution.batch_size = 100").await;
    assert_eq!(name(&engine, 7, false).await, "second");
    assert_eq!(name(&engine, 7, true).await, "second");

    put_named(&cluster, "/lake/u.shards", "third").await;
    let replaced = forebay_runtime::now();
    let sql = "select name from t where id = $1";
    while text(&bound(&engine, sql, int(7)).await.unwrap().rows) != "third" {
        assert!(replaced.elapsed() < Duration::from_secs(10), "a dataset that was replaced is read all the same");
        forebay_runtime::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(name(&engine, 7, true).await, "third");

    rows(&other, "drop table t").await;
    let gone = bound(&engine, sql, int(7)).await.err().unwrap();
    let told = bound(&other, sql, int(7)).await.err().unwrap();
    assert_eq!(gone, told);
    rows(&engine, "create view t as select 'of a view' as name, cast(7 as bigint) as id").await;
    assert_eq!(name(&engine, 7, false).await, "of a view");
}
