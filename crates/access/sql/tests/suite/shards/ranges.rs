//! Datasets whose shards have ranges of keys: who asks for some keys asks the shards that may have them.

use forebay_shard::{Key, KeyMap};

use super::lake_by;
use crate::support::rows;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn conditions_on_the_key_leave_out_shards_and_no_rows() {
    // Keys are from -625 to 1874; numbers below zero stand behind all others.
    let splits = [400i64, 1200, -300].map(|key| Key::U64(key as u64));
    let (_cluster, engine) = lake_by(&KeyMap::Ranges(splits.into())).await;
    for (query, asked) in [
        ("select id, note from T where id between 10 and 350", "1 of 4 shards"),
        ("select id, note from T where id >= 390 and id < 410", "2 of 4 shards"),
        ("select name from T where id < -200", "2 of 4 shards"),
        ("select count(*) from T where id between -5 and 5", "2 of 4 shards"),
        ("select count(*), sum(part) from T where id > 1500", "1 of 4 shards"),
        ("select id from T where 700 <= id and 720 >= id and name like '%1%'", "1 of 4 shards"),
        ("select id from T where (id < 20 and id > 10) or id = 1300", "2 of 4 shards"),
        ("select id, weight from T where id between 10 and 350 and weight > 90", "1 of 4 shards"),
        ("select count(*) from T where id > 380 and note like '%summer%' and id < 390", "1 of 4 shards"),
        ("select id from T where id > 1000 or name = 'clerk031'", "all records"),
        ("select id from T where id <> 7", "all records"),
        ("select id from T where id in (7, 8, 1300) and id > 7", "3 keys"),
        ("select part, count(*) from T where id >= 0 group by part", "3 of 4 shards"),
        (
            "select a.id from T a join T b on a.id = b.part where a.id between 0 and 3 and b.id between 100 and 200",
            "1 of 4 shards",
        ),
    ] {
        let of = |table: &str| query.replace('T', table);
        let (shards, file) = (of("'/lake/t.shards'"), of("'/lake/t.parquet'"));
        let sorted = |query: &str| format!("select * from ({query}) order by 1");
        assert_eq!(rows(&engine, &sorted(&shards)).await, rows(&engine, &sorted(&file)).await, "{query}");
        let plan = rows(&engine, &format!("explain {shards}")).await;
        assert!(plan.contains(asked), "{query}: {plan}");
    }
    let limited = rows(&engine, "select count(*) from (select id from '/lake/t.shards' where id > 1500 limit 7)").await;
    assert_eq!(limited, "7");
}
