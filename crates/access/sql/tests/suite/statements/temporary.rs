//! Temporary data in statements: read and written as files of a mount are, and never as it was before.

use forebay_client::{Client, CreateOptions, NodeType};
use forebay_sql::{Engine, EngineSettings, Reach};
use forebay_types::ErrorKind;

use crate::cluster::Cluster;
use crate::support::{error, rows, settings};

const ROWS: &str = "select value as id, md5(cast(value as varchar)) as hash from range(0, 20000) as t(value)";

/// The names in a container.
async fn names(client: &Client, path: &str) -> Vec<String> {
    let (page, _) = client.nodes().list(path, None, 1000).await.unwrap();
    page.into_iter().map(|entry| entry.name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn temporary_data_is_read_and_written_as_files_of_a_mount_are() {
    let cluster = Cluster::start().await;
    let (engine, nodes) = (cluster.engine(), cluster.client.nodes());
    // What is longer than that the engine's own writers write in parts.
    rows(&engine, "set datafusion.execution.objectstore_writer_buffer_size = 65536").await;
    for name in ["x.parquet", "x.csv", "x.csv.gz", "x.ndjson", "x.arrow", "x.albis"] {
        let sums = |folder: &str| {
            format!("select count(*), sum(id), min(hash), max(hash) from '{folder}/{name}' where id > 100 and hash < 'e'")
        };
        for folder in ["/lake/t", "/tmp/job/t"] {
            assert_eq!(rows(&engine, &format!("copy ({ROWS}) to '{folder}/{name}'")).await, "20000", "{folder}/{name}");
        }
        assert_eq!(rows(&engine, &sums("/tmp/job/t")).await, rows(&engine, &sums("/lake/t")).await, "{name}");
        let stat = nodes.stat(&format!("/tmp/job/t/{name}")).await.unwrap().unwrap();
        assert!(stat.bytes > 65536 && (stat.kind == NodeType::File || !name.contains(".csv")), "{name}: {stat:?}");
    }
    assert_eq!(rows(&engine, "copy (select 7 as a) to '/tmp/job/small.csv'").await, "1");
    let small = nodes.stat("/tmp/job/small.csv").await.unwrap().unwrap();
    assert_eq!((small.kind, small.bytes), (NodeType::KeyValue, 4));
    assert_eq!(rows(&engine, "select a from '/tmp/job/small.csv'").await, "7");

    assert_eq!(rows(&engine, &format!("copy ({ROWS}) to '/tmp/job/out/'")).await, "20000");
    for path in ["/tmp/job/out/", "/tmp/job/out", "/tmp/job/out/*.parquet", "/tmp/*/out/*.parquet", "forebay:///tmp/job/out/"] {
        assert_eq!(rows(&engine, &format!("select sum(id) from '{path}'")).await, "199990000", "{path}");
    }
    let parts =
        "copy (select id, id % 3 as part from '/tmp/job/t/x.csv') to '/tmp/job/parts/' stored as csv partitioned by (part)";
    assert_eq!(rows(&engine, parts).await, "20000");
    assert_eq!(rows(&engine, "select count(*) from '/tmp/job/parts/' where part = 1").await, "6667");
    assert_eq!(names(&cluster.client, "/tmp/job/parts").await, ["part=0", "part=1", "part=2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn external_tables_bags_and_tables_of_values_are_folders() {
    let cluster = Cluster::start().await;
    let (engine, nodes) = (cluster.engine(), cluster.client.nodes());
    rows(&engine, "create external table grows (id bigint, w varchar) stored as parquet location '/tmp/grows/'").await;
    for value in [1, 2, 4] {
        assert_eq!(rows(&engine, &format!("insert into grows values ({value}, 'w{value}')")).await, "1");
    }
    assert_eq!(rows(&engine, "select sum(id), max(w) from grows").await, "7 w4");
    assert_eq!(names(&cluster.client, "/tmp/grows").await.len(), 3, "a file each, and no drafts");
    // Another session knows the table.
    assert_eq!(rows(&cluster.engine(), "select count(*) from grows").await, "3");

    for (path, kind, made) in [("/tmp/bag", NodeType::Bag, NodeType::File), ("/tmp/values", NodeType::Table, NodeType::KeyValue)]
    {
        nodes.create(path, CreateOptions::new(kind)).await.unwrap();
        match made {
            NodeType::File => {
                nodes.create(&format!("{path}/a.csv"), CreateOptions::new(made)).await.unwrap();
                nodes.append(&format!("{path}/a.csv"), "n\n1\n2\n").await.unwrap();
            }
            _ => nodes.put(&format!("{path}/a.csv"), "n\n1\n2\n").await.unwrap(),
        }
        assert_eq!(rows(&engine, &format!("copy (select 10 as n) to '{path}/b.csv'")).await, "1", "{path}");
        assert_eq!(nodes.stat(&format!("{path}/b.csv")).await.unwrap().unwrap().kind, made, "{path}");
        assert_eq!(rows(&engine, &format!("select sum(n), count(*) from '{path}/'")).await, "13 3", "{path}");
        assert_eq!(rows(&engine, &format!("select n from '{path}/b.csv'")).await, "10", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_replaced_is_never_answered_for_by_what_was_there_before() {
    let cluster = Cluster::start().await;
    let (engine, writer) = (cluster.engine(), cluster.engine());
    for name in ["x.parquet", "x.albis", "x.csv", "x.arrow"] {
        for at in 1..4 {
            // Of the same size each time: only its bytes tell that it is another one.
            let copy = format!("copy (select {at} as a, value as b from range(0, 10000) as t(value)) to '/tmp/r/{name}'");
            rows(&writer, &copy).await;
            let known = format!("select min(a), max(a), count(*) from '/tmp/r/{name}'");
            assert_eq!(rows(&engine, &known).await, format!("{at} {at} 10000"), "{name}");
            let read = format!("select sum(a), sum(b) from '/tmp/r/{name}' where b >= 0");
            assert_eq!(rows(&engine, &read).await, format!("{} 49995000", at * 10000), "{name}");
        }
        // Replaced after it was planned, and before its first row: as it was, or as it is.
        let mut query = engine.execute(&format!("select sum(a), count(*) from '/tmp/r/{name}' where b >= 0")).await.unwrap();
        rows(&writer, &format!("copy (select 9 as a, value as b from range(0, 10000) as t(value)) to '/tmp/r/{name}'")).await;
        let answer = crate::support::text(&query.collect().await.unwrap());
        assert!(answer == "30000 10000" || answer == "90000 10000", "{name}: {answer}");
    }
    cluster.client.nodes().delete("/tmp/r/x.csv", false).await.unwrap();
    assert_eq!(error(&engine, "select * from '/tmp/r/x.csv'").await.kind(), ErrorKind::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_not_there_is_told_with_the_remedy() {
    let cluster = Cluster::start().await;
    // As in a server: no files of this machine, and temporary data all the same.
    let engine = Engine::over_client(cluster.client.clone(), EngineSettings { reach: Reach::of_mounts(), ..settings() });
    assert_eq!(rows(&engine, "copy (select 1 as a) to '/tmp/d/x.csv'").await, "1");
    for path in ["/tmp/none.csv", "/tmp/none/", "/tmp/d/*.parquet", "/tmp/d/x.csv/y.csv", "/tmp/d/x.csv/"] {
        let error = error(&engine, &format!("select * from '{path}'")).await;
        assert_eq!(error.kind(), ErrorKind::NotFound, "{path}: {error}");
        assert!(error.message().contains(path) && error.message().contains("forebay node ls"), "{path}: {error}");
    }
    cluster.client.nodes().put("/tmp/d/notes", "no table").await.unwrap();
    let mixed = error(&engine, "select * from '/tmp/d/'").await;
    assert!(mixed.message().contains("/tmp/d/notes") && mixed.message().contains("STORED AS"), "{mixed}");
    assert_eq!(rows(&engine, "select a from '/tmp/d/*.csv'").await, "1");
    let shards = error(&engine, "select * from '/tmp/d/x.shards'").await;
    assert!(shards.message().contains("datasets of shards are served below mounts"), "{shards}");
    let folder = error(&engine, "copy (select 1 as a) to '/tmp/d/x.csv/y.csv'").await;
    assert!(folder.message().contains("/tmp/d/x.csv"), "{folder}");
    assert_eq!(rows(&engine, "select a from '/tmp/d/x.csv'").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_jobs_pass_on_between_their_stages_is_in_no_pattern_from_above() {
    let cluster = Cluster::start().await;
    let (engine, nodes) = (cluster.engine(), cluster.client.nodes());
    for path in ["/tmp/shuffle", "/tmp/mine"] {
        nodes.create(path, CreateOptions::new(NodeType::Directory)).await.unwrap();
        nodes.put(&format!("{path}/x.csv"), "n\n1\n").await.unwrap();
    }
    assert_eq!(rows(&engine, "select count(*) from '/tmp/**/*.csv'").await, "1");
    assert_eq!(rows(&engine, "select count(*) from '/tmp/shuffle/x.csv'").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn without_temporary_data_paths_below_tmp_are_files_of_this_machine() {
    let cluster = Cluster::start().await;
    let reach = Reach { temporary: false, ..Reach::of_process() };
    let engine = Engine::over_client(cluster.client.clone(), EngineSettings { reach, ..settings() });
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let file = folder.path().join("x.csv").display().to_string();
    assert_eq!(rows(&engine, &format!("copy (select 1 as a) to '{file}'")).await, "1");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "a\n1\n");
    for path in [file.clone(), format!("{}/*.csv", folder.path().display())] {
        assert_eq!(rows(&engine, &format!("select a from '{path}'")).await, "1", "{path}");
    }
    assert!(cluster.client.nodes().stat(&file).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_file_whose_rows_fail_does_not_take_its_place() {
    let cluster = Cluster::start().await;
    let engine = cluster.engine();
    rows(&engine, "set datafusion.execution.objectstore_writer_buffer_size = 65536").await;
    for name in ["x.parquet", "x.csv", "x.ndjson", "x.arrow", "x.albis"] {
        for path in [format!("/lake/w/{name}"), format!("/tmp/w/{name}")] {
            assert_eq!(rows(&engine, &format!("copy (select 7 as a) to '{path}'")).await, "1", "{path}");
            // Of some formats the second one is written in parts.
            for (how, count) in [("", 20_000), ("", 400_000), ("explain analyze ", 20_000)] {
                let last = count - 1;
                let rows_fail = format!("select 1 / (value - {last}) as a from range(0, {count}) as t(value)");
                let fails = format!("{how}copy ({rows_fail}) to '{path}'");
                let failed = error(&engine, &fails).await;
                assert!(failed.message().to_lowercase().contains("divide by zero"), "{path}: {failed}");
                assert_eq!(failed.kind(), ErrorKind::Invalid, "{path}: {failed}");
                assert_eq!(rows(&engine, &format!("select a from '{path}'")).await, "7", "{path}");
            }
        }
    }
    assert_eq!(names(&cluster.client, "/tmp/w").await.len(), 5, "what failed is not there under another name");
}
