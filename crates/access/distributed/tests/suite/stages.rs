//! Plans that are cut into stages answer as they do whole.

use forebay_client::StorageClass;
use forebay_distributed::Shuffle;
use forebay_types::MountOptions;

use crate::bed::{Bed, rows};

/// A table of one file and one of several, with keys in common and without.
async fn tables() -> Bed {
    tables_in(Bed::shuffling(2, MountOptions::default()).await).await
}

async fn tables_in(bed: Bed) -> Bed {
    let here = bed.here();
    rows(&here, "copy (select value as id, value % 7 as k from generate_series(1, 40) as t(value)) to '/lake/one.parquet'").await;
    for part in 0..3 {
        let select =
            format!("select value as id, value % 5 as k from generate_series({0}, {0} + 19) as t(value)", part * 20 + 30);
        rows(&here, &format!("copy ({select}) to '/lake/many/{part}.parquet'")).await;
        rows(&here, &format!("copy ({select}) to '/lake/zipped/{part}.csv.gz'")).await;
    }
    bed
}

/// Asks one process and the cluster, which runs it as a job.
async fn same(bed: &Bed, queries: &[&str]) {
    let (here, cluster) = (bed.here(), bed.cluster().await);
    for sql in queries {
        let jobs = bed.control().jobs().await.unwrap().len();
        assert_eq!(rows(&cluster, sql).await, rows(&here, sql).await, "{sql}");
        assert_eq!(bed.control().jobs().await.unwrap().len(), jobs + 1, "on the cluster: {sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_row_is_missing_above_a_join_that_can_not_be_passed_to_everyone() {
    let bed = tables().await;
    let mut queries = Vec::new();
    for kind in ["full", "left", "right", "left semi", "left anti"] {
        for (left, right) in [("one.parquet", "many/"), ("many/", "one.parquet")] {
            let join = format!("select a.id as x from '/lake/{left}' a {kind} join '/lake/{right}' b on a.id = b.id");
            queries.push(format!("{join} order by x"));
            queries.push(format!("select count(*), sum(x) from ({join}) cross join (select 1 as one from '/lake/one.parquet')"));
        }
    }
    same(&bed, &queries.iter().map(String::as_str).collect::<Vec<_>>()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_join_without_a_key_tells_once_of_each_row() {
    let bed = tables().await;
    let (one, many) = ("'/lake/one.parquet'", "'/lake/many/'");
    let mut queries = Vec::new();
    for kind in ["full", "left", "right"] {
        for (left, right) in [(one, many), (many, one)] {
            queries.push(format!("select a.id as x, b.id as y from {left} a {kind} join {right} b on a.id > b.id + 5"));
        }
    }
    for word in ["exists", "not exists"] {
        queries.push(format!("select id from {one} a where {word} (select 1 from {many} b where a.id > b.id + 5)"));
        queries.push(format!("select id from {many} a where {word} (select 1 from {one} b where a.id < b.id - 5)"));
    }
    // Where something is above, which Ballista plans anew.
    let above: Vec<String> = queries.iter().map(|query| format!("select count(*) from ({query})")).collect();
    queries.extend(above);
    same(&bed, &queries.iter().map(String::as_str).collect::<Vec<_>>()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_order_from_before_an_exchange_is_made_again_behind_it() {
    let bed = tables().await;
    let joined = "(select false as c, k, id from '/lake/one.parquet' a left semi join '/lake/many/' b on a.id = b.id)";
    same(
        &bed,
        &[
            "select id, count(*) over (partition by k order by id), cume_dist() over (order by k desc, id desc) from '/lake/many/'",
            &format!("select id, lag(id) over (partition by k, c order by id) from {joined}"),
            &format!("select id, row_number() over (partition by c order by k, id) from {joined}"),
            "select k, array_agg(id order by id) from '/lake/zipped/' group by k",
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rows_without_columns_are_passed_on() {
    let bed = tables().await;
    same(
        &bed,
        &[
            "select b.id from '/lake/many/' a cross join '/lake/one.parquet' b",
            "select b.id, count(*) from '/lake/zipped/' a cross join '/lake/many/' b group by b.id",
            "select count(*) from (select distinct k from '/lake/many/') a cross join '/lake/one.parquet' b",
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_null_decides_for_all_rows_in_whichever_file_it_is() {
    let bed = tables().await;
    rows(&bed.here(), "copy (select cast(null as bigint) as id, 1 as k) to '/lake/many/9.parquet'").await;
    let mut queries = Vec::new();
    for inner in ["id from '/lake/many/'", "id from '/lake/many/' where id is not null", "id from '/lake/many/' where id < 0"] {
        queries.push(format!("select count(*), max(k) from '/lake/one.parquet' where id not in (select {inner})"));
        queries.push(format!("select k, count(*) from '/lake/one.parquet' where id not in (select {inner}) group by k"));
        queries.push(format!("select id from '/lake/one.parquet' where id not in (select {inner})"));
    }
    same(&bed, &queries.iter().map(String::as_str).collect::<Vec<_>>()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_part_of_a_union_without_rows_ends() {
    let bed = tables().await;
    // One task reads the first part, the other one the second, which is sorted before.
    let nothing = "select a.k as k from '/lake/one.parquet' a cross join (select 1 where false) b group by a.k";
    same(
        &bed,
        &[
            &format!("({nothing}) union all (select id from '/lake/one.parquet' where k = 3) order by 1"),
            &format!("({nothing}) union all (select id from '/lake/many/' where k = 9) order by 1"),
            "(select 1 as k) union all (select id from '/lake/one.parquet' where k = 3) order by 1",
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_condition_that_is_never_true_holds_beside_a_not_in() {
    let bed = tables().await;
    let (here, cluster) = (bed.here(), bed.cluster().await);
    for other in ["'/lake/one.parquet'", "'/lake/zipped/'"] {
        let select =
            format!("select id from '/lake/many/' where id > cast(null as bigint) and k not in (select id from {other})");
        // Whether there is anything left to run on the cluster is the engine's to say.
        assert_eq!(rows(&here, &select).await, Vec::<String>::new());
        assert_eq!(rows(&cluster, &select).await, Vec::<String>::new(), "{select}");
    }
    same(&bed, &["select id from '/lake/many/' where id > 40 and k not in (select id from '/lake/one.parquet' where id > 2)"])
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_limit_holds_below_an_exchange() {
    let bed = tables().await;
    let mut queries = Vec::new();
    for order in ["order by id desc", "order by k, id", "order by c, id desc", "order by k, c, id"] {
        let first = format!("(select one as c, id, k from '/lake/many/' cross join (select 1 as one) {order} limit 3)");
        queries.push(format!("select k, count(*), min(id), max(id) from {first} group by k"));
        queries.push(format!("select a.id from {first} a join '/lake/zipped/' b on a.id = b.id where a.k is not null"));
        queries.push(format!("select a.id from {first} a left anti join '/lake/zipped/' b on a.id = b.k where a.k > -1"));
    }
    queries.push("select n, count(*) from (select 1 as n from '/lake/many/' limit 3) where n > 0 group by n".to_string());
    same(&bed, &queries.iter().map(String::as_str).collect::<Vec<_>>()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_join_by_a_key_that_a_condition_makes_constant_is_spread_by_it() {
    let bed = tables().await;
    let mut queries = Vec::new();
    for kind in ["left", "inner", "right", "full"] {
        let pairs =
            format!("(select a.id as i, b.id as j, b.k from '/lake/one.parquet' a {kind} join '/lake/zipped/' b on a.id = b.id)");
        queries
            .push(format!("select d.j, count(*) from '/lake/many/' m left join {pairs} d on m.k = d.j and d.i = 0 group by d.j"));
        queries.push(format!("select m.id, d.i from '/lake/many/' m {kind} join {pairs} d on m.k = d.j where d.i = 0"));
        queries.push(format!("select d.j, count(*), max(d.k) from {pairs} d where d.i = 1 group by d.j"));
    }
    same(&bed, &queries.iter().map(String::as_str).collect::<Vec<_>>()).await;
}

/// The tasks of all jobs.
async fn tasks(bed: &Bed) -> u64 {
    bed.control().jobs().await.unwrap().iter().map(|job| job.tasks).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn small_partitions_that_go_together_answer_as_they_do_apart() {
    let (one, many) = ("'/lake/one.parquet'", "'/lake/many/'");
    let mut queries = Vec::new();
    for kind in ["full", "left", "right", "left semi", "left anti"] {
        let join = format!("select a.id as x from {one} a {kind} join {many} b on a.id = b.id");
        queries.push(format!("{join} order by x"));
        queries.push(format!("select x % 3, count(*) from ({join}) group by x % 3"));
        queries.push(format!("select x, count(*) from ({join} union all select k from {many}) group by x"));
        queries.push(format!("select x from ({join}) cross join (select max(k) as most from {many}) where x % 5 = most"));
    }
    queries.push(format!("select k, count(*) from {many} where id not in (select id from {one}) group by k"));
    let first = format!("(select k, id from {many} order by id limit 7)");
    queries.push(format!("select a.k, count(*) from {first} a join {one} b on a.k = b.k group by a.k"));
    queries.push(format!("select id, rank() over (partition by k order by id), sum(id) over (order by id) from {many}"));
    let either = format!("(select k, count(*) as x from {one} group by k union select k, id from {many})");
    queries.push(format!("select k, x from {either} order by x, k limit 9"));
    let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
    let nodes = Shuffle::Nodes(StorageClass::Dram);
    let mut counts = Vec::new();
    for (shuffle, task_bytes) in [(nodes, 0), (nodes, 16 << 10), (nodes, 64 << 20), (Shuffle::Files, 16 << 10)] {
        let bed = tables_in(Bed::merging(2, MountOptions::default(), shuffle, task_bytes).await).await;
        same(&bed, &queries).await;
        counts.push(tasks(&bed).await);
        assert!(bed.control().jobs().await.unwrap().iter().all(|job| job.state == "done"));
    }
    assert!(counts[1] < counts[0] && counts[2] <= counts[1] && counts[3] < counts[0], "{counts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tpch_answers_where_small_partitions_go_together() {
    let bed = Bed::merging(3, MountOptions::default(), Shuffle::Nodes(StorageClass::Dram), 32 << 10).await;
    let (here, cluster) = bed.both_with_tpch(0.01).await;
    for (ix, sql) in forebay_tpch::QUERIES.iter().enumerate() {
        assert_eq!(rows(&cluster, sql).await, rows(&here, sql).await, "query {}", ix + 1);
    }
    let jobs = bed.control().jobs().await.unwrap();
    assert_eq!(jobs.len(), forebay_tpch::QUERIES.len(), "all of them ran on the cluster: {jobs:?}");
}
