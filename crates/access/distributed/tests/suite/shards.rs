//! Datasets of shards in queries of a cluster.

use forebay_shard::{Key, KeyMap, Value};
use forebay_shard_store::{Column, ColumnKind, Columns, Store};

use crate::bed::{Bed, rows};

/// Clerks 0 to 299 with a name each, as `/lake/clerks.shards` of three shards.
async fn clerks(bed: &Bed) {
    clerks_by(bed, "clerks", &KeyMap::Hash(3)).await;
}

/// The same under another name, where a map says which shard has which keys.
async fn clerks_by(bed: &Bed, name: &str, map: &KeyMap) {
    let column = |name: &str, kind| Column { name: name.into(), kind };
    let columns = Columns::new(vec![column("id", ColumnKind::Int), column("name", ColumnKind::Text)], "id").unwrap();
    let path = format!("/lake/{name}.shards").parse().unwrap();
    let mut creating = forebay_shards::create(&bed.client, &path, columns.clone(), vec![0.9], false).await.unwrap();
    creating.by(map);
    let folder = tempfile::tempdir().unwrap();
    for shard in 0..map.shards() {
        let part = folder.path().join(shard.to_string());
        let mut building = Store::build(&part, columns.clone(), 0.01).unwrap();
        for id in (0..300u64).filter(|id| map.shard_of(&Key::U64(*id)) == shard) {
            building.push(Key::U64(id), vec![Value::Text(format!("clerk {} {id}", ["a", "b", "c"][id as usize % 3]))]).unwrap();
        }
        building.finish().unwrap();
        creating.push(&part, |_| {}).await.unwrap();
    }
    creating.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_dataset_is_joined_on_the_cluster_and_asked_alone_from_here() {
    let bed = Bed::start(2).await;
    clerks(&bed).await;
    let orders: String = (0..1000).map(|order| format!("{order},{}\n", order % 400)).collect();
    bed.put("orders.csv", format!("id,clerk\n{orders}").as_bytes());
    let (here, cluster) = (bed.here(), bed.cluster().await);
    let (clerks, orders) = ("'/lake/clerks.shards' c", "'/lake/orders.csv' o");
    for (sql, jobs) in [
        (format!("select count(*), min(o.id) from {orders} join {clerks} on o.clerk = c.id where c.name like 'clerk b%'"), 1),
        (format!("select c.name, count(*) as n from {orders} left join {clerks} on o.clerk = c.id group by 1 order by 1, 2"), 1),
        (
            format!(
                "select o.id, c.name from {orders} join {clerks} on o.clerk = c.id where c.id in (7, 299) and c.name ~ '7$' order by 1"
            ),
            1,
        ),
        (format!("select count(*) from (select id from {orders} union all select id from {clerks})"), 0),
        (format!("select name from {clerks} where id = 17"), 0),
        (format!("select count(*) from {clerks} where name like '%c 2%'"), 0),
    ] {
        let before = bed.control().jobs().await.unwrap().len();
        assert_eq!(rows(&cluster, &sql).await, rows(&here, &sql).await, "{sql}");
        assert_eq!(bed.control().jobs().await.unwrap().len() - before, jobs, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn shards_of_ranges_that_are_left_out_lack_no_rows_on_the_cluster() {
    let bed = Bed::start(2).await;
    clerks(&bed).await;
    clerks_by(&bed, "ranged", &KeyMap::Ranges([100, 200].map(Key::U64).into())).await;
    let orders: String = (0..1000).map(|order| format!("{order},{}\n", order % 400)).collect();
    bed.put("orders.csv", format!("id,clerk\n{orders}").as_bytes());
    let (here, cluster) = (bed.here(), bed.cluster().await);
    for condition in [
        "c.id between 90 and 110",
        "c.id >= 250",
        "c.id < 5 or c.id = 299",
        "c.id between 150 and 160 and c.name like '%b%'",
        "c.id in (7, 150, 299)",
        "c.id > 200 and c.id < 200",
    ] {
        let query = |name: &str| {
            format!(
                "select count(*), min(o.id), max(c.name) from '/lake/orders.csv' o join '/lake/{name}.shards' c on o.clerk = c.id where {condition}"
            )
        };
        assert_eq!(rows(&cluster, &query("ranged")).await, rows(&here, &query("clerks")).await, "{condition}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn joins_that_run_here_ask_for_the_keys_of_their_other_side() {
    let bed = Bed::start(1).await;
    clerks(&bed).await;
    let (here, cluster) = (bed.here(), bed.cluster().await);
    let sql = "select c.id, c.name from (values (7), (299), (7), (1000)) as o(clerk) join '/lake/clerks.shards' c on c.id = o.clerk order by 1";
    assert_eq!(rows(&cluster, sql).await, rows(&here, sql).await);
    for engine in [here, cluster] {
        let analyzed = rows(&engine, &format!("explain analyze {sql}")).await.join("\n");
        assert!(analyzed.contains("keys_asked=3") && analyzed.contains("searches=0"), "{analyzed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn joins_that_run_here_tell_files_nothing_where_no_dataset_hears_it() {
    let bed = Bed::start(1).await;
    clerks(&bed).await;
    let (here, cluster) = (bed.here(), bed.cluster().await);
    rows(&here, "copy (select 'clerk a ' || value as who, value from range(0, 2000)) to '/lake/who.parquet'").await;
    // By a column that is no key: the file is the side that is told, if any is.
    let sql = "select count(*) from '/lake/who.parquet' o join '/lake/clerks.shards' c on o.who = c.name";
    let counted = rows(&cluster, sql).await.concat();
    assert_eq!(counted.trim(), "100");
    for (engine, is_told) in [(here, true), (cluster, false)] {
        let analyzed = rows(&engine, &format!("explain analyze {sql}")).await.join("\n");
        assert_eq!(analyzed.contains("DynamicFilter"), is_told, "{analyzed}");
    }
}
