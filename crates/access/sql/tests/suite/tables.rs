//! Tables by name, statements that change them, one query's view of its files, and bounds of memory and disk.

use forebay_sql::{EngineMemory, EngineSettings, QueryMemory, QueryMemorySettings};
use forebay_types::ErrorKind;

use crate::support::{Lake, settings};

#[tokio::test(flavor = "multi_thread")]
async fn external_tables_views_and_their_names() {
    let lake = Lake::new();
    lake.rows("copy (select 1 as id, 'x' as name) to '/lake/t/a.parquet'").await;
    lake.rows("create external table t stored as parquet location '/lake/t/'").await;
    assert_eq!(lake.rows("select * from t").await, "1 x");
    lake.rows("copy (select 2 as id, 'y' as name) to '/lake/t/b.parquet'").await;
    assert_eq!(lake.rows("select count(*) from t").await, "2", "an external table sees new files");

    let taken = lake.error("create external table t stored as parquet location '/lake/t/'").await;
    assert_eq!(taken.kind(), ErrorKind::Conflict, "{taken}");
    lake.rows("create external table if not exists t stored as parquet location '/lake/none/'").await;
    assert_eq!(lake.rows("select count(*) from t").await, "2");
    lake.rows("create or replace external table t stored as parquet location '/lake/t/a.parquet'").await;
    assert_eq!(lake.rows("select count(*) from t").await, "1");

    lake.rows("create view v as select id * 10 as ten from '/lake/t/*.parquet'").await;
    assert_eq!(lake.rows("select sum(ten) from v").await, "30");
    lake.rows("copy (select 3 as id, 'z' as name) to '/lake/t/c.parquet'").await;
    assert_eq!(lake.rows("select sum(ten) from v").await, "60", "a view sees new files");

    let tables = lake.rows("show tables").await;
    assert!(tables.contains("public t BASE TABLE") && tables.contains("public v VIEW"), "{tables}");
    assert_eq!(lake.rows("describe t").await.lines().next().unwrap(), "id Int64 NO");
    assert!(lake.rows("describe '/lake/t/a.parquet'").await.contains("name Utf8View"));

    lake.rows("drop table t").await;
    let gone = lake.error("select * from t").await;
    assert_eq!(gone.kind(), ErrorKind::Invalid, "{gone}");
    assert_eq!(lake.error("drop table t").await.kind(), ErrorKind::NotFound);
    lake.rows("drop table if exists t").await;
    lake.rows("drop view v").await;
    assert_eq!(lake.rows("select count(*) from information_schema.tables where table_schema = 'public'").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_which_only_a_log_says_what_counts_is_read_by_pattern_alone() {
    let lake = Lake::new();
    for (table, log, kind) in [("d", "_delta_log/0.json", "Delta"), ("h", ".hoodie/hoodie.properties", "Hudi")] {
        lake.put(&format!("{table}/p=1/a.csv"), "id\n1\n2\n").await;
        lake.rows(&format!("create external table {table} stored as csv location '/lake/{table}/'")).await;
        lake.put(&format!("{table}/{log}"), "{}").await;
        let refused = [
            format!("select * from '/lake/{table}/'"),
            format!("select * from '/lake/{table}'"),
            format!("select * from {table}"),
            format!("create external table again stored as csv location '/lake/{table}'"),
        ];
        for sql in refused {
            let refused = lake.error(&sql).await;
            let says = refused.message().contains(&format!("a {kind} table")) && refused.message().contains("/**/*.parquet'");
            assert!(refused.kind() == ErrorKind::Invalid && says, "{sql}: {refused}");
        }
        assert_eq!(lake.rows(&format!("select sum(id) from '/lake/{table}/**/*.csv'")).await, "3");
        assert_eq!(lake.rows(&format!("select sum(id) from '/lake/{table}/p=1/'")).await, "3");
        // Whoever reads the table reads some of these.
        let reads = async |column: &str| lake.engine.reads_of(&format!("/lake/{table}/"), &[column.to_string()], None).await;
        assert!(reads("id").await.is_ok());
        let missing = reads("none").await.unwrap_err();
        assert!(missing.message().contains("none") && !missing.message().contains(kind), "{missing}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_be_forgotten_as_soon_as_it_is_done_is_refused() {
    let lake = Lake::new();
    for sql in ["prepare p as select 1", "create schema s", "create schema if not exists s", "create database d"] {
        let refused = lake.error(sql).await;
        assert!(refused.kind() == ErrorKind::Invalid && refused.message().contains("not supported"), "{sql}: {refused}");
    }
    for sql in
        ["begin", "begin transaction", "start transaction", "commit", "end", "rollback", "savepoint s", "release savepoint s"]
    {
        let refused = lake.error(sql).await;
        assert_eq!(refused.message(), "transactions are not supported: each statement is one by itself", "{sql}");
    }
    for (sql, instead) in [
        ("use forebay", "forebay.public"),
        ("show schemas", "information_schema.schemata"),
        ("show databases", "information_schema.schemata"),
        ("show views", "information_schema.views"),
        ("show tables like 'g%'", "information_schema.tables"),
        ("show columns from '/lake/x.csv'", "DESCRIBE"),
    ] {
        let refused = lake.error(sql).await;
        assert!(refused.kind() == ErrorKind::Invalid && refused.message().contains(instead), "{sql}: {refused}");
    }
    for clause in ["tablesample bernoulli (10)", "prewhere false", "connect by x = 1"] {
        for sql in
            [format!("select * from (values (1)) t(x) {clause}"), format!("copy (select 1 from g {clause}) to '/lake/x.csv'")]
        {
            let refused = lake.error(&sql).await;
            assert!(refused.kind() == ErrorKind::Invalid && refused.message().contains("not supported"), "{sql}: {refused}");
        }
    }
    let passed_over = [
        ("generic", "select * from g partition (p0)"),
        ("generic", "select * from (values (1)) t(x) order by x with fill"),
        ("generic", "select * from generate_series(1, 3) with ordinality"),
        ("generic", "select x, count(*) from (values (1)) t(x) group by x with rollup"),
        ("generic", "select x, count(*) from (values (1)) t(x) group by all with cube"),
        ("databricks", "select * from g version as of 2"),
        ("snowflake", "select * from g at(timestamp => '2020-08-14 09:30:00')"),
        ("bigquery", "select as struct 1 as x"),
    ];
    for (dialect, sql) in passed_over {
        lake.rows(&format!("set datafusion.sql_parser.dialect = '{dialect}'")).await;
        let refused = lake.error(sql).await;
        assert!(refused.kind() == ErrorKind::Invalid && refused.message().contains("not supported"), "{sql}: {refused}");
    }
    lake.rows("set datafusion.sql_parser.dialect = 'generic'").await;
    for sql in ["create schema if not exists public", "create schema if not exists forebay.public"] {
        lake.rows(sql).await;
    }
    lake.rows("create database if not exists forebay").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_is_not_like_the_first_ones_is_told_with_its_file() {
    let lake = Lake::new();
    lake.put("ragged.csv", "a,b\n1,2\n3\n").await;
    let ragged = lake.error("select * from '/lake/ragged.csv'").await;
    assert!(ragged.message().starts_with("'/lake/ragged.csv' (10 bytes) can't be read: Arrow error: Csv error"), "{ragged}");
    assert!(ragged.kind() == ErrorKind::Invalid && ragged.message().contains("CREATE EXTERNAL TABLE"), "{ragged}");
    lake.put("deep/a.csv", "n\n1\n").await;
    lake.put("deep/b.csv", format!("n\n{}x\n", "1\n".repeat(3000))).await;
    lake.put("deep/c.json", format!("{}{{\"n\": \"x\"}}\n", "{\"n\": 1}\n".repeat(3000))).await;
    for (path, named) in [
        ("/lake/deep/b.csv", "'/lake/deep/b.csv': "),
        ("/lake/deep/*.csv", "one of 2 files from '/lake/deep/a.csv' to '/lake/deep/b.csv': "),
        ("/lake/deep/c.json", "'/lake/deep/c.json': "),
    ] {
        let error = lake.error(&format!("select sum(n) from '{path}'")).await;
        assert!(error.kind() == ErrorKind::Invalid && error.message().starts_with(named), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_with_signs_of_patterns_is_found() {
    let lake = Lake::new();
    lake.put("t/a [1].csv", "n\n7\n").await;
    lake.put("t/a 2.csv", "n\n8\n").await;
    lake.put("t/what?.csv", "n\n9\n").await;
    assert_eq!(lake.rows("select n from '/lake/t/a [1].csv'").await, "7");
    assert_eq!(lake.rows("select n from '/lake/t/what?.csv'").await, "9");
    assert_eq!(lake.rows("select sum(n) from '/lake/t/a [12]*'").await, "8");
    lake.rows("create external table odd stored as csv location '/lake/t/a [1].csv'").await;
    assert_eq!(lake.rows("select n from odd").await, "7");
    for none in ["/lake/t/[3].csv", "/lake/t/[/../x", "/lake/t/*/../../x"] {
        assert!(matches!(lake.error(&format!("select * from '{none}'")).await.kind(), ErrorKind::NotFound | ErrorKind::Invalid));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_external_table_takes_its_options() {
    let lake = Lake::new();
    lake.put("d/x.txt", "1;a\n2;b\n").await;
    lake.rows(
        "create external table d (id bigint, name varchar) stored as csv location '/lake/d/' \
         options ('format.delimiter' ';', 'format.has_header' 'false')",
    )
    .await;
    assert_eq!(lake.rows("select * from d order by id").await, "1 a\n2 b");

    for option in ["format.null_regex", "FORMAT.null_value", "null_regex"] {
        let passed_over =
            lake.error(&format!("create external table n stored as csv location '/lake/d/' options ('{option}' 'NA')")).await;
        assert!(passed_over.kind() == ErrorKind::Invalid && passed_over.message().contains("nullif"), "{passed_over}");
    }

    lake.rows("create external table w (id bigint) stored as parquet location '/lake/w/'").await;
    assert_eq!(lake.rows("select count(*) from w").await, "0");
    assert_eq!(lake.rows("insert into w values (1), (2)").await, "2");
    assert_eq!(lake.rows("select sum(id) from w").await, "3");

    lake.put("one.csv", "a\n1\n").await;
    let one = lake.error("insert into '/lake/one.csv' values (2)").await;
    assert!(one.kind() == ErrorKind::Invalid && one.message().contains("adds files to a folder"), "{one}");
    for target in ["/lake/x.txt", "/lake/x"] {
        let unnamed = lake.error(&format!("copy (select 1) to '{target}'")).await;
        assert!(unnamed.kind() == ErrorKind::Invalid && unnamed.message().contains("says no format"), "{unnamed}");
        assert!(unnamed.message().contains(target), "{unnamed}");
    }
    lake.rows("copy (select 1 as a) to '/lake/x' stored as csv").await;

    let relative = lake.error("create external table r stored as csv location 'x.csv'").await;
    assert!(relative.message().contains("whole path"), "{relative}");
    let missing = lake.error("create external table r stored as csv location '/lake/none.csv'").await;
    assert_eq!(missing.kind(), ErrorKind::NotFound, "{missing}");
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_go_to_partitioned_folders() {
    let lake = Lake::new();
    let select = "select * from (values (1, 2023), (2, 2023), (3, 2024)) as t (id, year)";
    assert_eq!(lake.rows(&format!("copy ({select}) to '/lake/p' partitioned by (year)")).await, "3");
    assert_eq!(lake.rows("select year, sum(id) from '/lake/p/' group by year order by year").await, "2023 3\n2024 3");
    assert_eq!(lake.rows(&format!("copy ({select}) to '/lake/c/' stored as csv")).await, "3");
    assert_eq!(lake.rows("select count(*) from '/lake/c/'").await, "3");
    let error = lake.error(&format!("copy ({select}) to '/lake/*.csv'")).await;
    assert!(error.message().contains("pattern"), "{error}");
    assert_eq!(lake.error(&format!("copy ({select}) to '/pond/x.csv'")).await.kind(), ErrorKind::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn nulls_have_folders_of_their_own_and_come_back_as_nulls() {
    let lake = Lake::new();
    let rows = "(1, 7, 'a'), (2, null, 'b'), (3, 9, null), (4, null, '')";
    let select = format!("select * from (values {rows}) as t (id, k, w)");
    assert_eq!(lake.rows(&format!("copy ({select}) to '/lake/p' partitioned by (k, w)")).await, "4");
    let names = lake.names().await;
    assert!(names.iter().any(|name| name.starts_with("p/k=__HIVE_DEFAULT_PARTITION__/w=b/")), "{names:?}");
    assert!(names.iter().any(|name| name.starts_with("p/k=9/w=__HIVE_DEFAULT_PARTITION__/")), "{names:?}");
    let all = "select id, coalesce(k, -1), coalesce(w, 'none') from '/lake/p/' order by id";
    let ids = async |condition: &str| {
        lake.rows(&format!("select id from '/lake/p/' where {condition} order by id")).await.replace('\n', " ")
    };
    assert_eq!(lake.rows(all).await, "1 7 a\n2 -1 b\n3 9 none\n4 -1");
    assert_eq!(lake.rows("select arrow_typeof(k) from '/lake/p/' limit 1").await, "Int64");
    assert_eq!((ids("k is null").await, ids("k is not null").await), ("2 4".to_string(), "1 3".to_string()));
    assert_eq!((ids("k <> 7").await, ids("k > 0").await), ("3".to_string(), "1 3".to_string()));
    assert_eq!((ids("w is null").await, ids("not (w = 'a')").await), ("3".to_string(), "2 4".to_string()));
    assert_eq!(ids("k is null and id > 2").await, "4");
    assert_eq!(lake.rows("select count(*), count(k), min(k), max(k), count(w) from '/lake/p/'").await, "4 2 7 9 3");
    assert_eq!(lake.rows("select count(*) from '/lake/p/' group by k order by k nulls first").await, "2\n1\n1");
    assert_eq!(ids("k = 7").await, "1");
    let plan = lake.rows("explain select id from '/lake/p/' where k = 7").await;
    assert!(plan.contains("k=7/") && !plan.contains("k=9/"), "{plan}");

    lake.rows(
        "create external table p (id bigint, k int, w varchar) stored as parquet partitioned by (k, w) location '/lake/p/'",
    )
    .await;
    assert_eq!(lake.rows("select id, arrow_typeof(k) from p where k is null order by id").await, "2 Int32\n4 Int32");
    // What others have written.
    lake.put("h/day=1/a.csv", "id\n1\n").await;
    lake.put("h/day=__HIVE_DEFAULT_PARTITION__/a.csv", "id\n2\n").await;
    assert_eq!(lake.rows("select id, day + 1 from '/lake/h/' order by id").await, "1 2\n2");
    lake.put("n/day=__HIVE_DEFAULT_PARTITION__/a.csv", "id\n2\n").await;
    assert_eq!(lake.rows("select id, day is null from '/lake/n/'").await, "2 true");
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_settings_and_wrong_statements() {
    let lake = Lake::new();
    lake.rows("copy (select 1 as id) to '/lake/x.parquet'").await;
    assert!(lake.rows("explain select * from '/lake/x.parquet'").await.contains("DataSourceExec"));
    assert!(lake.rows("explain analyze select * from '/lake/x.parquet'").await.contains("bytes_scanned"));
    let plan = lake.engine.execute("select id from '/lake/x.parquet'").await.unwrap().plan_text();
    assert!(plan.contains("DataSourceExec"), "{plan}");

    lake.rows("set datafusion.execution.batch_size = 7").await;
    assert!(lake.rows("show datafusion.execution.batch_size").await.contains('7'));

    assert_eq!(lake.error("selec 1").await.kind(), ErrorKind::Invalid);
    assert_eq!(lake.error("select no from '/lake/x.parquet'").await.kind(), ErrorKind::Invalid);
    assert!(lake.error("select 1; select 2").await.message().contains("one at a time"));
    assert!(lake.error(" -- nothing").await.message().contains("no statement"));
    assert_eq!(lake.engine.statements("select 1; select 2;").await.unwrap(), ["select 1", "select 2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_lists_once_and_footers_are_read_once() {
    let lake = Lake::new();
    for at in 0..3 {
        lake.rows(&format!("copy (select {at} as id) to '/lake/f/{at}.parquet'")).await;
    }
    lake.store.clear();
    let join = "select count(*) from '/lake/f/' a join '/lake/f/' b on a.id = b.id";
    assert_eq!(lake.rows(join).await, "3");
    assert_eq!(*lake.store.lists.lock().unwrap(), ["f"]);
    let footers = lake.store.reads.lock().unwrap().len();
    lake.store.clear();
    assert_eq!(lake.rows(join).await, "3");
    assert_eq!(*lake.store.lists.lock().unwrap(), ["f"], "the next query looks again");
    let without = lake.store.reads.lock().unwrap().len();
    assert_eq!(footers - without, 3, "one read a footer, then none");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_footer_never_answers_for_a_new_version() {
    let lake = Lake::new();
    for round in 0..20 {
        // Versions of one size, written within the clock's resolution.
        lake.rows(&format!("copy (select {} as id) to '/lake/v.parquet'", 1000 + round)).await;
        let sum = lake.rows("select max(id) from '/lake/v.parquet'").await;
        assert_eq!(sum, (1000 + round).to_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn little_memory_spills_to_disk() {
    let folder = tempfile::tempdir().unwrap();
    let settings = EngineSettings {
        target_partitions: Some(1),
        memory: EngineMemory::Own(QueryMemorySettings {
            memory_bytes: Some(64 << 20),
            spill_folder: Some(folder.path().to_path_buf()),
            ..Default::default()
        }),
        ..settings()
    };
    let lake = Lake::with(settings);
    let sort = "select value, md5(cast(value as varchar)) as hash from generate_series(1, 1500000) as t(value) order by hash";
    let analyzed = lake.rows(&format!("explain analyze {sort}")).await;
    let spills = analyzed.split("spill_count=").skip(1).filter(|rest| !rest.starts_with('0')).count();
    assert!(spills > 0, "{analyzed}");

    let many = "(select md5(cast(value as varchar)) as hash from generate_series(1, 3000000) as t(value))";
    let greedy = &format!("select count(*) from {many} a join {many} b on a.hash = b.hash");
    let error = lake.error(greedy).await;
    assert!(error.kind() == ErrorKind::Retry && error.message().contains("memory"), "{error}");
}

/// Bytes of this process that are in memory, at most since it began.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix("kB").unwrap().trim().parse::<u64>().unwrap() << 10
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_wants_all_memory_and_disk_ends_with_an_error_and_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let limits = QueryMemorySettings {
        memory_bytes: Some(48 << 20),
        spill_bytes: Some(96 << 20),
        spill_folder: Some(folder.path().to_path_buf()),
    };
    let memory = EngineMemory::Shared(QueryMemory::new(&limits).unwrap());
    let engines = [0, 1].map(|_| Lake::with(EngineSettings { memory: memory.clone(), ..settings() }));
    let many = "generate_series(1, 30000)";
    let greedy = format!("select count(*) from (select distinct a.value as x, b.value as y from {many} a cross join {many} b)");
    let before = peak_bytes();
    let (first, second) = tokio::join!(engines[0].error(&greedy), engines[1].error(&greedy));
    for error in [first, second] {
        assert_eq!(error.kind(), ErrorKind::Retry, "{error}");
        assert!(error.message().contains("out of memory") && error.message().contains("sql-memory"), "{error}");
    }
    // The other tests of this process take memory too.
    let more = peak_bytes() - before;
    assert!(more < 1 << 30, "the process grew by {more} bytes");
    assert_eq!(engines[0].rows("select count(distinct value) from generate_series(1, 1000)").await, "1000");
    // Tasks of the queries end on their own time, and their files with them.
    let spilled = || {
        let folders = std::fs::read_dir(folder.path()).unwrap();
        folders.map(|entry| std::fs::read_dir(entry.unwrap().path()).unwrap().count()).sum::<usize>()
    };
    forebay_testbed::until("what was spilled is gone", || spilled() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_read_changes_nothing_however_it_is_written() {
    let lake = Lake::new();
    lake.rows("copy (select 1 as id) to '/lake/t/a.parquet'").await;
    lake.rows("create external table t stored as parquet location '/lake/t/'").await;
    for reads in [
        "select * from t",
        "with a as (select 1 as id) select id from a",
        "(select 1) union (select 2)",
        "values (1)",
        "show tables",
        "describe t",
        "explain analyze select * from t",
        "-- of today\nselect 1",
    ] {
        lake.engine.read(reads).await.unwrap().collect().await.unwrap();
    }
    for other in [
        "copy (select 2 as id) to '/lake/t/b.parquet'",
        "insert into t values (2)",
        "with a as (select 2 as id) insert into t select id from a",
        "select 2 as id into u",
        "explain analyze insert into t values (2)",
        "explain analyze copy (select 2 as id) to '/lake/t/b.parquet'",
        "create table u as select 2 as id",
        "create view u as select 2 as id",
        "create external table u stored as parquet location '/lake/t/'",
        "drop table t",
        "set datafusion.execution.batch_size = 1",
        "prepare p as select 1",
        "",
        "select 1; drop table t",
    ] {
        let refused = lake.engine.read(other).await.expect_err(other);
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{other}: {refused}");
    }
    assert_eq!(lake.rows("select id from t").await, "1");
    assert!(!lake.rows("show tables").await.contains(" u "));
}
