//! Executors and workers that die in the middle of a query cost time, and no answer.

use std::time::Duration;

use forebay_client::StorageClass;
use forebay_distributed::Shuffle;
use forebay_testbed::until_asked;
use forebay_types::{BitRate, MountOptions};

use crate::bed::{Bed, rows};

const SQL: &str =
    "select l_shipmode, count(*), sum(l_quantity) from lineitem, orders where l_orderkey = o_orderkey group by l_shipmode";

/// One stage that reads, one that brings together.
const SCAN: &str = "select l_shipmode, count(*), sum(l_quantity), max(l_comment) from lineitem group by l_shipmode";

/// A bound that makes the job last for some seconds.
pub fn slow(rate: &str) -> MountOptions {
    MountOptions { bandwidth: Some(rate.parse::<BitRate>().unwrap()), ..Default::default() }
}

async fn after(job_tasks: u64, bed: &Bed) {
    let control = bed.control();
    until_asked("a job comes so far", async || {
        control.jobs().await.unwrap().iter().any(|job| job.state == "running" && job.tasks_done >= job_tasks)
    })
    .await;
}

/// Waits until an executor reads: which one, and how many tasks it has and had.
pub async fn reading(bed: &Bed) -> (usize, u64) {
    let control = bed.control();
    let workers: Vec<String> = bed.test.node.workers.iter().map(|worker| worker.id().to_string()).collect();
    for _ in 0..3000 {
        let tasks = control.tasks().await.unwrap();
        if let Some(running) = tasks.iter().find(|task| task.state == "running" && task.bytes > 0) {
            let beside = workers.iter().position(|worker| *worker == running.worker).expect("one of the bed's");
            return (beside, tasks.iter().filter(|task| task.worker == running.worker).count() as u64);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no task reads: {:?}", control.jobs().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_executor_that_dies_costs_its_tasks_only() {
    // Tasks begin before their input is there, so that each runs for long.
    let mut bed = Bed::with(3, slow("8Mbit"), false).await;
    let (here, cluster) = (bed.here(), bed.cluster().await);
    bed.tpch(0.05, &[&cluster]).await;
    let running = tokio::spawn(async move { rows(&cluster, SCAN).await });
    let (victim, had) = reading(&bed).await;
    drop(bed.executors[victim].take());
    let found = tokio::time::timeout(Duration::from_secs(120), running).await.unwrap().unwrap();
    let (jobs, tasks) = (bed.control().jobs().await.unwrap(), bed.control().tasks().await.unwrap());
    assert_eq!(jobs.len(), 1, "the stage was not over: what others had done stays done: {jobs:?}");
    let again = (jobs[0].tasks_done + jobs[0].tasks_again).saturating_sub(jobs[0].tasks);
    // Its two slots may have taken two more before it was gone.
    assert!((1..=had + 2).contains(&again), "{again} tasks ran again of an executor with {had}: {jobs:?} {tasks:?}");
    assert!(again < jobs[0].tasks, "{jobs:?}");
    rows(&here, "create view lineitem as select * from '/lake/tpch/lineitem/*.parquet'").await;
    assert_eq!(found, rows(&here, SCAN).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_worker_that_dies_costs_its_bytes_only() {
    let mut bed = Bed::with(3, slow("40Mbit"), true).await;
    let (here, cluster) = (bed.here(), bed.cluster().await);
    bed.tpch(0.05, &[&cluster]).await;
    bed.test.s3.reset_counters();
    let running = tokio::spawn(async move { rows(&cluster, SQL).await });
    after(1, &bed).await;
    let lost = bed.test.take_worker(1);
    let (name, held) = (lost.id().to_string(), lost.report().dram.1);
    drop(lost);
    let found = tokio::time::timeout(Duration::from_secs(120), running).await.unwrap().unwrap();
    let fetched = bed.test.s3.counters().bytes_out;
    let (jobs, tasks) = (bed.control().jobs().await.unwrap(), bed.control().tasks().await.unwrap());
    let read = jobs.last().unwrap().bytes;
    // What it held, and what was brought, or read past it, for the tasks that were sent to its side, may be fetched once more.
    let its = held + tasks.iter().filter(|task| task.worker == name).map(|task| task.bytes).sum::<u64>();
    assert!(fetched < read + read / 10 + (1 << 20) + its, "fetched {fetched} of {read}, with {its} of the lost one: {tasks:?}");
    for table in ["lineitem", "orders"] {
        rows(&here, &format!("create view {table} as select * from '/lake/tpch/{table}/*.parquet'")).await;
    }
    assert_eq!(found, rows(&here, SQL).await);
}

/// Makes so many rows of a join that the stage with it lasts for some seconds, and tells each row.
const JOIN: &str = "select count(*), sum(a.l_linenumber), sum(b.l_linenumber) from lineitem a, lineitem b \
                    where a.l_suppkey = b.l_suppkey";

async fn loses_an_executor(mut bed: Bed, tasks: u64) {
    let (here, cluster) = bed.both_with_tpch(0.05).await;
    let running = tokio::spawn(async move { rows(&cluster, JOIN).await });
    after(tasks, &bed).await;
    drop(bed.executors[1].take());
    let found = tokio::time::timeout(Duration::from_secs(300), running).await.unwrap().unwrap();
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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_executor_that_dies_with_partitions_that_went_together_changes_no_answer() {
    for tasks in [1, 3] {
        let merging = |shuffle| Bed::merging(3, MountOptions::default(), shuffle, 2 << 20);
        let in_nodes = loses_an_executor(merging(Shuffle::Nodes(StorageClass::Dram)).await, tasks);
        let in_files = loses_an_executor(merging(Shuffle::Files).await, tasks);
        futures::future::join(in_nodes, in_files).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_passed_on_in_nodes_outlives_who_wrote_it() {
    let mut bed = Bed::shuffling(3, MountOptions::default()).await;
    let (here, cluster) = (bed.here(), bed.cluster().await);
    bed.tpch(0.05, &[&here, &cluster]).await;
    let running = tokio::spawn(async move { rows(&cluster, JOIN).await });
    // All that the join reads is passed on, and some of it by each executor.
    after(6, &bed).await;
    drop(bed.executors[1].take());
    let found = tokio::time::timeout(Duration::from_secs(120), running).await.unwrap().unwrap();
    let jobs = bed.control().jobs().await.unwrap();
    assert_eq!(found, rows(&here, JOIN).await);
    assert_eq!(jobs.len(), 1, "the query does not run again: {jobs:?}");
    assert!(jobs[0].tasks_again <= 2, "what ran in its two slots does: {jobs:?}");
}
