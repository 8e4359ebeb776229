//! Tasks that run twice at the same time: of their rows each counts once, and who dies meanwhile costs nothing.

use std::time::Duration;

use forebay_client::StorageClass;
use forebay_distributed::{CopyRules, Shuffle};
use forebay_testbed::until_asked;

use crate::bed::{Bed, rows};
use crate::losses::slow;

/// Passes on by keys, joins, groups and brings together.
const JOIN: &str = "select l_shipmode, count(*), sum(l_quantity), max(l_comment) from lineitem, orders \
                    where l_orderkey = o_orderkey group by l_shipmode";
/// Its last stage has many tasks, whose results are read by who asked.
const ROWS: &str = "select l_orderkey, l_linenumber, l_comment from lineitem where l_orderkey % 7 = 0";

/// All that run are late when half of their stage is done, and each slot may have a copy.
const EAGER: CopyRules = CopyRules { times: 0.0, least: Duration::ZERO, slots_per_copy: 1 };

async fn bed(shuffle: Shuffle) -> Bed {
    Bed::copying(3, slow("16Mbit"), shuffle, EAGER).await
}

async fn copied(bed: &Bed) -> u64 {
    bed.control().jobs().await.unwrap().iter().map(|job| job.tasks_copied).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_row_of_tasks_that_run_twice_counts_once() {
    for shuffle in [Shuffle::Nodes(StorageClass::Dram), Shuffle::Files] {
        let bed = bed(shuffle).await;
        let (here, cluster) = (bed.here(), bed.cluster().await);
        bed.tpch(0.05, &[&here, &cluster]).await;
        for sql in [JOIN, ROWS] {
            assert_eq!(rows(&cluster, sql).await, rows(&here, sql).await, "{shuffle:?}: {sql}");
        }
        let jobs = bed.control().jobs().await.unwrap();
        assert!(jobs.iter().all(|job| job.state == "done" && job.tasks_done == job.tasks && job.tasks_again == 0), "{jobs:?}");
        assert!(copied(&bed).await > 0, "{jobs:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_executor_that_dies_while_tasks_run_twice_changes_no_answer() {
    for victim in 0..2 {
        let mut bed = bed(Shuffle::Nodes(StorageClass::Dram)).await;
        let (here, cluster) = (bed.here(), bed.cluster().await);
        bed.tpch(0.05, &[&here, &cluster]).await;
        let running = tokio::spawn(async move { rows(&cluster, JOIN).await });
        until_asked("a task runs twice", async || copied(&bed).await > 0).await;
        drop(bed.executors[victim].take());
        let found = tokio::time::timeout(Duration::from_secs(120), running).await.unwrap().unwrap();
        assert_eq!(found, rows(&here, JOIN).await, "{:?}", bed.control().jobs().await.unwrap());
    }
}
