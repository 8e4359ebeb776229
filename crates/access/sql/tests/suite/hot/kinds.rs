//! Decoded columns beside columns that stay raw, and of files of one table that came to have other columns: the same answers.

use forebay_sql::{Engine, EngineSettings};

use crate::cluster::Cluster;
use crate::hot::{counted, heat_until};
use crate::support::{Lake, rows, settings};

const DECODED: &str = "row_groups_decoded=";

/// Copies what a statement gives to a file of the cluster, in row groups of 10,000 rows.
async fn put(cluster: &Cluster, name: &str, select: &str) {
    let lake = Lake::new();
    lake.rows("set datafusion.execution.parquet.max_row_group_size = 10000").await;
    lake.rows(&format!("copy ({select}) to '/lake/{name}'")).await;
    cluster.put(name, &lake.store_bytes(name).await);
}

/// An engine that reads decoded columns, and one that does not.
fn both(cluster: &Cluster) -> [Engine; 2] {
    let raw = EngineSettings { hot_form: false, ..settings() };
    [cluster.engine(), Engine::over_client(cluster.client.clone(), raw)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn times_with_a_zone_are_decoded_and_dictionaries_and_nested_columns_are_what_the_file_has() {
    let cluster = Cluster::hot().await;
    let select = "value as id, arrow_cast(value * 1000000, 'Timestamp(Microsecond, Some(\"+02:00\"))') as at, \
                  arrow_cast(value, 'Timestamp(Millisecond, None)') as noted, \
                  arrow_cast(concat('kind ', value % 3), 'Dictionary(Int32, Utf8)') as kind, \
                  named_struct('a', value, 'b', concat('x ', value % 4)) as pair, make_array(value, value + 1) as list";
    put(&cluster, "k.parquet", &format!("select {select} from generate_series(1, 30000) as t(value)")).await;
    let [hot, raw] = both(&cluster);
    let times = "select count(*), sum(id), min(at), max(at), max(noted), arrow_typeof(max(at)) from '/lake/k.parquet'";
    heat_until(&hot, times, DECODED, 3).await;
    let nested = "select sum(pair['a']), count(distinct pair['b']), max(list[2]) from '/lake/k.parquet'";
    for sql in [
        times,
        nested,
        "select id, at, noted from '/lake/k.parquet' where id % 1000 = 1 order by at desc",
        "select count(*), min(id) from '/lake/k.parquet' \
         where at >= arrow_cast(29990000000, 'Timestamp(Microsecond, Some(\"+02:00\"))')",
        "select kind, count(*), min(at) from '/lake/k.parquet' group by kind order by kind",
        "select id, kind, pair, list, at from '/lake/k.parquet' where id % 10000 = 7 order by id",
        "select arrow_typeof(kind), arrow_typeof(at), arrow_typeof(pair), arrow_typeof(list) from '/lake/k.parquet' limit 1",
    ] {
        // Once more, when a worker has been asked for these columns.
        for _ in 0..2 {
            assert_eq!(rows(&hot, sql).await, rows(&raw, sql).await, "{sql}");
        }
    }
    assert_eq!(counted(&hot, times, DECODED).await, 3);
    assert_eq!(counted(&hot, nested, DECODED).await, 0, "nested columns stay raw");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn files_that_came_to_have_other_columns_and_types_are_one_table() {
    let cluster = Cluster::hot().await;
    let of = |id: &str, more: &str, from: usize| {
        let to = from + 9_999;
        format!("select {id} as id, concat('a name ', value % 10) as name{more} from generate_series({from}, {to}) as t(value)")
    };
    put(&cluster, "e/a.parquet", &of("arrow_cast(value, 'Int32')", "", 1)).await;
    put(&cluster, "e/b.parquet", &of("value * 1000000000", ", value / 4.0 as more", 10_001)).await;
    let table = "create external table e (id bigint, name varchar, more double) stored as parquet location '/lake/e/'";
    rows(&cluster.engine(), table).await;
    let [hot, raw] = both(&cluster);
    for file in ["a", "b"] {
        heat_until(&hot, &format!("select sum(id), max(name) from '/lake/e/{file}.parquet'"), DECODED, 1).await;
    }
    for sql in [
        "select count(*), sum(id), min(name), count(more), sum(more) from e",
        "select id, name, more from e where id % 997 = 3 order by id",
        "select name, count(more), max(id) from e group by name order by name",
        "select count(*) from e where more is null and id > 5000",
    ] {
        for _ in 0..2 {
            assert_eq!(rows(&hot, sql).await, rows(&raw, sql).await, "{sql}");
        }
    }
}
