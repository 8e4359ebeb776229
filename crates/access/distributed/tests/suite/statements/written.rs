//! `COPY` and `INSERT` on the cluster: what executors have written is as of one process, appears at once and once, and is in the tiers.

use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::csv::WriterBuilder;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::file_options::csv_writer::CsvWriterOptions;
use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::datasource::file_format::csv::CsvSink;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::datasource::physical_plan::{FileGroup, FileOutputMode, FileSinkConfig};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::prelude::SessionConfig;
use forebay_client::{AdminRequest, Client, ClientSettings, Security, Wait};
use forebay_distributed::{Cluster, ClusterSettings};
use forebay_sql::{Distribute, DistributedQuery, Engine, EngineSettings};
use forebay_testbed::{until, until_asked};
use forebay_transport::{Admission, Credential};
use forebay_types::{ErrorKind, Grant, MountOptions, OperationId, Role};
use futures::TryStreamExt;
use tokio::task::JoinHandle;

use crate::bed::{Bed, rows};
use crate::losses::{reading, slow};

/// Rows that take a while to be read and written.
const ROWS: &str = "select l_orderkey, l_linenumber, l_shipmode, l_shipdate, l_comment from lineitem";

/// What tells that all rows are there, and once.
const SUMS: &str = "select count(*), sum(l_orderkey), sum(l_linenumber), min(l_shipmode), max(l_shipmode), min(l_shipdate), \
                    max(l_shipdate) from";

/// The objects below a path.
async fn files(client: &Client, path: &str) -> Vec<String> {
    let listed = client.list_all(&path.parse().unwrap()).await.unwrap();
    listed.into_iter().map(|info| info.version.key.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_executors_copy_is_as_of_one_process() {
    let bed = Bed::start(3).await;
    let (here, cluster) = bed.both_with_tpch(0.05).await;
    let (count, sums) = (rows(&here, "select count(*) from lineitem").await, rows(&here, &format!("{SUMS} lineitem")).await);
    for (to, options, read) in [
        ("parquet/", "", "parquet/*.parquet"),
        ("csv/", "stored as csv", "csv/*.csv"),
        ("json/", "stored as json", "json/*.json"),
        ("one.csv.gz", "", "one.csv.gz"),
        ("table/", "stored as albis options (groups 'l_orderkey,l_linenumber; *')", "table/*.albis"),
        ("one.albis", "", "one.albis"),
        ("arrow/", "stored as arrow", "arrow/*.arrow"),
        ("one.arrow", "", "one.arrow"),
    ] {
        let jobs = bed.control().jobs().await.unwrap().len();
        assert_eq!(rows(&cluster, &format!("copy ({ROWS}) to '/lake/out/{to}' {options}")).await, count, "{to}");
        assert_eq!(bed.control().jobs().await.unwrap().len(), jobs + 1, "{to} is written on the cluster");
        assert_eq!(rows(&here, &format!("{SUMS} '/lake/out/{read}'")).await, sums, "{to}");
        let made = files(&bed.client, &format!("/lake/out/{to}")).await;
        assert_eq!(made.len() > 1, to.ends_with('/'), "a file each task, or the one that is named: {made:?}");
    }
    let parts = "copy (select l_orderkey, l_linenumber, l_shipmode from lineitem) to '/lake/out/parts/' \
                 stored as parquet partitioned by (l_shipmode)";
    assert_eq!(rows(&cluster, parts).await, count);
    let made = files(&bed.client, "/lake/out/parts/").await;
    assert!(made.iter().all(|key| key.starts_with("out/parts/l_shipmode=")), "{made:?}");
    let table = "create external table grows (l_orderkey bigint, l_linenumber int) stored as parquet location '/lake/out/grows/'";
    rows(&cluster, table).await;
    for times in [1, 2] {
        let added = rows(&cluster, "insert into grows select l_orderkey, l_linenumber from lineitem").await;
        assert_eq!(added, count, "time {times}");
    }
    let twice = rows(&here, "select 2 * count(*), 2 * sum(l_orderkey), 2 * sum(l_linenumber) from lineitem").await;
    let grown = "select count(*), sum(l_orderkey), sum(l_linenumber) from '/lake/out/grows/*.parquet'";
    assert_eq!(rows(&here, grown).await, twice);
    assert_eq!(rows(&cluster, "copy (select * from lineitem where l_orderkey < 0) to '/lake/out/none/'").await, [" 0 "]);
    assert!(files(&bed.client, "/lake/out/none/").await.is_empty());
    assert_eq!(bed.test.s3.uploads_open(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_executors_have_written_is_read_from_the_tiers() {
    let bed = Bed::start(3).await;
    let (here, cluster) = (bed.here(), bed.cluster().await);
    bed.tpch(0.05, &[&cluster]).await;
    rows(&cluster, &format!("copy ({ROWS}) to '/lake/out/'")).await;
    bed.test.s3.reset_counters();
    let first = rows(&here, &format!("{SUMS} '/lake/out/*.parquet'")).await;
    assert_eq!(rows(&cluster, &format!("{SUMS} '/lake/out/*.parquet'")).await, first);
    let counters = bed.test.s3.counters();
    assert_eq!((counters.gets, counters.bytes_out), (0, 0), "nobody asks shared storage for what the workers were given");
}

/// Has rows written that take a while, by tasks whose files begin with their first rows.
async fn copying(bed: &Bed, cluster: Engine) -> JoinHandle<Vec<String>> {
    rows(&cluster, "set datafusion.execution.objectstore_writer_buffer_size = 65536").await;
    let copied = tokio::spawn(async move { rows(&cluster, &format!("copy ({ROWS}) to '/lake/out/' stored as csv")).await });
    until("something is drafted", || bed.test.s3.uploads_open() > 0).await;
    assert!(files(&bed.client, "/lake/out/").await.is_empty(), "nobody sees a draft");
    copied
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_executor_that_dies_leaves_no_row_twice_and_no_draft() {
    let mut bed = Bed::with(3, slow("8Mbit"), false).await;
    let (here, cluster) = (bed.here(), bed.cluster().await);
    bed.tpch(0.05, &[&cluster]).await;
    let copied = copying(&bed, cluster).await;
    let (victim, _) = reading(&bed).await;
    drop(bed.executors[victim].take());
    let count = tokio::time::timeout(Duration::from_secs(180), copied).await.unwrap().unwrap();
    until("what the lost one has begun is given up", || bed.test.s3.uploads_open() == 0).await;
    rows(&here, "create view lineitem as select * from '/lake/tpch/lineitem/*.parquet'").await;
    assert_eq!(count, rows(&here, "select count(*) from lineitem").await);
    assert_eq!(rows(&here, &format!("{SUMS} '/lake/out/*.csv'")).await, rows(&here, &format!("{SUMS} lineitem")).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_statement_that_fails_or_is_given_up_leaves_nothing() {
    let bed = Bed::with(2, slow("16Mbit"), false).await;
    let (here, cluster) = (bed.here(), bed.cluster().await);
    bed.tpch(0.05, &[&cluster]).await;
    let last = rows(&here, "select max(l_orderkey) from '/lake/tpch/lineitem/*.parquet'").await.remove(0);
    let fails = format!("copy (select l_comment, 1 / (l_orderkey - {}) as x from lineitem) to '/lake/out/'", last.trim());
    let failed = match cluster.execute(&fails).await {
        Err(error) => error,
        Ok(mut query) => query.collect().await.unwrap_err(),
    };
    let said = failed.message().to_lowercase().replace(' ', "");
    assert!(said.contains("dividebyzero"), "{failed}");
    assert_eq!(bed.control().jobs().await.unwrap().len(), 1, "it failed on the cluster");
    until("its drafts are given up", || bed.test.s3.uploads_open() == 0).await;
    assert!(files(&bed.client, "/lake/out/").await.is_empty());
    let running = copying(&bed, cluster).await;
    running.abort();
    until("drafts are given up with the statement", || bed.test.s3.uploads_open() == 0).await;
    until_asked("its job is over", async || bed.control().jobs().await.unwrap().iter().all(|job| job.state != "running")).await;
    until("no task has begun another one", || bed.test.s3.uploads_open() == 0).await;
    assert!(files(&bed.client, "/lake/out/").await.is_empty());
}

/// A bed that admits the credentials which it is told of.
pub(super) async fn guarded() -> (Bed, Arc<Admission>) {
    let (owner, member) =
        (Credential::owner("a secret of this bed").unwrap(), Credential::member("one of its processes").unwrap());
    let admits = Arc::new(Admission::of([&owner, &member]));
    let security = Security { shows: Some(owner), admits: Arc::clone(&admits), tls: None, ..Security::default() };
    (Bed::secured(2, MountOptions::default(), true, security).await, admits)
}

/// An engine of somebody who shows a token of a role, and the way to the scheduler.
pub(super) async fn of_role(bed: &Bed, admits: &Admission, role: Role) -> (Engine, Arc<Cluster>) {
    let name = format!("written-{role:?}").to_lowercase();
    let (token, grant) = (Credential::generate(&name, 1).unwrap(), Grant::everywhere(role));
    bed.client.control(AdminRequest::TokenAdd { name, grant, keys: token.keys() }).await.unwrap();
    until("it is known", || admits.caller(&token).is_ok()).await;
    let security = Security::holder(token);
    let settings = ClientSettings { security: security.clone(), ..bed.test.node.client_settings() };
    let client = Client::connect(settings).await.unwrap();
    let scheduler = bed.scheduler_at().to_string();
    let settings = ClusterSettings { scheduler, finds: None, wait: Wait::default(), security, priority: 0, partitions: Some(4) };
    let cluster = Arc::new(Cluster::connect(settings).await.unwrap());
    (Engine::over_cluster(client, EngineSettings::default(), Arc::clone(&cluster) as _), cluster)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_may_only_read_has_nothing_written_for_him() {
    let (bed, admits) = guarded().await;
    bed.put("a.csv", b"x\n1\n2\n3\n");
    let (reader, way) = of_role(&bed, &admits, Role::Read).await;
    let (writer, _) = of_role(&bed, &admits, Role::Write).await;
    let copy = "copy (select x from '/lake/a.csv') to '/lake/out/'";
    assert_eq!(reader.execute(copy).await.unwrap_err().kind(), ErrorKind::Denied);
    assert!(bed.control().jobs().await.unwrap().is_empty(), "it is refused before anything runs");
    assert_eq!(rows(&writer, copy).await, [" 3 "]);
    // A plan that he has made by hand, which an executor would write with its own right.
    let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Int64, true)]));
    let target = ListingTableUrl::parse("forebay:///lake/forged/x.csv").unwrap();
    let config = FileSinkConfig {
        original_url: String::new(),
        object_store_url: target.object_store(),
        file_group: FileGroup::new(Vec::new()),
        table_paths: vec![target],
        output_schema: Arc::clone(&schema),
        table_partition_cols: Vec::new(),
        insert_op: InsertOp::Append,
        keep_partition_by_columns: false,
        file_extension: "csv".to_string(),
        file_output_mode: FileOutputMode::Automatic,
    };
    let options = CsvWriterOptions::new(WriterBuilder::new(), CompressionTypeVariant::UNCOMPRESSED);
    let sink = Arc::new(CsvSink::new(config, options));
    let query = DistributedQuery {
        operation: OperationId(79),
        sql: "select 1".to_string(),
        plan: Arc::new(DataSinkExec::new(Arc::new(EmptyExec::new(schema)), sink, None)),
        config: way.prepare(SessionConfig::new()).build().config().clone(),
        pins: Vec::new(),
        who: "nobody".into(),
    };
    let run = way.run(query).await.unwrap().unwrap();
    let error = run.stream.try_collect::<Vec<_>>().await.unwrap_err().to_string();
    assert!(error.contains("it writes drafts for who may write there"), "{error}");
    assert!(files(&bed.client, "/lake/forged/").await.is_empty());
    assert_eq!(bed.test.s3.uploads_open(), 0);
}
