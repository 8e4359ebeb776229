//! Bloom filters of table files: who looks for a key reads the filters, and of row groups those that may have it.

use datafusion::parquet::bloom_filter::Sbbf;
use forebay_types::ErrorKind;

use crate::support::Lake;

/// Row groups, rows of each, and bytes of the filter of one: 42 blocks of 32 bytes for 1,000 different values.
const ROW_GROUPS: u64 = 20;
const FILTER_BYTES: u64 = 42 * 32;

/// 20,000 rows whose keys are all different and lie anywhere, and the same without filters.
async fn lake() -> Lake {
    let lake = Lake::new();
    let rows = "select value * 7919 % 20011 as key, concat('name-', value * 7919 % 20011) as name, value as v \
                from range(0, 20000) as t(value)";
    for (name, more) in
        [("plain", ""), ("some", ", bloom_filters 'key, name'"), ("rows", ", groups '*', bloom_filters 'key,name'")]
    {
        let copy = format!("copy ({rows}) to '/lake/{name}.albis' options (row_group_rows '1000'{more})");
        assert_eq!(lake.rows(&copy).await, "20000");
    }
    lake
}

/// The bytes that a query reads of a table whose metadata is known.
async fn read(lake: &Lake, table: &str, sql: &str) -> u64 {
    lake.rows(&format!("select count(*) from '/lake/{table}.albis'")).await;
    lake.store.clear();
    lake.rows(&sql.replace("FILE", &format!("'/lake/{table}.albis'"))).await;
    lake.store.bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_point_query_on_a_shuffled_column_reads_the_filters_and_the_row_group_that_has_the_key() {
    let lake = lake().await;
    let found = "select v from FILE where key = 13242";
    assert_eq!(lake.rows(&found.replace("FILE", "'/lake/some.albis'")).await, "5000");
    assert!(read(&lake, "plain", found).await >= ROW_GROUPS * 8_000, "each row group's bounds hold the key");
    let bytes = read(&lake, "some", found).await;
    let least = ROW_GROUPS * FILTER_BYTES + 16_000;
    // Of the 19 others, two may be taken for one that has it.
    assert!((least..=least + 2 * 8_000).contains(&bytes), "{bytes} bytes, {least} at least");
    let nowhere = read(&lake, "some", "select * from FILE where key in (12519)").await;
    assert!((0..=2 * 8_000).contains(&(nowhere - ROW_GROUPS * FILTER_BYTES)), "{nowhere} bytes");
    let text = read(&lake, "some", "select v from FILE where name = 'name-13242'").await;
    assert!(text < ROW_GROUPS * FILTER_BYTES + 3 * 40_000, "{text} bytes");

    let analyzed = lake.rows("explain analyze select v from '/lake/some.albis' where key = 13242").await;
    let pruned = analyzed.split("row_groups_pruned_bloom_filter=").nth(1).unwrap_or_default();
    let pruned = pruned.split(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default();
    assert!(pruned.parse::<u64>().is_ok_and(|pruned| (17..=19).contains(&pruned)), "{analyzed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_prefetches_brings_the_filters_alone() {
    let lake = lake().await;
    lake.rows("select count(*) from '/lake/some.albis'").await;
    let mut query = lake.engine.execute("select v from '/lake/some.albis' where key = 13242").await.unwrap();
    assert_eq!(crate::support::text(&query.collect().await.unwrap()), "5000");
    assert_eq!(query.progress().bytes_planned, ROW_GROUPS * FILTER_BYTES);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_filters_of_a_column_with_few_values_keep_nothing_from_being_prefetched() {
    let lake = Lake::new();
    let rows = "select value % 10 as few, value as v from range(0, 20000) as t(value)";
    let copy = format!("copy ({rows}) to '/lake/few.albis' options (row_group_rows '1000', bloom_filters 'few')");
    lake.rows(&copy).await;
    let table = lake.engine.table_file("/lake/few.albis").await.unwrap().table;
    assert!(table.bloom(0, table.schema().leaf("few").unwrap()).is_some());
    let mut query = lake.engine.execute("select sum(v) from '/lake/few.albis' where few = 5").await.unwrap();
    assert_eq!(crate::support::text(&query.collect().await.unwrap()), "20000000");
    let planned = query.progress().bytes_planned;
    assert!(planned >= 20_000 * 8, "{planned} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_on_few_keys_reads_the_row_groups_that_may_have_them() {
    let lake = lake().await;
    let joined = "select sum(a.v) from FILE a join (values (13242), (7919)) as b (k) on a.key = b.k";
    assert_eq!(lake.rows(&joined.replace("FILE", "'/lake/some.albis'")).await, "5001");
    assert!(read(&lake, "plain", joined).await >= ROW_GROUPS * 16_000, "each row group's bounds hold them");
    let bytes = read(&lake, "some", joined).await;
    assert!(bytes < ROW_GROUPS * FILTER_BYTES + 5 * 16_000, "{bytes} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_answer_as_they_do_without_filters() {
    let lake = lake().await;
    for query in [
        "select count(*), sum(v) from FILE where key in (13242, 12519, 0, 7919)",
        "select v from FILE where key = 13242 or v = 7 order by v",
        "select v from FILE where key = 13242 and name = 'name-13242'",
        "select count(*) from FILE where key = 13242 and name = 'name-1'",
        "select count(*) from FILE where key <> 13242",
        "select count(*) from FILE where key not in (13242, 0)",
        "select count(*) from FILE where key in (null, 13242)",
        "select count(*) from FILE where key is not distinct from 13242",
        "select count(*) from FILE where name in ('name-0', 'name-7919', 'nothing')",
        "select count(*) from FILE where key = 13242.0",
        "select count(*) from FILE a join FILE b on a.key = b.v where b.v in (3, 4)",
    ] {
        let expected = lake.rows(&query.replace("FILE", "'/lake/plain.albis'")).await;
        for table in ["some", "rows"] {
            assert_eq!(lake.rows(&query.replace("FILE", &format!("'/lake/{table}.albis'"))).await, expected, "{table}: {query}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_are_written_where_they_pay_and_refused_where_there_are_none() {
    let lake = Lake::new();
    let rows = "select value as sorted, (value * 7919 % 20011) * 100 as key, value % 10 as few \
                from range(0, 20000) as t(value)";
    lake.rows(&format!("copy ({rows}) to '/lake/all.albis' options (row_group_rows '2000', bloom_filters '*')")).await;
    let table = lake.engine.table_file("/lake/all.albis").await.unwrap().table;
    let has = |column: &str| table.bloom(0, table.schema().leaf(column).unwrap()).is_some();
    assert_eq!(["sorted", "key", "few"].map(has), [false, true, false]);
    for (option, word) in [("x", "`x`"), ("nothing", "nothing"), ("key,", "'id,email'"), ("key,*", "'id,email'")] {
        let copy = format!("copy (select 1.5::double as x, 1 as key) to '/lake/bad.albis' options (bloom_filters '{option}')");
        let error = lake.error(&copy).await;
        assert!(error.message().contains(word), "{option}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_filter_is_an_error_that_names_the_file() {
    let lake = lake().await;
    let table = lake.engine.table_file("/lake/some.albis").await.unwrap().table;
    let at = table.bloom(3, 0).unwrap().range().start as usize;
    let mut bytes = lake.store_bytes("some.albis").await.to_vec();
    bytes[at] ^= 1;
    lake.put("damaged.albis", bytes).await;
    let error = lake.error("select v from '/lake/damaged.albis' where key = 13242").await;
    assert_eq!((error.kind(), error.message().contains("damaged.albis")), (ErrorKind::Corrupt, true), "{error}");
    assert_eq!(lake.rows("select count(*) from '/lake/damaged.albis' where key >= 0").await, "20000");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_filters_of_parquet_find_the_same_values_in_these_bytes() {
    let lake = lake().await;
    let table = lake.engine.table_file("/lake/some.albis").await.unwrap().table;
    let file = lake.store_bytes("some.albis").await;
    let filters = |leaf: usize| {
        let ranges = (0..table.row_groups()).map(|row_group| table.bloom(row_group, leaf).unwrap().range());
        ranges.map(|range| Sbbf::new(&file[range.start as usize..range.end as usize])).collect::<Vec<_>>()
    };
    let (keys, names) = (filters(0), filters(1));
    for value in 0..20_000_i64 {
        let key = value * 7919 % 20011;
        assert!(keys.iter().any(|filter| filter.check(&key)), "{key}");
        let name = format!("name-{key}");
        assert!(names.iter().any(|filter| filter.check(name.as_str())), "{name}");
    }
}
