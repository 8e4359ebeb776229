//! Queries on the cluster answer as in one process, fetch no byte twice, and stay here where they can't or need not travel.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::prelude::{CsvReadOptions, SessionConfig, SessionContext};
use forebay_sql::{Distribute, DistributedQuery, Engine, EngineSettings};
use forebay_types::OperationId;
use futures::TryStreamExt;

use crate::bed::{Bed, rows};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tpch_answers_as_one_process_does() {
    let bed = Bed::start(3).await;
    let (here, cluster) = bed.both_with_tpch(0.01).await;
    for (ix, sql) in forebay_tpch::QUERIES.iter().enumerate() {
        let expected = rows(&here, sql).await;
        assert_eq!(rows(&cluster, sql).await, expected, "query {}", ix + 1);
    }
    let jobs = bed.control().jobs().await.unwrap();
    assert_eq!(jobs.len(), forebay_tpch::QUERIES.len(), "all of them ran on the cluster: {jobs:?}");
    assert!(jobs.iter().all(|job| job.state == "done" && job.tasks == job.tasks_done && job.tasks_again == 0), "{jobs:?}");
    assert!(jobs.iter().all(|job| job.bytes > 0 && job.bytes_done == job.bytes), "{jobs:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn executors_find_columns_of_csv_by_their_names() {
    let bed = Bed::start(2).await;
    bed.put("people/a.csv", b"first,last\nAda,Lovelace\n");
    bed.put("people/b.csv", b"last,first,born\nHopper,Grace,1906\n");
    let (here, cluster) = (bed.here(), bed.cluster().await);
    let sql = "select first, last, coalesce(born, 0) as born from '/lake/people/' order by last";
    let expected = rows(&here, sql).await;
    assert!(expected.iter().any(|line| line.contains("Grace Hopper 1906")), "{expected:?}");
    assert_eq!(rows(&cluster, sql).await, expected);
    assert_eq!(bed.control().jobs().await.unwrap().len(), 1, "it ran on the cluster");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn executors_know_the_functions_that_have_a_bound_and_hold_to_it() {
    let bed = Bed::with_memory(2, 256 << 20).await;
    bed.put("a.csv", b"w,n\nab,1\ncd,2\n");
    let (here, cluster) = (bed.here(), bed.cluster().await);
    let sql = "select w || '-' || n as x, concat(w, n), repeat(w, n), length(w || n) from '/lake/a.csv' order by x";
    let expected = rows(&here, sql).await;
    assert!(expected[0].contains("ab-1"), "{expected:?}");
    assert_eq!(rows(&cluster, sql).await, expected);
    assert_eq!(bed.control().jobs().await.unwrap().len(), 1, "it ran on the cluster");
    let mut large = cluster.execute("select length(repeat(w, n * 500000000)) from '/lake/a.csv'").await.unwrap();
    let error = large.collect().await.unwrap_err();
    assert!(error.message().contains("one call of a function"), "{error}");
    assert_eq!(rows(&cluster, sql).await, expected, "the executors are still there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_only_this_process_has_runs_here() {
    let bed = Bed::start(1).await;
    bed.put("a.csv", b"x\n1\n2\n");
    let cluster = bed.cluster().await;
    assert_eq!(rows(&cluster, "select sum(value) from generate_series(1, 10) as t(value)").await, [" 55 "]);
    // What the serialised form of a scan has no word for.
    bed.put("c.json", b"[{\"x\": 1}, {\"x\": 2}]");
    assert_eq!(rows(&cluster, "select sum(x) from '/lake/c.json'").await, [" 3 "]);
    let told = cluster.execute("select sum(x) from '/lake/c.json'").await.unwrap();
    assert!(told.notice().is_some_and(|notice| notice.contains("one array")), "{:?}", told.notice());
    drop(told);
    bed.put("d.csv", b"x;1;2;4;");
    let options = "'format.has_header' 'true', 'format.terminator' ';'";
    rows(&cluster, &format!("create external table d (x bigint) stored as csv location '/lake/d.csv' options ({options})")).await;
    assert_eq!(rows(&cluster, "select sum(x) from d").await, [" 7 "]);
    let column = Arc::new(Int64Array::from(vec![1, 2, 5])) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("x", column)]).unwrap();
    let mut stream = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    stream.write(&batch).unwrap();
    bed.put("e.arrow", &stream.into_inner().unwrap());
    assert_eq!(rows(&cluster, "select sum(x) from '/lake/e.arrow'").await, [" 8 "]);
    assert!(bed.control().jobs().await.unwrap().is_empty());
    rows(&cluster, "copy (select x + 1 as y from '/lake/a.csv') to '/lake/b.albis'").await;
    assert_eq!(rows(&cluster, "select sum(y) from '/lake/b.albis'").await, [" 5 "]);
    assert_eq!(bed.control().jobs().await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn windows_that_executors_are_not_told_all_of_run_here() {
    let bed = Bed::start(1).await;
    bed.put("a.csv", b"id,x\n0,1\n1,\n2,2\n3,\n4,1\n5,3\n");
    let cluster = bed.cluster().await;
    let sql = |window: &str| {
        let of_windows = format!("select id, coalesce({window}, -1) as w from '/lake/a.csv'");
        format!("select string_agg(cast(w as varchar), ' ' order by id) from ({of_windows})")
    };
    let backwards = "nth_value(id, 2) over (order by id desc rows between current row and unbounded following)";
    for (window, expected, why) in [
        ("lag(x) ignore nulls over (order by id)".to_string(), "-1 1 1 2 2 1", "IGNORE NULLS"),
        ("sum(x) filter (where id > 2) over (order by id)".to_string(), "-1 -1 -1 -1 1 4", "FILTER"),
        (format!("nth_value(id, 2) over (order by id) + {backwards}"), "-1 1 2 3 4 5", "backwards"),
    ] {
        assert_eq!(rows(&cluster, &sql(&window)).await, [format!(" {expected} ")], "{window}");
        let told = cluster.execute(&sql(&window)).await.unwrap();
        assert!(told.notice().is_some_and(|notice| notice.contains(why)), "{window}: {:?}", told.notice());
    }
    assert!(bed.control().jobs().await.unwrap().is_empty());
    assert_eq!(rows(&cluster, &sql("sum(x) over (order by id)")).await, [" 1 1 3 3 4 7 "]);
    assert_eq!(bed.control().jobs().await.unwrap().len(), 1, "others run on the cluster");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_page_that_lies_costs_an_executor_no_memory() {
    let bed = Bed::start(1).await;
    let folder = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../sql/tests/damaged");
    bed.put("lies.parquet", &std::fs::read(folder.join("dictionary-of-2-30-values.parquet")).unwrap());
    let cluster = bed.cluster().await;
    let error = match cluster.execute("select sum(small) from '/lake/lies.parquet'").await {
        Err(error) => error,
        Ok(mut query) => query.collect().await.unwrap_err(),
    };
    assert!(error.message().contains("a dictionary says that it has 1073741824 values"), "{error}");
    assert!(!bed.control().jobs().await.unwrap().is_empty(), "it ran on the cluster");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_byte_is_fetched_twice() {
    let bed = Bed::start(3).await;
    let cluster = bed.cluster().await;
    bed.tpch(0.05, &[&cluster]).await;
    let sql = "select l_returnflag, sum(l_quantity), avg(l_extendedprice) from lineitem group by l_returnflag";
    bed.test.s3.reset_counters();
    let cold = rows(&cluster, sql).await;
    let fetched = bed.test.s3.counters().bytes_out;
    let job = bed.control().jobs().await.unwrap().pop().unwrap();
    assert!(fetched < job.bytes + job.bytes / 10 + (1 << 20), "fetched {fetched} for {} bytes of input", job.bytes);
    assert_eq!(rows(&cluster, sql).await, cold);
    let again = bed.test.s3.counters().bytes_out - fetched;
    assert!(again * 20 < fetched, "a warm run fetched {again} bytes");
    let warm = bed.control().jobs().await.unwrap().pop().unwrap();
    assert!(warm.tasks_local > 0, "tasks run where their input is: {warm:?}");
}

/// Tasks bring what they read to where they run, S3 and Python ask where the routing table leads: what one has brought the other finds,
/// also where parts of one object are on several workers.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_tasks_have_brought_is_not_fetched_again_for_s3_and_python() {
    let bed = Bed::start(4).await;
    let cluster = bed.cluster().await;
    bed.tpch(0.05, &[&cluster]).await;
    let fetched = || bed.test.s3.counters().bytes_out;
    let sql = |table: &str| format!("select l_returnflag, sum(l_quantity), max(l_comment) from {table} group by l_returnflag");
    bed.test.s3.reset_counters();
    let answer = rows(&cluster, &sql("lineitem")).await;
    let by_sql = fetched();
    // Python runs its SQL in its own process, as this does.
    let python = Engine::over_client(bed.test.client(|_| {}).await, EngineSettings::default());
    let files = "'/lake/tpch/lineitem/*.parquet'";
    assert_eq!(rows(&python, &sql(files)).await, answer);
    let by_python = fetched() - by_sql;
    assert!(by_python * 20 < by_sql, "{by_python} bytes were fetched for Python behind {by_sql} for SQL");
    // Whole objects, as the gateway reads them.
    let gateway = bed.test.client(|_| {}).await;
    let mut size = 0;
    for info in gateway.list_all(&"/lake/tpch/lineitem/".parse().unwrap()).await.unwrap() {
        let version = info.version;
        let bytes = gateway.read(gateway.operation(), &version, 0..version.size).await.unwrap();
        assert_eq!(bytes.len() as u64, version.size);
        size += version.size;
    }
    let in_all = fetched();
    // Small columns between gaps are not worth a request of their own.
    assert!(in_all <= size + size / 4, "{in_all} bytes were fetched of {size}, {by_sql} of them by SQL");
    let columns = "count(*), max(l_comment), max(l_shipdate), max(l_extendedprice), max(l_shipinstruct), max(l_orderkey)";
    rows(&python, &format!("select {columns} from {files}")).await;
    let again = fetched() - in_all;
    assert!(again * 20 < size, "{again} bytes were fetched though all of it is there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn compressed_text_is_read_as_one_process_does() {
    let bed = Bed::start(2).await;
    let (here, cluster) = (bed.here(), bed.cluster().await);
    let values = "select value as id, 'v' || value as name from generate_series(1, 2000) as t(value)";
    for file in ["x.csv", "x.csv.gz", "x.csv.bz2", "x.csv.xz", "x.csv.zst", "x.ndjson.gz"] {
        rows(&here, &format!("copy ({values}) to '/lake/{file}'")).await;
        let jobs = bed.control().jobs().await.unwrap().len();
        let sql = format!("select count(*), sum(id), max(name) from '/lake/{file}' where id % 7 = 0");
        assert_eq!(rows(&cluster, &sql).await, rows(&here, &sql).await, "{file}");
        assert_eq!(bed.control().jobs().await.unwrap().len(), jobs + 1, "{file} is read on the cluster");
    }
    // Two compressed files behind each other are one.
    bed.put("two.csv.zst", b"(\xb5/\xfd \x05)\x00\x00id\n1\n(\xb5/\xfd \x04!\x00\x002\n4\n");
    assert_eq!(rows(&cluster, "select sum(id) from '/lake/two.csv.zst'").await, rows(&here, "select 7").await);
    // A table of several files: a task has those that are its own, and what it reads is known.
    for end in ["csv", "csv.gz", "csv.zst", "ndjson.gz", "parquet"] {
        for ix in 0..5 {
            rows(&here, &format!("copy (select id + {ix} as id, name from ({values})) to '/lake/{end}-files/{ix}.{end}'")).await;
        }
        let sql = format!("select count(*), sum(id), max(name) from '/lake/{end}-files/' where id % 7 = 0");
        assert_eq!(rows(&cluster, &sql).await, rows(&here, &sql).await, "files of {end}");
        let job = bed.control().jobs().await.unwrap().pop().unwrap();
        assert!(job.tasks_with_input > 1 && job.bytes > 0, "{end}: {job:?}");
    }
    // A join, whose scans are in different stages.
    let sql = "select count(*), sum(a.id) from '/lake/x.csv.gz' a join '/lake/x.ndjson.gz' b on a.name = b.name";
    assert_eq!(rows(&cluster, sql).await, rows(&here, sql).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_reads_little_runs_here() {
    let bed = Bed::start(1).await;
    bed.put("little.csv", b"x\n1\n2\n");
    bed.put("much.csv", format!("x\n{}", "1\n".repeat(300_000)).as_bytes());
    let cluster = Arc::new(bed.connect_cluster(0).await);
    let settings = EngineSettings { distribute_from_bytes: 400_000, ..EngineSettings::default() };
    let engine = Engine::over_cluster(bed.client.clone(), settings, cluster);
    let columns = |with: &str| (1..=10).map(|at| with.replace('N', &at.to_string())).collect::<Vec<_>>();
    let (made, all) = (columns("value * 7919 * N % 1000003 as cN").join(", "), columns("count(distinct cN)").join(" + "));
    rows(&engine, &format!("copy (select {made} from generate_series(1, 20000)) to '/lake/wide.parquet'")).await;
    let all = format!("select {all} from '/lake/wide.parquet'");
    for (statement, answer, runs_there) in [
        ("select sum(x) from '/lake/little.csv'", " 3 ", false),
        ("select sum(x) from '/lake/much.csv'", " 300000 ", true),
        ("select count(distinct c1) from '/lake/wide.parquet'", " 20000 ", false),
        (all.as_str(), " 200000 ", true),
    ] {
        let before = bed.control().jobs().await.unwrap().len();
        assert_eq!(rows(&engine, statement).await, [answer], "{statement}");
        assert_eq!(bed.control().jobs().await.unwrap().len() - before, usize::from(runs_there), "{statement}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_plan_that_nests_too_deep_to_travel_runs_here() {
    let bed = Bed::start(1).await;
    bed.put("a.csv", b"x\n1\n2\n3\n");
    let (here, cluster) = (bed.here(), bed.cluster().await);
    let nested = |depth: usize| {
        let steps = (0..depth).map(|at| format!(", t{} as (select x + count(*) as x from t{at} group by x)", at + 1));
        format!("with t0 as (select x from '/lake/a.csv'){} select sum(x) from t{depth}", steps.collect::<String>())
    };
    assert_eq!(rows(&cluster, &nested(24)).await, rows(&here, &nested(24)).await);
    assert!(bed.control().jobs().await.unwrap().is_empty());
    assert_eq!(rows(&cluster, &nested(2)).await, rows(&here, &nested(2)).await);
    assert_eq!(bed.control().jobs().await.unwrap().len(), 1, "others go on travelling");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_asks_is_told_where_a_query_runs_and_why() {
    let bed = Bed::start(1).await;
    bed.put("a.csv", b"x\n1\n2\n3\n");
    rows(&bed.here(), "copy (select 5 as x) to '/lake/a.albis'").await;
    let cluster = bed.cluster().await;
    let large = EngineSettings { distribute_from_bytes: 1 << 30, ..EngineSettings::default() };
    let large = Engine::over_cluster(bed.client.clone(), large, Arc::new(bed.connect_cluster(0).await));
    let steps = (0..24).map(|at| format!(", t{} as (select x + count(*) as x from t{at} group by x)", at + 1));
    let folder = tempfile::tempdir().unwrap();
    let past_mounts = format!("copy (select x from '/lake/a.csv') to 'file://{}/b.csv'", folder.path().display());
    let deep = format!("with t0 as (select x from '/lake/a.csv'){} select sum(x) from t24", steps.collect::<String>());
    for (engine, sql, place, is_told) in [
        (&cluster, "select sum(x) from '/lake/a.csv'", "on the cluster", false),
        (&cluster, "select sum(x) from '/lake/a.albis'", "on the cluster", false),
        (&cluster, "select sum(x) from generate_series(1, 10) as t(x)", "in this process: it reads no files below mounts", false),
        (
            &cluster,
            "select a.x from '/lake/a.csv' a join generate_series(1, 2) as t(x) on a.x = t.x",
            "in this process alone",
            true,
        ),
        (&cluster, deep.as_str(), "in this process: its plan nests too deep to be sent", true),
        (&cluster, "copy (select x from '/lake/a.csv') to '/lake/out/'", "on the cluster", false),
        (&cluster, "copy (select x from '/lake/a.csv') to '/lake/one.csv'", "on the cluster", false),
        (&cluster, "copy (select x from '/lake/a.csv') to '/lake/b.albis'", "on the cluster", false),
        (&cluster, "copy (select x from '/lake/a.csv') to '/lake/b.arrow'", "on the cluster", false),
        (&cluster, past_mounts.as_str(), "what it writes is below no mount", true),
        (&large, "copy (select x from '/lake/a.csv') to '/lake/b.csv'", "less than `distribute-from` (1.00 GiB)", false),
        (&large, "select sum(x) from '/lake/a.csv'", "less than `distribute-from` (1.00 GiB)", false),
    ] {
        let told = rows(engine, &format!("explain {sql}")).await;
        let told: Vec<_> = told.iter().filter(|line| line.trim_start().starts_with("distribution ")).collect();
        assert!(told.len() == 1 && told[0].contains(place), "{sql}: {told:?}");
        let mut query = engine.execute(sql).await.unwrap();
        assert_eq!(query.notice().is_some_and(|notice| notice.contains("not on the cluster: ")), is_told, "{sql}");
        query.collect().await.unwrap();
    }
    let here = rows(&bed.here(), "explain select sum(x) from '/lake/a.csv'").await;
    assert!(!here.iter().any(|line| line.contains("distribution")), "there is one place: {here:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_executor_reads_mounts_only_whatever_a_plan_says() {
    let bed = Bed::start(1).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret.csv");
    std::fs::write(&file, "secret\n42\n").unwrap();
    let cluster = bed.connect_cluster(0).await;
    let config = cluster.prepare(SessionConfig::new()).build().config().clone();
    let context = SessionContext::new();
    let frame = context.read_csv(file.to_str().unwrap(), CsvReadOptions::new()).await.unwrap();
    let plan = frame.create_physical_plan().await.unwrap();
    let query = DistributedQuery {
        operation: OperationId(77),
        sql: "select 1".to_string(),
        plan,
        config,
        pins: Vec::new(),
        who: "owner".into(),
    };
    let run = cluster.run(query).await.unwrap().unwrap();
    let answer: Result<Vec<RecordBatch>, _> = run.stream.try_collect().await;
    let error = answer.unwrap_err().to_string();
    assert!(error.contains("files of this machine are not open to SQL here") && !error.contains("42"), "{error}");
}
