//! The engine over a cluster in this process: the same answers as without it, fewer bytes fetched, and overwrites noticed.

use std::time::Duration;

use forebay_client::{AdminRequest, Client};
use forebay_sql::{Engine, EngineSettings, Reach};
use forebay_testbed::{TestCluster, add_mount};
use forebay_types::{ErrorKind, HotForm, MountOptions, Validate};
use forebay_worker::Worker;

use crate::support::{Lake, error, rows, settings};
use crate::tpch::{answers, tables, views};

const BUCKET: &str = "river";

/// A coordinator, a worker and a client in this process, with `/lake` mounted on a real S3 server.
pub struct Cluster {
    pub client: Client,
    test: TestCluster,
}

impl Cluster {
    pub async fn start() -> Self {
        let mut test = TestCluster::empty(|_| {}).await;
        test.s3.create_bucket(BUCKET).unwrap();
        test.add_worker().await;
        let client = test.node.client().await.unwrap();
        let options = MountOptions { validate: Validate::Always, ..test.s3.mount_options() };
        add_mount(&client, "lake", &format!("s3://{BUCKET}/pool"), options).await;
        Self { client, test }
    }

    /// The same, with popular columns decoded.
    pub async fn hot() -> Self {
        let cluster = Self::start().await;
        cluster.set_hot_form(HotForm::Table).await;
        cluster
    }

    pub fn engine(&self) -> Engine {
        Engine::over_client(self.client.clone(), settings())
    }

    /// A client of another host, as far as it can tell: it reads no worker's tier in place.
    pub async fn far_client(&self) -> Client {
        self.test.client(|settings| settings.in_place = false).await
    }

    pub fn worker(&self) -> &Worker {
        &self.test.node.workers[0]
    }

    pub fn kill_worker(&mut self) {
        drop(self.test.take_worker(0));
    }

    pub async fn set_hot_form(&self, hot_form: HotForm) {
        let name = "lake".parse().unwrap();
        let options = MountOptions { hot_form, ..self.client.mount(&name).await.unwrap().options.clone() };
        self.client.control(AdminRequest::MountSet { name, options }).await.unwrap();
    }

    pub fn put(&self, key: &str, bytes: &[u8]) {
        self.test.s3.put(BUCKET, &format!("pool/{key}"), bytes).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tpch_answers_the_same_and_fetches_no_more() {
    let (cluster, lake) = (Cluster::start().await, Lake::new());
    for (name, bytes) in tables(0.01) {
        cluster.put(&format!("tpch/{name}.parquet"), &bytes);
        lake.put(&format!("tpch/{name}.parquet"), bytes).await;
    }
    views(&lake.engine).await;
    let without = answers(&lake.engine).await;
    let asked = lake.store.bytes();

    cluster.test.s3.reset_counters();
    let engine = cluster.engine();
    views(&engine).await;
    let cold = answers(&engine).await;
    let fetched = cluster.test.s3.counters().bytes_out;
    let warm = answers(&engine).await;
    assert_eq!(cold, without, "cold");
    assert_eq!(warm, without, "warm");
    assert!(fetched as f64 <= asked as f64 * 1.1, "fetched {fetched} of {asked} that the engine asks for");
    let again = cluster.test.s3.counters().bytes_out - fetched;
    assert!(again * 50 < fetched, "a warm run fetched {again} bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_spelling_of_a_mounts_place_goes_through_the_mount() {
    let cluster = Cluster::start().await;
    // Without credentials of its own this process can't reach the bucket but through the mount.
    let engine = Engine::over_client(cluster.client.clone(), EngineSettings { reach: Reach::of_mounts(), ..settings() });
    for (at, place) in ["s3a://river/pool", "s3://RIVER/pool", "S3A://river/pool", "s3://river/pool"].iter().enumerate() {
        assert_eq!(rows(&engine, &format!("copy (select {at} as a) to '{place}/{at}.csv'")).await, "1");
        assert_eq!(rows(&engine, &format!("select a from '/lake/{at}.csv'")).await, at.to_string());
    }
    let name = "lake".parse().unwrap();
    let options = MountOptions { read_only: true, ..cluster.client.mount(&name).await.unwrap().options.clone() };
    cluster.client.control(AdminRequest::MountSet { name, options }).await.unwrap();
    cluster.client.refresh_view().await.unwrap();
    let places =
        ["s3a://river/pool", "s3://River/pool", "s3://river:443/pool", "s3://x@river/pool", "s3://r%69ver/pool", "/lake"];
    for place in places.into_iter().chain(["s3://river//pool", "s3://river/./pool", "s3://river/x/../pool", "s3://river/pool2"]) {
        let error = error(&engine, &format!("copy (select 1 as a) to '{place}/new.csv'")).await;
        assert!(matches!(error.kind(), ErrorKind::Denied | ErrorKind::Invalid), "{place}: {} {error}", error.kind());
    }
    assert_eq!(rows(&engine, "select count(*) from '/lake/*.csv'").await, "4");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_mounts_of_one_place_the_name_says_which_is_meant_and_a_url_the_read_only_one() {
    let cluster = Cluster::start().await;
    let lake = cluster.client.mount(&"lake".parse().unwrap()).await.unwrap();
    let options = MountOptions { read_only: true, ..lake.options.clone() };
    // One before and one behind the mount that may be written, by name.
    for name in ["kept", "zone"] {
        add_mount(&cluster.client, name, &format!("s3://{BUCKET}/pool/"), options.clone()).await;
    }
    add_mount(&cluster.client, "scratch", &format!("s3://{BUCKET}/pool/scratch"), lake.options.clone()).await;
    cluster.client.refresh_view().await.unwrap();
    let engine = Engine::over_client(cluster.client.clone(), EngineSettings { reach: Reach::of_mounts(), ..settings() });
    let write = |place: &str| format!("copy (select 1 as a) to '{place}'");
    assert_eq!(rows(&engine, &write("/lake/x.csv")).await, "1");
    for place in ["/kept/y.csv", "/zone/y.csv", "/kept/scratch/y.csv", "s3://river/pool/y.csv", "s3a://RIVER/pool/y.csv"] {
        let error = error(&engine, &write(place)).await;
        assert!(error.kind() == ErrorKind::Denied && error.message().contains("read-only"), "{place}: {} {error}", error.kind());
    }
    // The nearest mount is the one that was made for that part.
    assert_eq!(rows(&engine, &write("s3://river/pool/scratch/z.csv")).await, "1");
    for path in ["/kept/x.csv", "/zone/x.csv", "/kept/scratch/z.csv", "s3://river/pool/x.csv", "/lake/scratch/z.csv"] {
        assert_eq!(rows(&engine, &format!("select a from '{path}'")).await, "1", "{path}");
    }
    assert_eq!(error(&engine, "select a from '/lake/y.csv'").await.kind(), ErrorKind::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tables_outlive_the_engine_and_writes_are_read_back() {
    let cluster = Cluster::start().await;
    let engine = cluster.engine();
    let select = "select value as id, value % 3 as part from generate_series(1, 9) as t(value)";
    for name in ["a b%.parquet", "ü.csv.gz", "x.json.zst", "y.arrow"] {
        rows(&engine, &format!("copy ({select}) to '/lake/out/{name}'")).await;
        assert_eq!(rows(&engine, &format!("select sum(id) from '/lake/out/{name}'")).await, "45", "{name}");
        let url = format!("select count(*) from 's3://{BUCKET}/pool/out/{name}'");
        assert_eq!(rows(&engine, &url).await, "9", "a URL that a mount covers goes through the mount");
    }
    rows(&engine, &format!("copy ({select}) to '/lake/parts' partitioned by (part)")).await;
    rows(&engine, "create external table parts stored as parquet location '/lake/parts/'").await;
    drop(engine);

    let other = cluster.engine();
    assert_eq!(rows(&other, "select part, sum(id) from parts group by part order by part").await, "0 18\n1 12\n2 15");
    assert!(rows(&other, "show tables").await.contains("parts"));
    rows(&other, "drop table parts").await;
    let gone = crate::support::error(&cluster.engine(), "select * from parts").await;
    assert_eq!(gone.kind(), ErrorKind::Invalid, "{gone}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_overwrite_between_plan_and_read_plans_again() {
    let cluster = Cluster::start().await;
    let lake = Lake::new();
    let engine = cluster.engine();
    let version = async |from: i64| {
        let sql = format!(
            "copy (select value as id, md5(cast(value as varchar)) as hash from generate_series({from}, {}) as t(value)) to '/lake/v.parquet'",
            from + 49_999
        );
        lake.rows(&sql).await;
        lake.store_bytes("v.parquet").await
    };
    lake.rows("set datafusion.execution.parquet.max_row_group_size = 5000").await;
    let (old, new) = (version(1).await, version(1_000_001).await);
    cluster.put("v.parquet", &old);
    rows(&engine, "explain select * from '/lake/v.parquet'").await;
    // What is asked for while the object is the old one is answered when it is the new one.
    cluster.test.s3.set_latency(Duration::from_secs(1));
    let mut query = engine.execute("select max(id) from '/lake/v.parquet' where length(hash) > 1").await.unwrap();
    cluster.put("v.parquet", &new);
    cluster.test.s3.set_latency(Duration::ZERO);
    let batches = query.collect().await.unwrap();
    assert_eq!(crate::support::text(&batches), "1050000", "the new version, and only it");
    assert_eq!(rows(&engine, "select min(id) from '/lake/v.parquet'").await, "1000001");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_a_cold_table_one_column_of_twenty_is_fetched_and_no_more() {
    const ROWS: u64 = 4 * 65_536;
    let (cluster, lake) = (Cluster::start().await, Lake::new());
    let columns = (0..20).map(|at| format!("value * {} as c{at}", at + 1)).collect::<Vec<_>>().join(", ");
    lake.rows(&format!("copy (select {columns} from range(0, {ROWS}) as t(value)) to '/lake/wide.albis'")).await;
    let bytes = lake.store_bytes("wide.albis").await;
    cluster.put("wide.albis", &bytes);
    let engine = cluster.engine();
    cluster.test.s3.reset_counters();
    let mut query = engine.execute("select sum(c6) from '/lake/wide.albis'").await.unwrap();
    let sum = crate::support::text(&query.collect().await.unwrap());
    assert_eq!(sum, (ROWS * (ROWS - 1) / 2 * 7).to_string());
    assert_eq!(query.progress().bytes_planned, ROWS * 8, "one column of 8 bytes");
    // What was begun and is of no use any more would come late.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let fetched = cluster.test.s3.counters().bytes_out;
    // The last 64 KiB have the metadata; what tells what is there has some as well.
    let most = ROWS * 8 * 105 / 100 + (80 << 10);
    assert!(fetched >= ROWS * 8 && fetched <= most, "fetched {fetched} of {}, at most {most}", bytes.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_dropped_query_fetches_no_more() {
    let cluster = Cluster::start().await;
    let lake = Lake::new();
    lake.rows("set datafusion.execution.parquet.max_row_group_size = 20000").await;
    let sql = "copy (select value as id, md5(cast(value as varchar)) as hash from generate_series(1, 800000) as t(value)) \
               to '/lake/big.parquet'";
    lake.rows(sql).await;
    let bytes = lake.store_bytes("big.parquet").await;
    cluster.put("big.parquet", &bytes);
    let engine = cluster.engine();
    rows(&engine, "explain select * from '/lake/big.parquet'").await;

    cluster.test.s3.set_bandwidth(Some(2 << 20));
    let query = engine.execute("select max(hash), sum(id) from '/lake/big.parquet'").await.unwrap();
    tokio::time::sleep(Duration::from_millis(700)).await;
    let begun = cluster.test.s3.counters().bytes_out;
    assert!(begun > 100_000, "the plan is fetched before the first row is asked for: {begun}");
    drop(query);
    // A request that is under way may come to its end; the rest of the plan must not begin.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let after = cluster.test.s3.counters().bytes_out;
    tokio::time::sleep(Duration::from_millis(1000)).await;
    let later = cluster.test.s3.counters().bytes_out;
    assert!(later - after < 200_000, "{begun} bytes, {after} after the drop, {later} a second later, of {}", bytes.len());
    assert!((later as usize) < bytes.len() / 2, "{later} of {}", bytes.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_wrong_is_told() {
    let cluster = Cluster::start().await;
    cluster.put("cut.parquet", b"PAR1 and not much more");
    cluster.put("empty.csv", b"");
    let engine = cluster.engine();
    for (path, kind) in [
        ("/lake/cut.parquet", ErrorKind::Corrupt),
        ("/lake/empty.csv", ErrorKind::Invalid),
        ("/lake/none.csv", ErrorKind::NotFound),
        ("/pond/x.csv", ErrorKind::NotFound),
    ] {
        let error = crate::support::error(&engine, &format!("select * from '{path}'")).await;
        assert_eq!(error.kind(), kind, "{path}: {error}");
        assert!(error.message().contains(path), "{path}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_mount_that_another_client_has_just_added_is_there() {
    let cluster = Cluster::start().await;
    let engine = cluster.engine();
    let other = cluster.test.node.client().await.unwrap();
    add_mount(&other, "late", &format!("s3://{BUCKET}/late"), cluster.test.s3.mount_options()).await;
    cluster.test.s3.put(BUCKET, "late/x.csv", b"n\n7\n").unwrap();
    assert_eq!(engine.describe("select n from '/late/x.csv'").await.unwrap().schema.field(0).name(), "n");
    assert_eq!(rows(&engine, "select n from '/late/x.csv'").await, "7");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_load_of_columns_and_rows_leaves_their_query_nothing_to_fetch() {
    let (cluster, lake) = (Cluster::start().await, Lake::new());
    lake.rows("set datafusion.execution.parquet.max_row_group_size = 20000").await;
    let table = "select value as id, value % 7 as day, md5(cast(value as varchar)) as hash \
                 from generate_series(1, 200000) as t(value)";
    for name in ["t/a.parquet", "t/b.parquet"] {
        lake.rows(&format!("copy ({table}) to '/lake/{name}'")).await;
        cluster.put(name, &lake.store_bytes(name).await);
    }
    let engine = cluster.engine();
    let reads = engine.reads("select id, day from '/lake/t/' where id > 150000").await.unwrap();
    assert_eq!(reads.len(), 2);
    assert!(reads.iter().all(|(_, ranges)| ranges.windows(2).all(|pair| pair[0].end < pair[1].start)), "{reads:?}");
    let bytes: u64 = reads.iter().flat_map(|(_, ranges)| ranges).map(|range| range.end - range.start).sum();
    let loaded = cluster.client.load_ranges(reads, |_| ()).await.unwrap();
    assert_eq!((loaded.objects, loaded.bytes), (2, bytes));
    cluster.test.s3.reset_counters();
    assert_eq!(rows(&engine, "select sum(id), max(day) from '/lake/t/' where id > 150000").await, "17500050000 6");
    let fetched = cluster.test.s3.counters().bytes_out;
    assert!(fetched < 20_000, "fetched {fetched} after {bytes} were loaded");
    rows(&engine, "select max(hash) from '/lake/t/' where id > 150000").await;
    let fetched = cluster.test.s3.counters().bytes_out;
    assert!(fetched > 500_000, "the other column was loaded, too: fetched {fetched}");
    rows(&engine, "set datafusion.execution.parquet.pushdown_filters = true").await;
    let pushed = "select max(length(hash)), max(day) from '/lake/t/' where id > 100000";
    assert_eq!(loaded_and_run(&cluster, &engine, pushed).await, "32 6", "the condition's columns are not all");
    assert_eq!(engine.reads("copy (select 1) to '/lake/x.csv'").await.unwrap_err().kind(), ErrorKind::Invalid);
}

/// Loads what a query would read, and has it find all of that; what it answers.
async fn loaded_and_run(cluster: &Cluster, engine: &Engine, sql: &str) -> String {
    let reads = engine.reads(sql).await.unwrap();
    cluster.client.load_ranges(reads, |_| ()).await.unwrap();
    cluster.test.s3.reset_counters();
    let answer = rows(engine, sql).await;
    let fetched = cluster.test.s3.counters().bytes_out;
    assert!(fetched < 20_000, "{sql}: fetched {fetched} after its bytes were loaded");
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_load_of_rows_with_a_rare_key_brings_their_other_columns_as_well() {
    let (cluster, lake) = (Cluster::start().await, Lake::new());
    // In each of four row groups 10,000 keys from among a million.
    let keys = "select (value * 7919) % 1000003 as key, value as id, md5(cast(value as varchar)) as hash \
                from range(0, 40000) as t(value)";
    for (name, options) in [("plain", ""), ("blooms", ", bloom_filters 'key'")] {
        let name = format!("{name}.albis");
        lake.rows(&format!("copy ({keys}) to '/lake/{name}' options (row_group_rows '10000'{options})")).await;
        cluster.put(&name, &lake.store_bytes(&name).await);
        let engine = cluster.engine();
        // The rows 1 and 35,000.
        let found = format!("select sum(id), max(length(hash)) from '/lake/{name}' where key in (7919, 164169)");
        assert_eq!(loaded_and_run(&cluster, &engine, &found).await, "35001 32");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_of_what_is_read_can_not_be_ended_by_what_stands_in_it() {
    let lake = Lake::new();
    lake.rows("copy (select 1 as a) to '/lake/x.csv'").await;
    let ask = async |condition: &str| lake.engine.reads_of("/lake/x.csv", &[], Some(condition)).await;
    for condition in ["a > 0", "a > 0 -- all", "(a) in (select 1)"] {
        ask(condition).await.unwrap();
    }
    for condition in ["true) UNION ALL SELECT * FROM '/lake/y.csv' WHERE (true", "a > 0; select 1", "a > 0 limit 1", ""] {
        let error = ask(condition).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{condition}: {error}");
        assert!(error.message().contains(condition), "{error}");
    }
}
