//! What SQL of a server may name beside mounts.

use std::path::Path;

use forebay_sql::{EngineSettings, LocalFiles, ParamValues, Reach, ScalarValue};
use forebay_types::ErrorKind;

use crate::support::{Lake, settings};

async fn lake(local_files: LocalFiles) -> Lake {
    let lake = Lake::with(EngineSettings { reach: Reach { local_files, ..Reach::of_mounts() }, ..settings() });
    lake.put("x.csv", "a\n1\n").await;
    lake
}

/// Statements that read a path, and that write to it.
fn statements(path: &str) -> [String; 5] {
    [
        format!("select * from '{path}'"),
        format!("create external table t stored as csv location '{path}'"),
        format!("create external table t (l varchar) stored as csv location '{path}'"),
        format!("copy (select 1 as a) to '{path}'"),
        format!("explain copy (select 1 as a) to '{path}' stored as csv"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_of_a_server_reaches_mounts_and_nothing_else() {
    let lake = lake(LocalFiles::Below(Vec::new())).await;
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let below = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(below("there.csv"), "secret\n1\n").unwrap();
    let (there, new) = (below("there.csv"), below("new.csv"));
    for path in [&there, &new, "/etc/passwd", "/tmp/owned.csv", "x.csv", "../x.csv", &format!("{}/*.csv", below(""))] {
        for url in [path.to_string(), format!("file://{path}"), format!("FILE://{path}")] {
            for sql in statements(&url) {
                let error = lake.error(&sql).await;
                let refused = matches!(error.kind(), ErrorKind::Denied | ErrorKind::NotFound | ErrorKind::Invalid);
                assert!(refused && !error.message().contains("secret"), "{sql}: {} {error}", error.kind());
                let is_path = url.starts_with('/') && !url.contains('*');
                assert!(!is_path || error.message().contains("file-roots"), "{sql}: {error}");
            }
        }
    }
    assert!(!Path::new(&new).exists() && !Path::new("/tmp/owned.csv").exists());
    // Nobody learns what is there.
    let told = |path: &str, error: forebay_types::Error| error.message().replace(path, "PATH");
    let (of_there, of_new) = (format!("select * from '{there}'"), format!("select * from '{new}'"));
    assert_eq!(told(&there, lake.error(&of_there).await), told(&new, lake.error(&of_new).await));
    for url in ["s3://bucket/x.parquet", "s3a://bucket/x.parquet", "gs://bucket/x.csv", "az://container/x.csv"] {
        for sql in statements(url) {
            let error = lake.error(&sql).await;
            assert_eq!(error.kind(), ErrorKind::Denied, "{sql}: {error}");
            assert!(error.message().contains("direct-stores") && error.message().contains("forebay mount add"), "{sql}: {error}");
        }
    }
    for sql in statements("http://127.0.0.1/x.csv") {
        assert_eq!(lake.error(&sql).await.kind(), ErrorKind::Invalid, "{sql}");
    }
    for (name, value) in [("temp_directory", below("made")), ("memory_limit", "100G".to_string())] {
        let error = lake.error(&format!("set datafusion.runtime.{name} = '{value}'")).await;
        assert!(error.kind() == ErrorKind::Invalid && error.message().contains("sql-memory"), "{error}");
    }
    assert!(!Path::new(&below("made")).exists());
    // Nor does a number that memory is taken by before anything is read.
    for name in ["batch_size", "target_partitions", "objectstore_writer_buffer_size", "parquet.write_batch_size"] {
        for value in ["100000000000", "'100000000000'", "18446744073709551615"] {
            let error = lake.error(&format!("set datafusion.execution.{name} = {value}")).await;
            assert!(error.kind() == ErrorKind::Invalid && error.message().contains("at most"), "{name}: {error}");
        }
    }
    assert_eq!(lake.rows("select a, count(*) from '/lake/x.csv' group by a order by a").await, "1 1");
    for sql in [
        "select approx_percentile_cont(a, 0.5, 10000000000000) from '/lake/x.csv'",
        "select approx_percentile_cont(a, 0.5, 10000000 * 1000000) from '/lake/x.csv'",
        "select approx_percentile_cont(0.5, 10000000000000) within group (order by a) from '/lake/x.csv'",
        "explain select 1 where 1 < (select approx_percentile_cont(a, 0.5, 10000000000000) from '/lake/x.csv')",
        "select arrow_cast(null, 'FixedSizeBinary(2147483647)') from '/lake/x.csv'",
        "select arrow_cast(null, 'FixedSizeList(2147483647 x Int64)') is null",
    ] {
        let error = lake.error(sql).await;
        let told = error.message().contains("at most") || error.message().contains("too large");
        assert!(error.kind() == ErrorKind::Invalid && told, "{sql}: {error}");
    }
    assert!(lake.rows("select approx_percentile_cont(a, 0.5, 200) from '/lake/x.csv'").await.starts_with('1'));
    assert_eq!(lake.rows("select arrow_cast(null, 'FixedSizeList(768 x Float32)') is null").await, "true");
    lake.rows("set datafusion.execution.batch_size = 1048576").await;
    assert_eq!(lake.rows("select a from '/lake/x.csv'").await, "1");
    assert_eq!(lake.rows("copy (select 2 as a) to '/lake/y.csv'").await, "1");
    assert_eq!(lake.rows("select sum(a) from '/lake/*.csv'").await, "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_of_a_server_keeps_no_rows_in_its_memory() {
    let served = lake(LocalFiles::Below(Vec::new())).await;
    let tables = [
        "create table t as select 1 as a",
        "select 1 as a into t",
        "create or replace table t as values (1)",
        "create table t (a int)",
    ];
    for sql in tables {
        let error = served.error(sql).await;
        assert!(error.kind() == ErrorKind::Invalid && error.message().contains("copy (select"), "{sql}: {error}");
    }
    assert_eq!(served.rows("show tables").await.matches("BASE TABLE").count(), 0);
    served.rows("create view v as select a from '/lake/x.csv'").await;
    assert_eq!(served.rows("select a from v").await, "1");
    // A process of one's own may.
    let own = lake(LocalFiles::All).await;
    own.rows("create table t as select a + 1 as a from '/lake/x.csv'").await;
    assert_eq!(own.rows("select a from t").await, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn views_of_a_server_are_bounded() {
    let lake = lake(LocalFiles::Below(Vec::new())).await;
    let long = format!("create view long as select '{}' as a", "x".repeat(64 << 10));
    assert!(lake.error(&long).await.message().contains("64.0 KiB"));
    for number in 0..500 {
        lake.rows(&format!("create view v{number} as select {number} as a")).await;
    }
    for sql in ["create view one_more as select 1 as a", "create external temporary table t stored as csv location '/lake/x.csv'"]
    {
        let error = lake.error(sql).await;
        assert!(error.kind() == ErrorKind::Invalid && error.message().contains("500 views"), "{sql}: {error}");
    }
    lake.rows("create or replace view v7 as select 8 as a").await;
    lake.rows("drop view v8").await;
    lake.rows("create view one_more as select a from v7").await;
    assert_eq!(lake.rows("select a from one_more").await, "8");
    // What stands in place of a parameter is a part of it.
    let long = ParamValues::from(vec![ScalarValue::from("x".repeat(64 << 10))]);
    let error = lake.engine.execute_with("create or replace view v7 as select $1 as a", long).await.err().unwrap();
    assert!(error.message().contains("64.0 KiB"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_connection_sets_is_bounded() {
    let lake = lake(LocalFiles::Below(Vec::new())).await;
    let error = lake.error(&format!("set datafusion.format.null = '{}'", "x".repeat(5 << 10))).await;
    assert!(error.kind() == ErrorKind::Invalid && error.message().contains("4.00 KiB"), "{error}");
    lake.rows("set datafusion.format.null = 'x'").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_below_a_root_are_open_and_nothing_leads_out_of_it() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let at = |name: &str| folder.path().join(name);
    let shown = |name: &str| at(name).display().to_string();
    std::fs::create_dir_all(at("open/deep")).unwrap();
    std::fs::write(at("secret.csv"), "a\n7\n").unwrap();
    std::fs::write(at("open/x.csv"), "a\n1\n").unwrap();
    let lake = lake(LocalFiles::Below(vec![at("open")])).await;
    assert_eq!(lake.rows(&format!("select a from '{}'", shown("open/*.csv"))).await, "1");
    std::os::unix::fs::symlink("../../secret.csv", at("open/deep/link.csv")).unwrap();
    std::os::unix::fs::symlink("..", at("open/deep/up")).unwrap();
    std::os::unix::fs::symlink("../../new.csv", at("open/deep/nowhere.csv")).unwrap();
    for path in [shown("open/x.csv"), format!("file://{}", shown("open/x.csv")), shown("open/deep/up/x.csv")] {
        assert_eq!(lake.rows(&format!("select a from '{path}'")).await, "1", "{path}");
    }
    assert_eq!(lake.rows(&format!("copy (select 5 as a) to '{}'", shown("open/new.csv"))).await, "1");
    assert_eq!(lake.rows(&format!("select a from '{}'", shown("open/new.csv"))).await, "5");
    for name in ["secret.csv", "open/../secret.csv", "open/deep/link.csv", "open/deep/nowhere.csv", "open/deep/up/../secret.csv"]
    {
        for url in [shown(name), format!("file://{}", shown(name))] {
            for sql in statements(&url) {
                let error = lake.error(&sql).await;
                let refused = matches!(error.kind(), ErrorKind::Denied | ErrorKind::NotFound | ErrorKind::Invalid);
                assert!(refused, "{sql}: {} {error}", error.kind());
            }
        }
    }
    std::fs::remove_file(at("open/deep/up")).unwrap();
    std::fs::remove_file(at("open/deep/nowhere.csv")).unwrap();
    // A folder with a link that leads out is refused, rather than read without what the link is.
    let error = lake.error(&format!("select * from '{}/'", shown("open/deep"))).await;
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(!at("new.csv").exists());
    assert_eq!(std::fs::read_to_string(at("secret.csv")).unwrap(), "a\n7\n");
}
