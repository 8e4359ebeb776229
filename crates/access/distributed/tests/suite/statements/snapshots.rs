//! A query on the cluster reads one version of a file that is overwritten under it.

use std::time::Duration;

use crate::bed::{Bed, rows};

/// A file that is overwritten between planning and the tasks: the query answers with the old rows or with the new ones,
/// never with some of each, and never with an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_tasks_read_one_version() {
    let bed = Bed::start(2).await;
    let cluster = bed.cluster().await;
    let (old, new) = (lines("1", 40_000), lines("2", 40_000));
    for round in 0..6 {
        bed.put("t.csv", old.as_bytes());
        let mut query = cluster.execute("select sum(x) from '/lake/t.csv'").await.unwrap();
        tokio::time::sleep(Duration::from_millis(round * 20)).await;
        bed.put("t.csv", new.as_bytes());
        let sum = crate::bed::lines(&query.collect().await.unwrap());
        assert!(sum == [" 40000 "] || sum == [" 80000 "], "round {round}: {sum:?}");
        assert_eq!(rows(&cluster, "select sum(x) from '/lake/t.csv'").await, [" 80000 "]);
    }
}

fn lines(value: &str, count: usize) -> String {
    std::iter::once("x").chain(std::iter::repeat_n(value, count)).map(|line| format!("{line}\n")).collect()
}
