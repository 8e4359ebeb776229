//! Executors and workers that die in the middle of a query cost time, and no answer.

use std::time::Duration;

use forebay_testbed::until_asked;
use forebay_types::{BitRate, MountOptions};

use crate::bed::{Bed, rows};

const SQL: &str =
    "select l_shipmode, count(*), sum(l_quantity) from lineitem, orders where l_orderkey = o_orderkey group by l_shipmode";

/// A bound that makes the job last for some seconds.
fn slow() -> MountOptions {
    MountOptions { bandwidth: Some("40Mbit".parse::<BitRate>().unwrap()), ..Default::default() }
}

async fn after(job_tasks: u64, bed: &Bed) {
    let control = bed.control();
    until_asked("a job comes so far", async || {
        control.jobs().await.unwrap().iter().any(|job| job.state == "running" && job.tasks_done >= job_tasks)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_executor_that_dies_costs_its_tasks_only() {
    let mut bed = Bed::with(3, slow(), true).await;
    let (here, cluster) = (bed.here(), bed.cluster().await);
    bed.tpch(0.05, &[&cluster]).await;
    let running = tokio::spawn(async move { rows(&cluster, SQL).await });
    after(2, &bed).await;
    drop(bed.executors[1].take());
    let found = tokio::time::timeout(Duration::from_secs(120), running).await.unwrap().unwrap();
    for table in ["lineitem", "orders"] {
        rows(&here, &format!("create view {table} as select * from '/lake/tpch/{table}/*.parquet'")).await;
    }
    assert_eq!(found, rows(&here, SQL).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_worker_that_dies_costs_its_bytes_only() {
    let mut bed = Bed::with(3, slow(), true).await;
    let (here, cluster) = (bed.here(), bed.cluster().await);
    bed.tpch(0.05, &[&cluster]).await;
    let running = tokio::spawn(async move { rows(&cluster, SQL).await });
    after(1, &bed).await;
    drop(bed.test.take_worker(1));
    let found = tokio::time::timeout(Duration::from_secs(120), running).await.unwrap().unwrap();
    for table in ["lineitem", "orders"] {
        rows(&here, &format!("create view {table} as select * from '/lake/tpch/{table}/*.parquet'")).await;
    }
    assert_eq!(found, rows(&here, SQL).await);
}

/// Makes so many rows of a join that the stage with it lasts for some seconds, and tells each row.
const JOIN: &str = "select count(*), sum(a.l_linenumber), sum(b.l_linenumber) from lineitem a, lineitem b \
                    where a.l_suppkey = b.l_suppkey";

async fn loses_an_executor(mut bed: Bed, tasks: u64) {
    let (here, cluster) = (bed.here(), bed.cluster().await);
    bed.tpch(0.05, &[&here, &cluster]).await;
    let running = tokio::spawn(async move { rows(&cluster, JOIN).await });
    after(tasks, &bed).await;
    drop(bed.executors[1].take());
    let found = tokio::time::timeout(Duration::from_secs(120), running).await.unwrap().unwrap();
    let jobs = bed.control().jobs().await.unwrap();
    assert_eq!(found, rows(&here, JOIN).await, "lost after {tasks} tasks: {jobs:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_executor_that_dies_when_stages_are_done_changes_no_answer() {
    // Among the scans, between them, and when all that the join reads is passed on.
    for tasks in [1, 3, 6] {
        let in_nodes = loses_an_executor(Bed::shuffling(3, MountOptions::default()).await, tasks);
        let in_files = loses_an_executor(Bed::with(3, MountOptions::default(), true).await, tasks);
        futures::future::join(in_nodes, in_files).await;
    }
}
