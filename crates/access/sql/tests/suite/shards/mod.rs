//! Datasets of shards as tables, against the same rows in a Parquet file.

mod joins;
mod points;
mod ranges;

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use forebay_runtime::Computing;
use forebay_shard::{Key, KeyMap, Value};
use forebay_shard_store::{Column, ColumnKind, Columns, Condition, Literal, Store};
use forebay_shards::{Shards, create};
use forebay_sql::{Engine, EngineSettings, ShardBatches};
use forebay_testbed::{Spans, trace_id, traceparent};
use forebay_trace::{Span, TraceParent};
use forebay_types::ErrorKind;
use serde_json::json;

use crate::cluster::Cluster;
use crate::support::{error, parquet, rows, settings, text};

const ROWS: i64 = 2500;
const SHARDS: usize = 3;

fn columns() -> Columns {
    let column = |name: &str, kind| Column { name: name.into(), kind };
    let all = vec![
        column("id", ColumnKind::Int),
        column("name", ColumnKind::Text),
        column("note", ColumnKind::Text),
        column("day", ColumnKind::Date),
        column("price", ColumnKind::Decimal(2)),
        column("weight", ColumnKind::Float64),
        column("is_new", ColumnKind::Bool),
        column("at", ColumnKind::Timestamp),
        column("part", ColumnKind::Int),
    ];
    Columns::new(all, "id").unwrap()
}

/// A row as values of a shard, and as SQL. Keys are on both sides of zero; every seventh row has nulls.
fn row(number: i64) -> (Key, Vec<Value>, String) {
    let key = number - ROWS / 4;
    let season = ["spring", "summer", "autumn", "winter"][number as usize % 4];
    let (name, note) = (format!("clerk{:03}", number * 31 % 97), format!("line {number} {season} of {}%_", number * 7919 % 100));
    let (day, price, weight, at) =
        (number as i32 % 800, i128::from(number % 1000 * 25), number as f64 / 8.0, number * 61_000_003);
    let is_null = number % 7 == 0;
    let or_null = |value: Value| if is_null { Value::Null } else { value };
    let values = vec![
        Value::Text(name.clone()),
        or_null(Value::Text(note.clone())),
        or_null(Value::Date(day)),
        or_null(Value::Decimal(price)),
        or_null(Value::Float(weight)),
        or_null(Value::Bool(number % 2 == 0)),
        or_null(Value::Timestamp(at)),
        Value::Int(number % 5),
    ];
    let sql = |text: String| if is_null { "null".to_string() } else { text };
    let columns = [
        key.to_string(),
        format!("'{name}'"),
        sql(format!("'{note}'")),
        sql(format!("cast(cast({day} as int) as date)")),
        sql(format!("cast('{}.{:02}' as decimal(38, 2))", price / 100, price % 100)),
        sql(format!("cast({weight} as double)")),
        sql((number % 2 == 0).to_string()),
        sql(format!("arrow_cast({at}, 'Timestamp(Microsecond, None)')")),
        (number % 5).to_string(),
    ];
    (Key::U64(key as u64), values, format!("({})", columns.join(", ")))
}

/// The rows as `/lake/t.shards` and as `/lake/t.parquet`.
async fn lake() -> (Cluster, Engine) {
    lake_by(&KeyMap::Hash(SHARDS)).await
}

/// The same, where a map says which shard has which keys.
async fn lake_by(map: &KeyMap) -> (Cluster, Engine) {
    let cluster = Cluster::start().await;
    let engine = cluster.engine();
    let folder = tempfile::tempdir().unwrap();
    let path = "/lake/t.shards".parse().unwrap();
    let mut creating = create(&cluster.client, &path, columns(), vec![0.9], false).await.unwrap();
    creating.by(map);
    for shard in 0..map.shards() {
        let part = folder.path().join(shard.to_string());
        let mut building = Store::build(&part, columns(), 0.01).unwrap();
        for (key, values, _) in (0..ROWS).map(row).filter(|(key, ..)| map.shard_of(key) == shard) {
            building.push(key, values).unwrap();
        }
        building.finish().unwrap();
        creating.push(&part, |_| {}).await.unwrap();
    }
    creating.finish().await.unwrap();
    let all: Vec<String> = (0..ROWS).map(|number| row(number).2).collect();
    let names: Vec<String> = columns().all().iter().map(|column| column.name.clone()).collect();
    let copy = format!("copy (select * from (values {}) as t({})) to '/lake/t.parquet'", all.join(", "), names.join(", "));
    assert_eq!(rows(&engine, &copy).await, ROWS.to_string());
    (cluster, engine)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_dataset_answers_as_a_file_does() {
    let (_cluster, engine) = lake().await;
    // Each with what the scan is to be asked; nothing where all records are.
    for (query, asked) in [
        ("select * from T where id = 7", "1 keys"),
        ("select note, price from T where id in (7, -600, 99999, 7) and part = 2", "3 keys"),
        ("select id from T where id in (7, 8, 9) and id in (9, 10) and name like '%k%' and weight > 1", "1 keys"),
        ("select count(*) from T where id = 7 or id = 8 or id = 99999", "3 keys"),
        ("select * from T where id = null", ""),
        ("select id from T where id in (7, null)", "1 keys"),
        ("select count(*) from T where id in (null) or id in (8, 9, null)", "2 keys"),
        ("select count(*) from T where id in (null)", ""),
        ("select id from T where id in (7, null) and part = 2", "1 keys"),
        ("select count(*) from T where id not in (7, null)", ""),
        ("select * from T", "all records"),
        ("select count(*) from T", ""),
        ("select id from T where name = 'clerk031' and is_new", "search"),
        ("select id, at from T where name like 'clerk03%'", "search"),
        ("select id from T where note like '%summer%'", "search"),
        ("select id, note from T where note like 'line 1%winter%9\\%\\_'", "all records"),
        ("select id, note from T where note like '%9__'", "search"),
        ("select count(*) from T where note like '%autumn of%'", "search"),
        ("select count(note), sum(price) from T where note ~ 'winter of [0-4].%_$'", "search"),
        ("select count(*), count(note) from T where note !~ 'winter'", ""),
        ("select count(*), count(note) from T where note !~ 'winter of [0-4]'", ""),
        ("select id from T where note like '%\\_' and name like '%7'", "search"),
        ("select id from T where name like '%31' or name like 'clerk00%' or day = date '1970-01-05'", "\"or\""),
        ("select count(*) from T where name not like '%3%' and not (day < date '1971-01-01' or is_new)", "\"not\""),
        ("select count(*) from T where note not like '%summer%'", "\"not\""),
        ("select id from T where name in ('clerk031', 'clerk032', 'clerk033', 'clerk034', 'none')", "\"in\""),
        (
            "select count(*) from T where day not in (date '1970-01-05', date '1970-01-06', date '1970-01-07', date '1970-01-08')",
            "\"in\"",
        ),
        ("select id, note from T where note ilike '%SUMMER of 1%'", "ignore_case"),
        ("select id from T where name ilike 'CLERK03_'", "ignore_case"),
        ("select count(*) from T where note not ilike 'LINE 1%'", "ignore_case"),
        ("select count(*) from T where note ~* 'SUMMER of [0-4]'", "ignore_case"),
        ("select count(*) from T where day <> date '1970-01-05' or note is null", "\"or\""),
        ("select count(*) from T where (name = 'clerk031' or weight > 300) and part <> 2", "search"),
        ("select count(*) from T where name = 'clerk031' or weight > 300", "all records"),
        ("select id, day from T where day between date '1970-02-01' and date '1970-02-03'", "search"),
        ("select id, day, price from T where day < date '1970-01-05' and price >= 100.25", "search"),
        ("select count(*) from T where price = 1.234", "all records"),
        ("select id, at from T where at >= timestamp '1970-01-02 00:00:00' and part > 3", "search"),
        ("select id from T where weight > 300.5 and part = 1", "search"),
        ("select count(*) from T where part in (1, 3)", "search"),
        ("select count(*) from T where is_new = false", "search"),
        ("select count(*) from T where is_new is null and not (note is null)", "search"),
        ("select count(*) from T where note is null", "search"),
        ("select count(*) from T where not (part = 1) and lower(name) = 'clerk031'", "search"),
        ("select count(*) from T where lower(name) = 'clerk031'", "all records"),
        ("select name, count(*) as n, min(weight), max(at) from T group by name", "all records"),
        ("select a.id, b.note from T a join T b on a.id = b.id where a.part = 1 and b.name = 'clerk031'", "search"),
    ] {
        let of = |table: &str| query.replace('T', table);
        let (shards, file) = (of("'/lake/t.shards'"), of("'/lake/t.parquet'"));
        let sorted = |query: &str| format!("select * from ({query}) order by 1");
        assert_eq!(rows(&engine, &sorted(&shards)).await, rows(&engine, &sorted(&file)).await, "{query}");
        let plan = rows(&engine, &format!("explain {shards}")).await;
        assert!(plan.contains(asked), "{query}: {plan}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn limits_go_into_the_search_where_it_is_all_of_the_condition() {
    let (_cluster, engine) = lake().await;
    let t = "'/lake/t.shards'";
    let plan = rows(&engine, &format!("explain select id from {t} where note like '%summer%' limit 3")).await;
    assert!(plan.contains("limit 3"), "{plan}");
    let found = rows(&engine, &format!("select count(*) from (select id from {t} where note like '%summer%' limit 3)")).await;
    assert_eq!(found, "3");
    // What the engine has to look at once more has no limit before that.
    let plan = rows(&engine, &format!("explain select id from {t} where note like 'line%summer%' limit 3")).await;
    assert!(plan.contains("search") && !plan.contains(", limit 3"), "{plan}");
    let whole = "name like '%1' or part in (1, 2) and note not ilike '%WINTER%'";
    let plan = rows(&engine, &format!("explain select id from {t} where {whole} limit 3")).await;
    assert!(plan.contains("limit 3"), "{plan}");
    let all = rows(&engine, &format!("select count(*) from (select * from {t} limit 2400)")).await;
    assert_eq!(all, "2400");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn only_shards_that_have_the_keys_are_parts_of_a_plan() {
    let (_cluster, engine) = lake().await;
    for (keys, is_of_many) in [("7", false), ("null", false), ("7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20", true)] {
        let query = format!("select id, note from T where id in ({keys}) order by note, id");
        let [shards, file] = ["'/lake/t.shards'", "'/lake/t.parquet'"].map(|table| query.replace('T', table));
        assert_eq!(rows(&engine, &shards).await, rows(&engine, &file).await, "{keys}");
        let plan = rows(&engine, &format!("explain {shards}")).await;
        assert_eq!(plan.contains("SortPreservingMergeExec"), is_of_many, "{keys}: {plan}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn records_come_as_batches_without_a_statement() {
    let (cluster, engine) = lake().await;
    let shards = Shards::open(&cluster.client, &"/lake/t.shards".parse().unwrap()).await.unwrap();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect::<Vec<_>>();
    async fn all(mut batches: ShardBatches) -> String {
        let mut rows = Vec::new();
        while let Some(batch) = batches.next_batch().await.unwrap() {
            assert!(batch.num_rows() > 0 && batch.schema() == batches.schema());
            rows.push(batch);
        }
        assert!(batches.next_batch().await.unwrap().is_none(), "the end stays");
        text(&rows)
    }
    let (condition, key) = (Condition::parse("note *= summer").unwrap(), |key: i64| Literal::Number(key.into()));
    let of = |condition: &Condition, after: Option<i64>, limit, columns: Option<&[String]>| {
        ShardBatches::found(shards.clone(), condition, after.map(key).as_ref(), limit, columns)
    };
    let summer = "from '/lake/t.parquet' where note like '%summer%'";
    let found = all(of(&condition, None, None, None).unwrap()).await;
    assert_eq!(found, rows(&engine, &format!("select * {summer} order by id")).await);
    let some = all(of(&condition, Some(100), Some(20), Some(&names(&["weight", "id"]))).unwrap()).await;
    assert_eq!(some, rows(&engine, &format!("select weight, id {summer} and id > 100 order by id limit 20")).await);
    let everything = Condition::And(Vec::new());
    let ids = all(of(&everything, None, None, Some(&names(&["id"]))).unwrap()).await;
    assert_eq!(ids, rows(&engine, "select id from '/lake/t.parquet' order by id").await);
    let keys = [8, 99_999, -600, 8].map(key);
    let by_key = all(ShardBatches::of_keys(shards.clone(), &keys, Some(&names(&["id"]))).unwrap()).await;
    assert_eq!(by_key, "8\n-600\n8", "in their order, those that are there");

    let unknown = of(&everything, None, None, Some(&names(&["nothing"]))).err().unwrap();
    assert!(unknown.kind() == ErrorKind::Invalid && unknown.message().contains("nothing"), "{unknown}");
    let text = ShardBatches::of_keys(shards.clone(), &[Literal::Text("x".into())], None).err().unwrap();
    assert_eq!(text.kind(), ErrorKind::Invalid);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_dataset_is_an_external_table_that_stays() {
    let (cluster, engine) = lake().await;
    rows(&engine, "create external table t stored as shard location '/lake/t.shards'").await;
    let (later, ask) = (cluster.engine(), "select name from t where id = 7");
    assert_eq!(rows(&later, ask).await, rows(&engine, "select name from '/lake/t.parquet' where id = 7").await);
    assert_eq!(rows(&later, "select count(*) from 's3://river/pool/t.shards'").await, ROWS.to_string());

    let none = error(&engine, "select * from '/lake/none.shards'").await;
    assert!(none.kind() == ErrorKind::NotFound && none.message().contains("forebay shard create"), "{none}");
    let beyond = error(&engine, "select * from '/elsewhere/t.shards'").await;
    assert!(beyond.kind() == ErrorKind::NotFound && beyond.message().contains("/lake"), "{beyond}");
    let declared = error(&engine, "create external table u (a int) stored as shard location '/lake/t.shards'").await;
    assert_eq!(declared.kind(), ErrorKind::Invalid);
    let written = error(&engine, "insert into t select * from t").await;
    assert!(written.kind() == ErrorKind::Invalid && written.message().contains("forebay shard put"), "{written}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rows_that_are_changed_while_they_are_read_meet_the_conditions() {
    let (cluster, engine) = lake().await;
    let shards = Shards::open(&cluster.client, &"/lake/t.shards".parse().unwrap()).await.unwrap();
    let puts = |name: &str| (0..200).map(|id| json!({"put": {"id": id, "name": name}})).collect::<Vec<_>>();
    let (here, gone) = (puts("here"), puts("gone"));
    shards.change(&here).await.unwrap();
    let writing = async {
        for _ in 0..100_000 {
            shards.change(&gone).await.unwrap();
            shards.change(&here).await.unwrap();
        }
    };
    let reading = async {
        for _ in 0..100 {
            for sql in [
                "select distinct name from '/lake/t.shards' where name = 'here'",
                "select distinct name from '/lake/t.shards' where name like 'he%' limit 500",
            ] {
                let names = rows(&engine, sql).await;
                assert!(!names.contains("gone"), "{sql}: {names}");
            }
        }
    };
    tokio::select! {
        () = writing => {}
        () = reading => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_statements_ask_and_read_is_a_part_of_their_trace() {
    let (cluster, engine) = lake().await;
    let spans = Spans::collected().await;
    let asked = [
        ("select count(*) from '/lake/t.shards' where note like '%summer%'", "ask_shard"),
        // The engine runs what is below in tasks of its own.
        ("select name, count(*) from '/lake/t.shards' group by name order by name", "ask_shard"),
        ("select name from '/lake/t.shards' where id in (7, 8, 9)", "get_records"),
    ];
    for (number, (sql, question)) in asked.iter().enumerate() {
        let span = Span::asked(TraceParent::read(&traceparent(number)), "asked");
        let mut query = span.around(engine.execute(sql)).await.unwrap();
        assert!(!query.collect().await.unwrap().is_empty(), "{sql}");
        drop((query, span));
        spans.come(number, &["asked", "query", *question, "answer"]).await;
    }
    // The first that wants all of a shard has it brought.
    spans.come(0, &["asked", "query", "ask_shard", "answer", "bring shard", "storage get"]).await;
    // A door asks what a statement gives before it runs, which is found by threads of their own: they read the file's footer.
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
    cluster.put("planned.parquet", &parquet(&[RecordBatch::try_from_iter([("id", ids)]).unwrap()], 100));
    let computing = Some(Computing::start("query").unwrap());
    let planning = Engine::over_client(cluster.client.clone(), EngineSettings { computing, ..settings() });
    let number = asked.len();
    let span = Span::asked(TraceParent::read(&traceparent(number)), "asked");
    span.around(planning.describe("select * from '/lake/planned.parquet'")).await.unwrap();
    drop(span);
    let all = spans.finish().await;
    let of = |name: &str| all.iter().find(|span| span["traceId"] == trace_id(number) && span["name"] == name);
    let read = of("storage get").unwrap_or_else(|| panic!("what planning read is in no trace: {all:#?}"));
    let (mut above, mut parent) = (Vec::new(), &read["parentSpanId"]);
    while let Some(span) = all.iter().find(|span| span["spanId"] == *parent) {
        above.push(span["name"].as_str().unwrap());
        parent = &span["parentSpanId"];
    }
    assert!(above.ends_with(&["describe", "asked"]), "{above:?}");
}
