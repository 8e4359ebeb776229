//! What stages pass on in temporary nodes: where it lies, that it goes away, and that its loss changes no answer.

use std::time::{Duration, Instant};

use forebay_client::{CreateOptions, NodeErrorKind, NodeType};
use forebay_testbed::until_asked;
use forebay_types::{BitRate, MountOptions};

use crate::bed::{Bed, rows};

const SQL: &str = "select l_shipmode, count(*), sum(l_quantity), max(o_comment) from lineitem, orders \
                   where l_orderkey = o_orderkey group by l_shipmode";

/// A bound that makes jobs last for some seconds.
fn slow() -> MountOptions {
    MountOptions { bandwidth: Some("40Mbit".parse::<BitRate>().unwrap()), ..Default::default() }
}

/// The names in a container; none when it is not there.
async fn names(bed: &Bed, path: &str) -> Vec<String> {
    match bed.client.nodes().list(path, None, 1000).await {
        Ok((entries, _)) => entries.into_iter().map(|entry| entry.name).collect(),
        Err(error) if matches!(error.kind, NodeErrorKind::NotFound | NodeErrorKind::DataLost) => Vec::new(),
        Err(error) => panic!("{error}"),
    }
}

async fn until_gone(bed: &Bed, what: &str) {
    until_asked(&format!("the directory of a job that {what} goes"), async || names(bed, "/tmp/shuffle").await.is_empty()).await;
}

/// Waits until a job has outputs of its maps in nodes.
async fn until_passed_on(bed: &Bed) {
    let began = Instant::now();
    loop {
        for job in names(bed, "/tmp/shuffle").await {
            if !names(bed, &format!("/tmp/shuffle/{job}")).await.is_empty() {
                return;
            }
        }
        assert!(began.elapsed() < Duration::from_secs(30), "nothing comes to nodes: {:?}", bed.control().jobs().await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tpch_answers_as_one_process_does() {
    let bed = Bed::shuffling(3, MountOptions::default()).await;
    let (here, cluster) = bed.both_with_tpch(0.01).await;
    for (ix, sql) in forebay_tpch::QUERIES.iter().enumerate() {
        assert_eq!(rows(&cluster, sql).await, rows(&here, sql).await, "query {}", ix + 1);
    }
    let jobs = bed.control().jobs().await.unwrap();
    assert_eq!(jobs.len(), forebay_tpch::QUERIES.len(), "all of them ran on the cluster: {jobs:?}");
    assert!(jobs.iter().all(|job| job.state == "done" && job.tasks_again == 0), "{jobs:?}");
    until_gone(&bed, "is done").await;
    assert!(bed.client.nodes().stat("/tmp/shuffle").await.unwrap().is_some(), "something was in nodes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn large_outputs_lie_in_bags_and_small_ones_in_a_table() {
    let bed = Bed::shuffling(2, slow()).await;
    let (here, cluster) = bed.both_with_tpch(0.05).await;
    let sql = "select l_orderkey, l_partkey, count(*) as n from lineitem group by l_orderkey, l_partkey";
    let sum = format!("select sum(n), sum(l_orderkey), sum(l_partkey), count(*) from ({sql})");
    let running = tokio::spawn(async move { rows(&cluster, &sum).await });
    until_passed_on(&bed).await;
    let job = names(&bed, "/tmp/shuffle").await.remove(0);
    let stage = names(&bed, &format!("/tmp/shuffle/{job}")).await.remove(0);
    let stage = format!("/tmp/shuffle/{job}/{stage}");
    let has_bag = async || names(&bed, &stage).await.iter().any(|name| name.parse::<u32>().is_ok());
    until_asked("a reducer has a bag", has_bag).await;
    let found = running.await.unwrap();
    assert_eq!(found, rows(&here, &format!("select sum(n), sum(l_orderkey), sum(l_partkey), count(*) from ({sql})")).await);
    until_gone(&bed, "is done").await;
    let job = bed.control().jobs().await.unwrap().pop().unwrap();
    assert!(job.tasks_again == 0 && job.bytes_passed > 1 << 20, "{job:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_worker_that_dies_with_what_stages_passed_on_changes_no_answer() {
    for victim in [2, 0] {
        let mut bed = Bed::shuffling(3, slow()).await;
        let (here, cluster) = (bed.here(), bed.cluster().await);
        bed.tpch(0.05, &[&cluster]).await;
        let running = tokio::spawn(async move { rows(&cluster, SQL).await });
        until_passed_on(&bed).await;
        drop(bed.test.take_worker(victim));
        let found = tokio::time::timeout(Duration::from_secs(120), running).await.unwrap().unwrap();
        for table in ["lineitem", "orders"] {
            rows(&here, &format!("create view {table} as select * from '/lake/tpch/{table}/*.parquet'")).await;
        }
        assert_eq!(found, rows(&here, SQL).await, "worker {victim}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cancelled_job_leaves_nothing_and_so_does_one_whose_scheduler_died() {
    let bed = Bed::shuffling(2, slow()).await;
    let cluster = std::sync::Arc::new(bed.cluster().await);
    bed.tpch(0.05, &[&cluster]).await;
    let control = bed.control();
    let start = || {
        let cluster = std::sync::Arc::clone(&cluster);
        tokio::spawn(async move { cluster.execute(SQL).await?.collect().await })
    };
    let running = start();
    until_passed_on(&bed).await;
    let job = names(&bed, "/tmp/shuffle").await.remove(0);
    control.cancel(&job).await.unwrap();
    assert!(running.await.unwrap().is_err());
    until_gone(&bed, "was cancelled").await;
    let running = start();
    until_passed_on(&bed).await;
    let bed = bed.without_scheduler();
    until_gone(&bed, "has lost its scheduler").await;
    running.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn files_are_ballistas_own() {
    let bed = Bed::start(2).await;
    let (here, cluster) = bed.both_with_tpch(0.01).await;
    for sql in [SQL, forebay_tpch::QUERIES[8]] {
        assert_eq!(rows(&cluster, sql).await, rows(&here, sql).await, "{sql}");
    }
    assert!(bed.client.nodes().stat("/tmp/shuffle").await.unwrap().is_none(), "nothing was in nodes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn without_room_in_nodes_what_passes_between_stages_goes_to_files() {
    let bed = Bed::shuffling(2, MountOptions::default()).await;
    let (here, cluster) = bed.both_with_tpch(0.05).await;
    let nodes = bed.client.nodes();
    let big = vec![7u8; 4 << 20];
    let mut kept = 0;
    while nodes.put(&format!("/tmp/big-{kept}"), big.clone()).await.is_ok() {
        kept += 1;
        assert!(kept < 1000, "the tiers have room for 512 MiB at most");
    }
    let sql = "select l_orderkey, max(l_comment), count(*) from lineitem group by l_orderkey order by 1 limit 1000";
    let found = rows(&cluster, sql).await;
    assert_eq!(found, rows(&here, sql).await);
}

/// Waits for an output of a map in a file of a reducer's bag.
async fn until_a_file(bed: &Bed) -> String {
    let began = Instant::now();
    loop {
        for job in names(bed, "/tmp/shuffle").await {
            for stage in names(bed, &format!("/tmp/shuffle/{job}")).await {
                let stage = format!("/tmp/shuffle/{job}/{stage}");
                for reducer in names(bed, &stage).await.into_iter().filter(|name| name.parse::<u32>().is_ok()) {
                    if let Some(file) = names(bed, &format!("{stage}/{reducer}")).await.pop() {
                        return format!("{stage}/{reducer}/{file}");
                    }
                }
            }
        }
        assert!(began.elapsed() < Duration::from_secs(30), "no output is large: {:?}", bed.control().jobs().await);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_output_that_lost_its_rows_is_not_taken_for_one_without_any() {
    let bed = Bed::shuffling(2, slow()).await;
    let (here, cluster) = bed.both_with_tpch(0.05).await;
    let sql = "select sum(n), sum(l_orderkey), sum(l_partkey), count(*) from \
               (select l_orderkey, l_partkey, count(*) as n from lineitem group by l_orderkey, l_partkey)";
    let expected = rows(&here, sql).await;
    let mut seen = 0;
    let jobs = loop {
        let cluster = cluster.clone();
        let running = tokio::spawn(async move { rows(&cluster, sql).await });
        let file = until_a_file(&bed).await;
        // As long as its job runs it is there again, with nothing in it.
        let nodes = bed.client.nodes();
        nodes.delete(&file, false).await.unwrap();
        nodes.create(&file, CreateOptions::new(NodeType::File)).await.unwrap();
        let found = tokio::time::timeout(Duration::from_secs(120), running).await.unwrap().unwrap();
        assert_eq!(found, expected);
        let jobs = bed.control().jobs().await.unwrap().split_off(seen);
        if jobs.len() > 1 || jobs[0].tasks_again > 0 {
            break jobs;
        }
        // On a busy machine it may have been read before it was gone.
        seen += jobs.len();
        assert!(seen < 50, "it was noticed: {jobs:?}");
    };
    assert_eq!(jobs.last().unwrap().rows, Some(1), "{jobs:?}");
}
