//! How a cluster joins: by hashes, within the memory of its executors, and wide rows in smaller batches.

use crate::bed::{Bed, lines, rows};

/// Of both sides many rows, of which none can be passed to everyone.
const SQL: &str = "select count(*), sum(a.x), min(b.name) from '/lake/a.parquet' a full join '/lake/b.parquet' b on a.x = b.x";

async fn with_tables(memory: u64) -> Bed {
    let bed = Bed::with_memory(2, memory).await;
    for (table, step) in [("a", 1), ("b", 3)] {
        let values =
            format!("select value * {step} as x, repeat('v' || value, 20) as name from generate_series(1, 200000) as t(value)");
        rows(&bed.here(), &format!("copy ({values}) to '/lake/{table}.parquet'")).await;
    }
    bed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cluster_joins_by_hashes_and_sorts_where_it_is_told_to() {
    let bed = with_tables(1 << 30).await;
    let cluster = bed.cluster().await;
    let planned = async || lines(&cluster.execute(&format!("explain {SQL}")).await.unwrap().collect().await.unwrap()).join("\n");
    let plan = planned().await;
    assert!(plan.contains("HashJoinExec") && !plan.contains("SortMergeJoinExec"), "{plan}");
    let answer = rows(&bed.here(), SQL).await;
    assert_eq!(rows(&cluster, SQL).await, answer);
    rows(&cluster, "set datafusion.optimizer.prefer_hash_join = false").await;
    let plan = planned().await;
    assert!(plan.contains("SortMergeJoinExec") && !plan.contains("HashJoinExec"), "{plan}");
    assert_eq!(rows(&cluster, SQL).await, answer);
    assert_eq!(bed.control().jobs().await.unwrap().len(), 2, "both ran on the cluster");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_side_that_does_not_fit_into_memory_is_told_and_takes_no_more_of_it() {
    let bed = with_tables(512 << 10).await;
    let cluster = bed.cluster().await;
    let failed = async { cluster.execute(SQL).await?.collect().await };
    let error = failed.await.unwrap_err();
    let said = error.to_string();
    assert!(said.contains("out of memory") && said.contains("HashJoin"), "{} {said}", error.kind());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_row_that_is_too_wide_for_a_batch_of_an_executor_is_joined_in_smaller_ones() {
    let bed = Bed::with_memory(2, 256 << 20).await;
    let (here, cluster) = (bed.here(), bed.cluster().await);
    rows(&here, "copy (select value as x, repeat('v' || value, 50000) as s from range(0, 3)) to '/lake/wide.parquet'").await;
    rows(&here, "copy (select value % 3 as x, value as y from range(0, 60)) to '/lake/many.parquet'").await;
    let sql = "select count(*), sum(length(w.s || m.y)) from '/lake/wide.parquet' w join '/lake/many.parquet' m on w.x = m.x";
    let mut query = cluster.execute(sql).await.unwrap();
    let answer = lines(&query.collect().await.unwrap());
    assert_eq!(answer, [" 60 6000110 "]);
    assert!(query.notice().is_some_and(|notice| notice.contains("in batches of 1024 rows")), "{:?}", query.notice());
    assert_eq!(bed.control().jobs().await.unwrap().len(), 2, "both attempts ran on the cluster");
}
