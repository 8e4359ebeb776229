//! Joins with datasets of shards: these are asked for the keys that the other side has, and answer as files do.

use std::collections::BTreeSet;

use forebay_shard::{Key, KeyMap, Value};
use forebay_shard_store::{Column, ColumnKind, Columns, Store};
use forebay_shards::create;
use forebay_sql::Engine;

use super::{ROWS, SHARDS, lake};
use crate::cluster::Cluster;
use crate::support::rows;

/// The other side: nulls, one key twice, and one that is not there.
const S: &str = "(values (7), (7), (-600), (99999), (null)) as s(k)";

/// What the scans of a statement asked: calls by keys, keys, and searches.
async fn asked(engine: &Engine, sql: &str) -> [usize; 3] {
    let analyzed = rows(engine, &format!("explain analyze {sql}")).await;
    ["multi_gets=", "keys_asked=", "searches="].map(|name| {
        let counts = analyzed.split(name).skip(1).filter_map(|rest| rest.split([',', ']']).next()?.trim().parse::<usize>().ok());
        counts.sum()
    })
}

/// The shards that have some of these keys.
fn shards_of(keys: &[i64]) -> usize {
    keys.iter().map(|key| KeyMap::Hash(SHARDS).shard_of(&Key::U64(*key as u64))).collect::<BTreeSet<_>>().len()
}

async fn same_as_of_a_file(engine: &Engine, query: &str) {
    let of = |table: &str| format!("select * from ({}) order by 1", query.replace('T', table));
    let (shards, file) = (of("'/lake/t.shards'"), of("'/lake/t.parquet'"));
    assert_eq!(rows(engine, &shards).await, rows(engine, &file).await, "{query}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn joins_ask_for_the_keys_of_their_other_side() {
    let (_cluster, engine) = lake().await;
    let all: &[i64] = &[7, -600, 99_999];
    let ints = "(select arrow_cast(column1, 'Int32') as k from (values (7), (8), (null))) as s";
    let without_sign = "(select arrow_cast(column1, 'UInt64') as k from (values (7), (8), (8))) as s";
    for (query, keys) in [
        (format!("select s.k, t.id, t.note from {S} join T t on t.id = s.k"), all),
        (format!("select t.* from T t join {S} on t.id = s.k"), all),
        (format!("select t.id, t.price from {ints} join T t on t.id = s.k"), &[7, 8][..]),
        (format!("select t.id, t.price from {without_sign} join T t on t.id = s.k"), &[7, 8][..]),
        (format!("select id, price from T where id in (select k from {S})"), all),
        (format!("select id from T t where exists (select 1 from {S} where s.k = t.id and s.k > 0)"), &[7, 99_999][..]),
        (format!("select s.k, t.note from {S} left join T t on t.id = s.k"), all),
        (format!("select s.k from {S} where not exists (select 1 from T t where t.id = s.k)"), all),
        (format!("select t.id from {S} join T t on t.id = s.k where t.part = 2"), all),
        (format!("select t.id, t.note from {S} join T t on t.id = s.k where t.weight > 50"), all),
        (format!("select t.id from {S} join T t on t.id = s.k where t.id in (7, 8, 9, 10, 11, 12, 13)"), &[7][..]),
    ] {
        same_as_of_a_file(&engine, &query).await;
        let shards = query.replace('T', "'/lake/t.shards'");
        let plan = rows(&engine, &format!("explain {shards}")).await;
        assert!(plan.contains("or by id where what runs above names few"), "{query}: {plan}");
        assert_eq!(asked(&engine, &shards).await, [shards_of(keys), keys.len(), 0], "{query}: {plan}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn joins_that_want_other_rows_read_all() {
    let (_cluster, engine) = lake().await;
    for query in [
        format!("select count(*) from T t where not exists (select 1 from {S} where s.k = t.id)"),
        format!("select count(*) from T where id not in (select k from {S} where k is not null)"),
        format!("select count(*) from T where id not in (select k from {S})"),
        format!("select count(*), count(s.k), count(t.id) from {S} full join T t on t.id = s.k"),
        format!("select t.id, s.k from T t left join {S} on t.id = s.k"),
        format!("select t.id from {S} join T t on t.id = s.k and t.part = s.k - 5"),
        // Of numbers with a point several keys may be the same one.
        "select t.id from (values (7.0e0), (8.5e0)) as s(k) join T t on t.id = s.k".to_string(),
    ] {
        same_as_of_a_file(&engine, &query).await;
        let [multi_gets, keys, searches] = asked(&engine, &query.replace('T', "'/lake/t.shards'")).await;
        assert!((multi_gets, keys) == (0, 0) && searches >= SHARDS, "{query}: {searches} searches");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn joins_of_other_kinds_answer_as_of_files_however_they_ask() {
    let (_cluster, engine) = lake().await;
    for query in [
        format!("select s.k from {S} where s.k not in (select id from T)"),
        format!("select s.k from {S} where s.k = 99999 or exists (select 1 from T t where t.id = s.k)"),
        format!("select t.id, s.k from {S} right join T t on t.id = s.k where t.id < 20 and t.id > 0"),
        format!("select t.id from {S} join T t on t.id = s.k or (t.id = 8 and s.k = 7)"),
        format!("select t.id, t.note from {S} join T t on t.id = s.k order by t.id limit 2"),
        "select count(*), sum(b.id) from T b join T a on a.id = b.part".to_string(),
        "select a.id, b.note from T b join T a on a.id = b.id and b.name = a.name where b.part = 3".to_string(),
    ] {
        same_as_of_a_file(&engine, &query).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn keys_that_are_none_few_or_too_many() {
    let (cluster, engine) = lake().await;
    // The side that is named first stays the one that a table is made of.
    rows(&engine, "set datafusion.optimizer.join_reordering = false").await;
    let many = "(select id as k from '/lake/t.parquet' where id between 0 and 900) as s";
    let plain = format!("select t.id, t.note from {many} join T t on t.id = s.k");
    same_as_of_a_file(&engine, &plain).await;
    let of_shards = |query: &str| query.replace('T', "'/lake/t.shards'");
    assert_eq!(asked(&engine, &of_shards(&plain)).await, [SHARDS, 901, 0], "a scan would read more");

    // A search is presumed to find fewer.
    let search = format!("{plain} where t.note like '%summer%'");
    same_as_of_a_file(&engine, &search).await;
    let [multi_gets, keys, searches] = asked(&engine, &of_shards(&search)).await;
    assert!((multi_gets, keys) == (0, 0) && searches >= SHARDS, "{searches} searches");

    let none = "select t.id from (select id as k from '/lake/t.parquet' where part = 77) as s join T t on t.id = s.k";
    same_as_of_a_file(&engine, none).await;
    assert_eq!(asked(&engine, &of_shards(none)).await, [0; 3], "there is nothing to ask");

    // Joins hand down no more values than a session says, and without a filter none.
    for setting in ["hash_join_inlist_pushdown_max_distinct_values = 2", "enable_join_dynamic_filter_pushdown = false"] {
        let engine = cluster.engine();
        rows(&engine, &format!("set datafusion.optimizer.{setting}")).await;
        let query = format!("select t.id, t.note from {S} join T t on t.id = s.k");
        same_as_of_a_file(&engine, &query).await;
        let [_, keys, searches] = asked(&engine, &of_shards(&query)).await;
        assert!(keys == 0 && searches >= SHARDS, "{setting}: {keys} keys, {searches} searches");
    }
}

/// The clerks of the rows by their name, as `/lake/clerks.shards`.
async fn clerks(cluster: &Cluster) {
    let column = |name: &str, kind| Column { name: name.into(), kind };
    let columns = Columns::new(vec![column("clerk", ColumnKind::Text), column("number", ColumnKind::Int)], "clerk").unwrap();
    let path = "/lake/clerks.shards".parse().unwrap();
    let mut creating = create(&cluster.client, &path, columns.clone(), vec![0.9], false).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    for shard in 0..SHARDS {
        let part = folder.path().join(shard.to_string());
        let mut building = Store::build(&part, columns.clone(), 0.01).unwrap();
        for number in 0..200 {
            let key = Key::from(format!("clerk{number:03}").as_str());
            if KeyMap::Hash(SHARDS).shard_of(&key) == shard {
                building.push(key, vec![Value::Int(number)]).unwrap();
            }
        }
        building.finish().unwrap();
        creating.push(&part, |_| {}).await.unwrap();
    }
    creating.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn keys_of_text_are_asked_for_as_they_come_from_files() {
    let (cluster, engine) = lake().await;
    clerks(&cluster).await;
    rows(&engine, "set datafusion.optimizer.join_reordering = false").await;
    let join = "from '/lake/t.parquet' t join '/lake/clerks.shards' c on c.clerk = t.name";
    let found = rows(&engine, &format!("select count(*), sum(c.number) {join}")).await;
    let numbers: i64 = (0..ROWS).map(|number| number * 31 % 97).sum();
    assert_eq!(found, format!("{ROWS} {numbers}"));
    assert_eq!(asked(&engine, &format!("select c.number {join}")).await, [SHARDS, 97, 0]);
    assert_eq!(asked(&engine, &format!("select c.number {join} where t.id = 7")).await, [1, 1, 0]);
}
