//! Table files (`.albis`) are scanned on executors.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use forebay_distributed::Cluster;
use forebay_sql::{Conversion, Distribute, DistributedQuery, DistributedRun, Engine, EngineSettings, table_scan};
use forebay_types::{OperationId, Result};
use futures::TryStreamExt;
use parking_lot::Mutex;

use crate::bed::{Bed, rows};

/// The same rows as Parquet and as tables: columns, rows, and both.
async fn tables(bed: &Bed) {
    let here = bed.here();
    let all = "select value as id, value % 7 as k, concat('word-', value % 11) as word, \
               case when value % 5 = 0 then null else value * 0.25 end as x from generate_series(0, 59999) as t(value)";
    rows(&here, &format!("copy ({all}) to '/lake/t.parquet'")).await;
    for (name, groups) in [("columns", ""), ("rows", "groups '*', "), ("mixed", "groups 'x, id; *', ")] {
        rows(&here, &format!("copy ({all}) to '/lake/{name}.albis' options ({groups}row_group_rows '2000')")).await;
    }
    for year in 0..3 {
        let part = format!("select * from '/lake/mixed.albis' where id % 3 = {year}");
        rows(&here, &format!("copy ({part}) to '/lake/p/year={year}/a.albis' options (row_group_rows '2000')")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tables_are_scanned_on_executors_as_in_one_process() {
    let bed = Bed::start(3).await;
    tables(&bed).await;
    let (here, cluster) = (bed.here(), bed.cluster().await);
    // Small as they are, files are cut as large ones.
    rows(&cluster, "set datafusion.optimizer.repartition_file_min_size = 0").await;
    for table in ["columns", "rows", "mixed"] {
        for sql in [
            "select count(*), count(x), sum(id), min(word), max(word), sum(x) from FILE",
            "select k, count(*), sum(x) from FILE where id between 10000 and 30000 group by k",
            "select id, word, x from FILE where x = 25.25 or id in (7, 59999)",
            "select word, count(*) from FILE where x is null and word like '%1' group by word",
            "select a.k, count(*) from FILE a join '/lake/t.parquet' b on a.id = b.id where b.word = 'word-3' group by a.k",
            "select b.id from '/lake/t.parquet' b where b.id < 700 and b.id not in (select id from FILE where k < 6)",
            "select id, x * 2 as y from FILE order by x desc nulls last, id limit 5",
        ] {
            let sql = sql.replace("FILE", &format!("'/lake/{table}.albis'"));
            let jobs = bed.control().jobs().await.unwrap().len();
            assert_eq!(rows(&cluster, &sql).await, rows(&here, &sql).await, "{sql}");
            assert_eq!(bed.control().jobs().await.unwrap().len(), jobs + 1, "on the cluster: {sql}");
        }
    }
    let by_year = "select year, count(*), sum(id), min(word) from '/lake/p/' where id > 100 group by year";
    assert_eq!(rows(&cluster, by_year).await, rows(&here, by_year).await);
    let one_year = "select year, k, count(*) from '/lake/p/' where year = 2 and k > 2 group by year, k";
    assert_eq!(rows(&cluster, one_year).await, rows(&here, one_year).await);
    for table in ["columns", "rows"] {
        let taken =
            format!("select row, k, word from '/lake/{table}.albis#row' where row in (3, 2500, 59999) or row % 20000 = 1");
        assert_eq!(rows(&cluster, &taken).await, rows(&here, &taken).await, "{taken}");
        let numbers = format!("select count(*), sum(row), min(row), max(row) from '/lake/{table}.albis#row' where k < 7");
        assert_eq!(rows(&cluster, &numbers).await, [" 60000 1799970000 0 59999 "], "{numbers}");
    }
    let jobs = bed.control().jobs().await.unwrap();
    assert!(jobs.iter().all(|job| job.state == "done" && job.tasks == job.tasks_done), "{jobs:?}");
    assert!(jobs[0].tasks_with_input > 1 && jobs[0].bytes > 0, "a table is cut into tasks: {:?}", jobs[0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_task_is_brought_the_columns_that_it_reads_and_no_others() {
    const ROWS: u64 = 4 * 65_536;
    let bed = Bed::start(2).await;
    let columns = (0..20).map(|at| format!("value * {} as c{at}", at + 1)).collect::<Vec<_>>().join(", ");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wide.albis").display().to_string();
    let own = Engine::over_object_store(Vec::new(), EngineSettings::default());
    rows(&own, &format!("create view wide as select {columns} from range(0, {ROWS}) as t(value)")).await;
    rows(&own, &format!("copy (select * from wide) to '{file}'")).await;
    bed.put("wide.albis", &std::fs::read(&file).unwrap());
    let cluster = bed.cluster().await;
    bed.test.s3.reset_counters();
    for (sql, columns, row_groups) in [
        ("select sum(c6) from '/lake/wide.albis'", 1, 4),
        ("select sum(c6), min(c9) from '/lake/wide.albis'", 2, 4),
        ("select sum(c6) from '/lake/wide.albis' where c0 < 1000", 2, 1),
    ] {
        let answer = rows(&cluster, sql).await;
        assert_eq!(answer, rows(&own, &sql.replace("/lake/wide.albis", &file)).await, "{sql}");
        let job = bed.control().jobs().await.unwrap().pop().unwrap();
        let asked = columns * row_groups * 65_536 * 8;
        assert!(job.bytes >= asked && job.bytes <= asked * 105 / 100, "{sql}: {} for {asked}", job.bytes);
        assert_eq!(job.bytes_done, job.bytes, "{sql}");
    }
    // Three columns of it were wanted, one of one row group alone; beside them its metadata is read.
    let fetched = bed.test.s3.counters().bytes_out;
    let most = (2 * 4 + 1) * 65_536 * 8 * 105 / 100 + (1 << 20);
    assert!(fetched <= most, "fetched {fetched}, at most {most}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tpch_over_tables_answers_as_over_parquet() {
    let bed = Bed::start(3).await;
    let (here, cluster) = (bed.here(), bed.cluster().await);
    bed.tpch(0.01, &[&here]).await;
    for table in forebay_tpch::TABLES {
        let copy = format!("copy (select * from {table}) to '/lake/albis/{table}.albis' options (row_group_rows '4096')");
        rows(&here, &copy).await;
        rows(&cluster, &format!("create view {table} as select * from '/lake/albis/{table}.albis'")).await;
    }
    rows(&cluster, "set datafusion.optimizer.repartition_file_min_size = 0").await;
    for (ix, sql) in forebay_tpch::QUERIES.iter().enumerate() {
        let expected = rows(&here, sql).await;
        assert_eq!(rows(&cluster, sql).await, expected, "query {}", ix + 1);
    }
    let jobs = bed.control().jobs().await.unwrap();
    assert_eq!(jobs.len(), forebay_tpch::QUERIES.len(), "all of them ran on the cluster: {jobs:?}");
    assert!(jobs.iter().all(|job| job.state == "done" && job.tasks == job.tasks_done), "{jobs:?}");
}

/// Keeps the last of an engine's queries, which then runs in its process.
pub struct Kept {
    cluster: Cluster,
    query: Mutex<Option<DistributedQuery>>,
}

impl Kept {
    pub fn new(cluster: Cluster) -> Self {
        Self { cluster, query: Mutex::new(None) }
    }

    pub fn take(&self) -> DistributedQuery {
        self.query.lock().take().unwrap()
    }
}

#[async_trait]
impl Distribute for Kept {
    fn prepare(&self, config: SessionConfig) -> SessionStateBuilder {
        self.cluster.prepare(config)
    }

    async fn run(&self, query: DistributedQuery) -> Result<Option<DistributedRun>> {
        *self.query.lock() = Some(query);
        Ok(None)
    }

    fn stays(&self, _: &Arc<dyn ExecutionPlan>) -> Option<String> {
        Some("it is kept".to_string())
    }
}

fn scan_in(plan: &Arc<dyn ExecutionPlan>) -> Option<FileScanConfig> {
    let own = table_scan(plan).map(|scan| scan.files.clone());
    own.or_else(|| plan.children().into_iter().find_map(scan_in))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_executor_reads_tables_of_mounts_only_whatever_a_plan_says() {
    let bed = Bed::start(1).await;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("secret.csv"), "secret\n42\n").unwrap();
    let own = Engine::over_object_store(Vec::new(), EngineSettings::default());
    let file = at("secret.albis");
    let conversion = Conversion { inputs: vec![at("secret.csv")], output: file.clone(), options: Vec::new() };
    assert_eq!(own.convert(&conversion, Arc::default()).await.unwrap(), 1);
    rows(&bed.here(), "copy (select 7 as secret) to '/lake/open.albis'").await;
    let kept = Arc::new(Kept::new(bed.connect_cluster(0).await));
    let engine = Engine::over_cluster(bed.client.clone(), EngineSettings::default(), Arc::clone(&kept) as _);
    assert_eq!(rows(&engine, "select secret from '/lake/open.albis'").await, [" 7 "]);
    let plan = kept.take().plan;
    // The same plan for the file of this machine.
    let scan = scan_in(&plan).unwrap();
    let size = std::fs::metadata(&file).unwrap().len();
    let scan = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::clone(scan.file_source()))
        .with_file(PartitionedFile::new(file, size))
        .build();
    let config = kept.prepare(SessionConfig::new()).build().config().clone();
    let plan: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(scan);
    let query = DistributedQuery {
        operation: OperationId(78),
        sql: "select 1".to_string(),
        plan,
        config,
        pins: Vec::new(),
        who: "nobody".into(),
    };
    let run = kept.cluster.run(query).await.unwrap().unwrap();
    let answer: std::result::Result<Vec<RecordBatch>, _> = run.stream.try_collect().await;
    let error = answer.unwrap_err().to_string();
    assert!(error.contains("files of this machine are not open to SQL here") && !error.contains("42"), "{error}");
}
