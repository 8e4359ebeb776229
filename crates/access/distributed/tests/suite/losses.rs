use std::time::Duration;

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
    for _ in 0..600 {
        let jobs = control.jobs().await.unwrap();
        if jobs.iter().any(|job| job.state == "running" && job.tasks_done >= job_tasks) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no job came so far: {:?}", control.jobs().await);
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
    drop(bed.workers[1].take());
    let found = tokio::time::timeout(Duration::from_secs(120), running).await.unwrap().unwrap();
    for table in ["lineitem", "orders"] {
        rows(&here, &format!("create view {table} as select * from '/lake/tpch/{table}/*.parquet'")).await;
    }
    assert_eq!(found, rows(&here, SQL).await);
}
