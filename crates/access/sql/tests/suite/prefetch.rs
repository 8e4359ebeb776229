//! What a plan tells of its reads is what its readers then ask for, no less and little more.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use datafusion::arrow::array::{Int64Array, RecordBatch, StringArray};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::ExecutionPlan;
use forebay_sql::inputs;

use crate::support::{Lake, parquet};

/// Rows with a clustered `id`, a scattered `mix`, a constant and a wide text.
fn file(from: i64, rows: i64) -> RecordBatch {
    let ids: Vec<i64> = (from..from + rows).collect();
    let mixed: Vec<i64> = ids.iter().map(|id| (id * 7919) % 1009).collect();
    let text: Vec<String> = ids.iter().map(|id| format!("{:x}", id.wrapping_mul(0x9E37_79B9_7F4A_7C15u64 as i64))).collect();
    RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from(ids.clone())) as _),
        ("mix", Arc::new(Int64Array::from(mixed)) as _),
        ("same", Arc::new(Int64Array::from(vec![7; ids.len()])) as _),
        ("text", Arc::new(StringArray::from(text)) as _),
    ])
    .unwrap()
}

async fn lake() -> Lake {
    let lake = Lake::new();
    for at in 0..3 {
        lake.put(&format!("t/{at}.parquet"), parquet(&[file(at * 40_000, 40_000)], 10_000)).await;
    }
    lake.put("small.parquet", parquet(&[file(100_000, 50)], 10_000)).await;
    lake
}

/// What a query's plan has told and what its reader asked for, in bytes, footers known before.
async fn planned_and_read(lake: &Lake, sql: &str) -> (u64, u64) {
    lake.rows(sql).await;
    lake.store.clear();
    let mut query = lake.engine.execute(sql).await.unwrap();
    query.collect().await.unwrap();
    (query.progress().bytes_planned, lake.store.bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_tells_exactly_what_the_reader_asks_for() {
    let lake = lake().await;
    for sql in [
        "select sum(id), max(text) from '/lake/t/'",
        "select sum(mix) from '/lake/t/*.parquet'",
        "select sum(mix), min(same) from '/lake/t/' where same = 7",
        // Row groups and pages that a predicate leaves over.
        "select sum(mix) from '/lake/t/' where id between 15000 and 52000",
        "select max(text) from '/lake/t/' where id = 31234",
        "select sum(mix) from '/lake/t/' where id in (5, 70000, 70001)",
        "select count(*) from '/lake/t/' where mix > 1000",
        "select mix, count(*) from '/lake/t/' group by mix order by count(*) limit 3",
    ] {
        let (planned, read) = planned_and_read(&lake, sql).await;
        assert_eq!(planned, read, "{sql}");
        assert!(read > 0, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_tables_the_plan_tells_exactly_what_the_reader_asks_for() {
    let lake = lake().await;
    for (name, groups) in [("columns", ""), ("rows", "groups 'id, mix; *', ")] {
        for at in 0..3 {
            let copy = format!("copy (select * from '/lake/t/{at}.parquet' order by id) to '/lake/{name}/{at}.albis'");
            lake.rows(&format!("{copy} options ({groups}row_group_rows '10000')")).await;
        }
        let (all, _) =
            planned_and_read(&lake, &format!("select sum(id), sum(mix), sum(same), max(text) from '/lake/{name}/'")).await;
        for (sql, share) in [
            ("select sum(id), max(text) from T", 1.0),
            ("select sum(mix) from T", 0.5),
            // Row groups that a predicate leaves over.
            ("select sum(mix) from T where id between 15000 and 52000", 0.25),
            ("select max(text) from T where id = 31234", 0.1),
            ("select sum(mix) from T where id in (5, 70000, 70001)", 0.15),
            ("select count(*) from T where mix > 1000", 0.5),
            ("select mix, count(*) from T group by mix order by count(*) limit 3", 0.5),
        ] {
            let sql = sql.replace('T', &format!("'/lake/{name}/'"));
            let (planned, read) = planned_and_read(&lake, &sql).await;
            assert_eq!(planned, read, "{sql}");
            assert!(read > 0 && read as f64 <= share * all as f64, "{sql}: {read} of {all}");
        }
        let (planned, read) = planned_and_read(&lake, &format!("select max(text) from '/lake/{name}/' where id < 0")).await;
        assert_eq!((planned, read), (0, 0), "no row group has such a row");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_key_is_looked_for_only_what_tells_is_fetched_ahead() {
    let lake = Lake::new();
    let keys = "select (value * 7919) % 1000003 as key, value as id, md5(cast(value as varchar)) as hash";
    let copy = format!("copy ({keys} from range(0, 40000) as t(value)) to '/lake/keys.albis' options (row_group_rows '10000')");
    lake.rows(&copy).await;
    // Anywhere in four row groups of 10,000 rows, each of which has keys from among a million.
    let found = "select id, hash from '/lake/keys.albis' where key in (7919, 15838)";
    assert_eq!(lake.rows(&format!("{found} order by id")).await.lines().count(), 2);
    let (planned, read) = planned_and_read(&lake, found).await;
    assert_eq!(planned, 40_000 * 8, "the keys");
    assert!(read > planned + 10_000 * 32 && read < planned + 2 * 10_000 * 64, "and the row groups of the two rows: {read}");
    let (planned, read) = planned_and_read(&lake, "select max(hash) from '/lake/keys.albis' where key = 7920").await;
    assert_eq!((planned, read), (40_000 * 8, 40_000 * 8), "there is no such row");
    let many = "select max(hash) from '/lake/keys.albis' where key < 500000";
    let (planned, read) = planned_and_read(&lake, many).await;
    assert_eq!(planned, read, "every row group has some");
}

#[tokio::test(flavor = "multi_thread")]
async fn scans_wait_for_a_join_that_may_spare_them() {
    let lake = lake().await;
    // The small side's keys are of one row group of twelve; without waiting all of them would be fetched.
    let join = "select max(t.text) from '/lake/t/' t join '/lake/small.parquet' s on t.id = s.id where s.mix >= 0";
    let (planned, read) = planned_and_read(&lake, join).await;
    let (all, _) = planned_and_read(&lake, "select max(text), sum(id) from '/lake/t/'").await;
    assert!(read * 4 < all, "the join reads {read} of {all}");
    assert!(planned as f64 <= read as f64 * 1.1, "planned {planned}, read {read}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_early_is_not_fetched_ahead() {
    let lake = lake().await;
    let (planned, read) = planned_and_read(&lake, "select * from '/lake/t/' limit 5").await;
    assert!(planned == 0 && read > 0, "planned {planned}, read {read}");
    let top = "select id, text from '/lake/t/' order by id desc limit 5";
    let (planned, read) = planned_and_read(&lake, top).await;
    assert!(planned as f64 <= read as f64 * 1.1, "planned {planned}, read {read}");
}

#[tokio::test(flavor = "multi_thread")]
async fn text_files_are_told_whole() {
    let lake = Lake::new();
    lake.rows("copy (select value, value * 2 as two from generate_series(1, 50000) as t(value)) to '/lake/x.csv'").await;
    lake.rows("copy (select value from generate_series(1, 50000) as t(value)) to '/lake/x.ndjson.gz'").await;
    for sql in ["select sum(two) from '/lake/x.csv'", "select sum(value) from '/lake/x.ndjson.gz'"] {
        let (planned, read) = planned_and_read(&lake, sql).await;
        assert!(planned > 0 && planned <= read, "{sql}: planned {planned}, read {read}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn decimals_that_are_wider_in_a_file_than_its_table_says_are_looked_at_as_the_file_has_them() {
    let lake = Lake::new();
    let wide = "select value as id, arrow_cast(value, 'Decimal256(50, 4)') as d from generate_series(1, 3000) as t(value)";
    lake.rows(&format!("copy ({wide}) to '/lake/w/a.parquet'")).await;
    lake.rows("create external table w (id bigint, d decimal(20, 4)) stored as parquet location '/lake/w/'").await;
    assert_eq!(lake.rows("select d from w order by d limit 2").await, "1.0000\n2.0000");
    assert_eq!(lake.rows("select count(*), max(d) from w where d > 2998").await, "2 3000.0000");
}

#[tokio::test(flavor = "multi_thread")]
async fn footers_of_a_stage_are_read_sixteen_at_once_and_each_once() {
    let lake = Lake::new();
    let whole = parquet(&[file(0, 40)], 10);
    let name = |at: usize| format!("t/{at:02}.parquet");
    let mut files = Vec::new();
    for at in 0..40 {
        let bytes = if at == 7 { bytes::Bytes::from(vec![7; 400]) } else { whole.clone() };
        files.push(PartitionedFile::new(name(at), bytes.len() as u64));
        lake.put(&name(at), bytes).await;
    }
    // The first file is read by both partitions: its first row group, which begins behind the magic, and the others.
    files[0] = PartitionedFile::new(name(0), whole.len() as u64).with_range(0, 5);
    files.push(PartitionedFile::new(name(0), whole.len() as u64).with_range(5, whole.len() as i64));
    let second = files.split_off(20);

    let runtime = Arc::new(RuntimeEnv::default());
    let url = ObjectStoreUrl::parse("forebay://lake").unwrap();
    runtime.register_object_store(url.as_ref(), Arc::clone(&lake.store) as _);
    let source = Arc::new(ParquetSource::new(file(0, 1).schema()));
    let groups = vec![FileGroup::new(files), FileGroup::new(second)];
    let plan = DataSourceExec::from_data_source(FileScanConfigBuilder::new(url, source).with_file_groups(groups).build());
    let plan: Arc<dyn ExecutionPlan> = plan;

    lake.store.clear();
    *lake.store.delay.lock().unwrap() = Duration::from_millis(5);
    let found = inputs(&plan, &runtime).await;
    let names = |files: &forebay_sql::Ranges| files.iter().map(|(meta, _)| meta.location.to_string()).collect::<Vec<_>>();
    let first: Vec<String> = (0..20).filter(|at| *at != 7).map(name).collect();
    let second: Vec<String> = (20..40).chain([0]).map(name).collect();
    assert_eq!(found.iter().map(names).collect::<Vec<_>>(), [first, second], "in order, without the one that is damaged");
    assert_eq!(lake.store.most_at_once.load(Ordering::SeqCst), 16);
    let reads = |at: usize| lake.store.reads.lock().unwrap().iter().filter(|(path, _)| *path == name(at)).count();
    assert_eq!((reads(0), reads(39)), (reads(1), reads(1)));
}
