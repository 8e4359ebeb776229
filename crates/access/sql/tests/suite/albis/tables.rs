//! Table files: what is written is read back, and no more of it than a query needs.

use std::sync::Arc;

use datafusion::arrow::array::{Float64Array, Int64Array, RecordBatch, StringArray};
use forebay_sql::{Conversion, ConversionProgress, Engine};
use forebay_types::ErrorKind;

use crate::support::{Lake, parquet, rows, settings};

/// `id` ascends; `word` has nulls; `x` is anywhere.
fn batch(from: i64, rows: i64) -> RecordBatch {
    let ids = from..from + rows;
    RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(Int64Array::from_iter_values(ids.clone())) as _, true),
        (
            "word",
            Arc::new(StringArray::from_iter(ids.clone().map(|id| (id % 5 != 0).then(|| format!("word-{}", id % 7))))) as _,
            true,
        ),
        ("x", Arc::new(Float64Array::from_iter_values(ids.map(|id| (id * 7919 % 1000) as f64 / 4.0))) as _, true),
    ])
    .unwrap()
}

/// The same rows as Parquet and as tables: columns, rows, and both.
async fn lake() -> Lake {
    let lake = Lake::new();
    lake.put("t.parquet", parquet(&[batch(0, 10_000)], 1000)).await;
    for (name, groups) in [("columns", ""), ("rows", "groups '*', "), ("mixed", "groups 'x, id; *', ")] {
        let copied = lake
            .rows(&format!(
                "copy (select * from '/lake/t.parquet' order by id) to '/lake/{name}.albis' options ({groups}row_group_rows '1000')"
            ))
            .await;
        assert_eq!(copied, "10000");
    }
    lake
}

const TABLES: [&str; 3] = ["columns", "rows", "mixed"];

#[tokio::test(flavor = "multi_thread")]
async fn queries_answer_as_they_do_over_parquet() {
    let lake = lake().await;
    for query in [
        "select count(*), count(word), min(id), max(id), min(word), max(word), sum(x) from FILE",
        "select * from FILE where id between 4990 and 5010 order by id",
        "select id, x from FILE where x = 100.25 and word is not null order by id",
        "select word, count(*), sum(id) from FILE group by word order by word nulls first",
        "select id from FILE where word is null order by id desc limit 3",
        "select a.id from FILE a join FILE b on a.id = b.id + 9990 order by a.id",
        "select x from FILE order by x desc, id limit 2",
        "select count(*) from FILE where id < 0",
        "select id + 1 from FILE where id % 4000 = 1 or x > 249.5 order by 1",
    ] {
        let expected = lake.rows(&query.replace("FILE", "'/lake/t.parquet'")).await;
        for table in TABLES {
            assert_eq!(lake.rows(&query.replace("FILE", &format!("'/lake/{table}.albis'"))).await, expected, "{table}: {query}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_a_query_needs_is_read() {
    let lake = lake().await;
    let table = "'/lake/columns.albis'";
    let read = async |sql: &str| {
        // The metadata is known from here on.
        lake.rows(&format!("select count(*) from {table}")).await;
        lake.store.clear();
        lake.rows(sql).await;
        lake.store.bytes()
    };
    assert_eq!(read(&format!("select count(*), max(id) from {table}")).await, 0, "the metadata answers");
    assert_eq!(read(&format!("select sum(id) from {table}")).await, 80_000, "one column of 8 bytes");
    assert_eq!(read(&format!("select sum(id) from {table} where id >= 9500")).await, 8_000, "one row group of ten");
    assert_eq!(read(&format!("select sum(x) from {table} where id = 500")).await, 16_000, "two columns of one row group");
    assert_eq!(read(&format!("select * from {table} where id < 0")).await, 0);
    // No row has it, though every row group may: the other columns are left alone.
    assert_eq!(read(&format!("select * from {table} where x = 100.125")).await, 80_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_taken_by_their_number_and_no_more_is_read() {
    let lake = lake().await;
    for table in TABLES {
        let t = format!("'/lake/{table}.albis#row'");
        for (query, answer) in [
            ("select id, row from T where row in (7, 9999, 4000) order by row", "7 7\n4000 4000\n9999 9999"),
            ("select row, x * 4 from T where id = 5000", "5000 0.0"),
            ("select count(*), min(row), max(row), sum(row) from T", "10000 0 9999 49995000"),
            ("select count(*) from T where row = id", "10000"),
            // Rows that are copied, and a good part of them, which are not.
            ("select sum(row), sum(id) from T where id % 100 = 3", "495300 495300"),
            ("select sum(row), sum(id) from T where id % 3 > 0", "33326667 33326667"),
            ("select word from T where row >= 9998 and word is not null order by row", "word-2\nword-3"),
            ("select row from T where row between 998 and 1001 order by row", "998\n999\n1000\n1001"),
            ("select count(*) from T where row < 0 or row = 10000", "0"),
            ("select row from T order by x desc, row limit 2", "FIRST"),
        ] {
            let answer = match answer {
                "FIRST" => lake.rows(&format!("select id from '/lake/{table}.albis' order by x desc, id limit 2")).await,
                answer => answer.to_string(),
            };
            assert_eq!(lake.rows(&query.replace('T', &t)).await, answer, "{table}: {query}");
        }
        let many = (0..40).map(|at| (at * 3 + 2000).to_string()).collect::<Vec<_>>().join(", ");
        let taken = format!("select count(*), sum(id) from {t} where row in ({many})");
        assert_eq!(lake.rows(&taken).await, "40 82340");
    }
    let read = async |sql: &str| {
        lake.store.clear();
        let rows = lake.rows(sql).await;
        (rows, lake.store.bytes())
    };
    let t = "'/lake/columns.albis#row'";
    assert_eq!(
        read(&format!("select id from {t} where row in (1, 2)")).await,
        ("1\n2".to_string(), 8_000),
        "one row group of ten"
    );
    let many = (0..30).map(|at| (at + 3000).to_string()).collect::<Vec<_>>().join(", ");
    assert_eq!(read(&format!("select count(x) from {t} where row in ({many}, 8000)")).await, ("31".to_string(), 16_000), "two");
    assert_eq!(read(&format!("select * from {t} where row = 123456")).await, (String::new(), 0));
    // The numbers are a file's own, and in no file.
    lake.rows("copy (select * from '/lake/columns.albis#row' where row < 3) to '/lake/two/a.albis'").await;
    let own = lake.error("select * from '/lake/two/a.albis#row'").await;
    assert_eq!((own.kind(), own.message().contains("column `row`")), (ErrorKind::Invalid, true), "{own}");
    lake.rows("copy (select 77 as id, 5 as row) to '/lake/two/b.albis'").await;
    lake.rows("copy (select 99 as id) to '/lake/two/c.albis'").await;
    assert_eq!(lake.rows("select id, row from '/lake/two/' where id in (1, 77, 99) order by id").await, "1 1\n77 5\n99");
    for at in 0..2 {
        lake.rows(&format!("copy (select id from '/lake/rows.albis' where id < 10) to '/lake/three/{at}.albis'")).await;
    }
    assert_eq!(
        lake.rows("select row, count(*) from '/lake/three/*.albis#row' where row > 7 group by row order by row").await,
        "8 2\n9 2"
    );
    let insert = lake.error("insert into '/lake/three/*.albis#row' select 1, 2").await;
    assert!(insert.kind() == ErrorKind::Invalid && insert.message().contains("numbered as they are read"), "{insert}");
    let read =
        lake.engine.columns_read("select x from '/lake/columns.albis#row' where row = 4", "/lake/columns.albis").await.unwrap();
    assert_eq!(read[0].iter().collect::<Vec<_>>(), ["x"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_groups_without_one_of_the_best_rows_are_not_read() {
    let lake = Lake::with(forebay_sql::EngineSettings { target_partitions: Some(1), ..settings() });
    let copy = "copy (select value as id, value % 1000 as mix from range(0, 20000) as t(value)) to '/lake/top.albis'";
    lake.rows(&format!("{copy} options (row_group_rows '1000')")).await;
    for (sql, answer, least, most) in [
        // The first of twenty row groups has them; another one is on its way by then.
        ("select id from '/lake/top.albis' order by id limit 3", "0\n1\n2", 1, 3),
        // Each has better ones.
        ("select id from '/lake/top.albis' order by id desc limit 2", "19999\n19998", 20, 20),
    ] {
        lake.rows("select count(*) from '/lake/top.albis'").await;
        lake.store.clear();
        let mut query = lake.engine.execute(sql).await.unwrap();
        assert_eq!(crate::support::text(&query.collect().await.unwrap()), answer);
        let read = lake.store.bytes() / 8_000;
        assert!((least..=most).contains(&read), "{sql}: {read} row groups of 20");
        assert_eq!(query.progress().bytes_planned, 0, "what the first rows leave over can't be told");
    }
    // Where row groups have the same values among them, all is told.
    let mut query = lake.engine.execute("select mix from '/lake/top.albis' order by mix limit 1").await.unwrap();
    assert_eq!(crate::support::text(&query.collect().await.unwrap()), "0");
    assert_eq!(query.progress().bytes_planned, 160_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn scans_are_split_by_row_groups() {
    let lake = Lake::new();
    let sql = "copy (select value as id, value * 2 as y from range(0, 2000000)) to '/lake/big.albis'";
    assert_eq!(lake.rows(sql).await, "2000000");
    let mut query = lake.engine.execute("select sum(id), sum(y) from '/lake/big.albis'").await.unwrap();
    assert!(query.plan_text().contains("file_groups={2 groups"), "{}", query.plan_text());
    assert_eq!(crate::support::text(&query.collect().await.unwrap()), "1999999000000 3999998000000");
}

#[tokio::test(flavor = "multi_thread")]
async fn external_tables_and_folders_of_tables() {
    let lake = lake().await;
    lake.rows("create external table t stored as albis location '/lake/rows.albis'").await;
    assert_eq!(lake.rows("select count(*), sum(id) from t where id >= 9000").await, "1000 9499500");
    for (at, from) in [(1, 0), (2, 100)] {
        lake.rows(&format!("copy (select * from t where id between {from} and {from} + 99) to '/lake/p/year={at}/x.albis'"))
            .await;
    }
    // One file has a column more.
    lake.rows("copy (select 5000 as id, 'new' as extra) to '/lake/more/b.albis'").await;
    lake.rows("copy (select id from t where id = 1) to '/lake/more/a.albis'").await;
    assert_eq!(
        lake.rows("select year, count(*), min(id) from '/lake/p/' group by year order by year").await,
        "1 100 0\n2 100 100"
    );
    assert_eq!(lake.rows("select count(*) from '/lake/p/' where year = 2 and id < 150").await, "50");
    assert_eq!(lake.rows("select id, extra from '/lake/more/' order by id").await, "1\n5000 new");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_maps_and_structs_answer_as_they_do_over_parquet() {
    let lake = Lake::new();
    let all = "select value as id, case when value % 4 > 0 then make_array(concat('t-', value), null, 'u') end as texts, \
               make_array(named_struct('a', value, 'b', concat('b-', value))) as parts, \
               map(make_array(concat('k-', value % 3), 'other'), make_array(value, value * 2)) as pairs, \
               make_array(make_array(value), make_array(value + 1, null)) as deep from generate_series(0, 2999) as t(value)";
    lake.rows(&format!("copy ({all}) to '/lake/n.parquet'")).await;
    lake.rows("copy (select * from '/lake/n.parquet') to '/lake/n.albis' options (groups '*', row_group_rows '700')").await;
    for query in [
        "select count(*), count(texts), sum(cardinality(texts)), sum(array_element(array_element(deep, 2), 1)) from FILE",
        "select id, texts[1], get_field(array_element(parts, 1), 'b') from FILE where id between 698 and 704 order by id",
        "select id, array_element(map_extract(pairs, 'other'), 1) from FILE where id in (0, 2999) order by id",
    ] {
        let expected = lake.rows(&query.replace("FILE", "'/lake/n.parquet'")).await;
        assert_eq!(lake.rows(&query.replace("FILE", "'/lake/n.albis'")).await, expected, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_options_and_damaged_files_say_what_is_wrong() {
    let lake = lake().await;
    for (options, word) in [
        ("groups 'id,nothing'", "nothing"),
        ("row_group_rows 'many'", "65536"),
        ("layout 'wide'", "aligned"),
        ("speed '9'", "row_group_rows"),
    ] {
        let error = lake.error(&format!("copy (select 1 as id) to '/lake/bad.albis' options ({options})")).await;
        assert!(error.message().contains(word), "{options}: {error}");
    }
    let odd = lake.error("copy (select arrow_cast('a', 'Dictionary(Int32, Utf8)') as m) to '/lake/bad.albis'").await;
    assert_eq!((odd.kind(), odd.message().contains("`m`")), (ErrorKind::Invalid, true), "{odd}");
    assert_eq!(lake.error("select * from '/lake/bad.albis'").await.kind(), ErrorKind::NotFound);

    let whole = lake.store_bytes("columns.albis").await;
    lake.put("cut.albis", whole.slice(..whole.len() - 100)).await;
    let cut = lake.error("select * from '/lake/cut.albis'").await;
    assert_eq!((cut.kind(), cut.message().contains("cut.albis")), (ErrorKind::Corrupt, true), "{cut}");
}

#[tokio::test(flavor = "multi_thread")]
async fn conversions_keep_the_order_and_come_whole_or_not_at_all() {
    let lake = Lake::with(forebay_sql::EngineSettings { target_partitions: Some(1), ..settings() });
    lake.put("in/a.parquet", parquet(&[batch(5000, 3000)], 500)).await;
    lake.put("in/b.parquet", parquet(&[batch(0, 2000)], 500)).await;
    lake.put("c.csv", "id,word,x\n9,last,0.5\n").await;
    let convert = async |inputs: &[&str], output: &str, options: &[(&str, &str)]| {
        let conversion = Conversion {
            inputs: inputs.iter().map(|input| (*input).to_string()).collect(),
            output: output.to_string(),
            options: options.iter().map(|(key, value)| ((*key).to_string(), (*value).to_string())).collect(),
        };
        lake.engine.convert(&conversion, Arc::new(ConversionProgress::default())).await
    };
    let made = convert(&["/lake/in/*.parquet", "/lake/c.csv"], "/lake/t.albis", &[("format.groups", "id,x")]).await.unwrap();
    assert_eq!(made, 5001);
    let first = async |file: &str| lake.rows(&format!("select id from '{file}' limit 1")).await;
    assert_eq!(first("/lake/t.albis").await, "5000");
    for back in ["/lake/back.parquet", "/lake/back.csv", "/lake/back.ndjson", "/lake/back.arrow"] {
        assert_eq!(convert(&["/lake/t.albis"], back, &[]).await.unwrap(), 5001);
        assert_eq!(first(back).await, "5000");
        let sum = format!("select count(*), sum(id), count(word), sum(x) from '{back}'");
        assert_eq!(lake.rows(&sum).await, lake.rows(&sum.replace(back, "/lake/t.albis")).await);
    }
    // The second input fails in the middle; what was there before stays, and nothing else is left.
    lake.put("bad.csv", format!("id,word,x\n{}oops,w,1\n", "1,w,1\n".repeat(3000))).await;
    for output in ["/lake/t.albis", "/lake/back.parquet"] {
        let error = convert(&["/lake/c.csv", "/lake/bad.csv"], output, &[]).await.unwrap_err();
        assert!(error.message().contains("bad.csv") || error.message().contains("oops"), "{error}");
        assert_eq!(lake.rows(&format!("select count(*) from '{output}'")).await, "5001");
    }
    let names = lake.names().await;
    assert!(!names.iter().any(|name| name.contains("part-")), "{names:?}");
    let error = convert(&["/lake/t.albis"], "/lake/t.albis", &[]).await.unwrap_err();
    assert!(error.message().contains("is an input too"), "{error}");
    assert_eq!(convert(&["/lake/none*.csv"], "/lake/x.albis", &[]).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(convert(&["/lake/c.csv"], "/lake/x", &[]).await.unwrap_err().kind(), ErrorKind::Invalid);
    let extra = convert(&["/lake/c.csv", "/lake/wide.csv"], "/lake/x.albis", &[]);
    lake.put("wide.csv", "id,more\n1,2\n").await;
    let extra = extra.await.unwrap_err();
    assert!(extra.message().contains("wide.csv") && extra.message().contains("`more`"), "{extra}");
}

#[tokio::test(flavor = "multi_thread")]
async fn local_files_need_no_mount() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let engine = Engine::over_object_store(Vec::new(), settings());
    std::fs::write(at("in.csv"), "a,b\n1,x\n2,y\n").unwrap();
    let conversion = Conversion { inputs: vec![at("in.csv")], output: at("out.albis"), options: Vec::new() };
    assert_eq!(engine.convert(&conversion, Arc::default()).await.unwrap(), 2);
    assert_eq!(rows(&engine, &format!("select b from '{}' where a = 2", at("out.albis"))).await, "y");
    let file = engine.table_file(&at("out.albis")).await.unwrap();
    assert_eq!((file.table.rows(), file.bytes), (2, std::fs::metadata(at("out.albis")).unwrap().len()));
    assert_eq!(engine.columns(&at("out.albis")).await.unwrap(), ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_columns_that_statements_read() {
    let lake = lake().await;
    let read = async |sql: &str, path: &str| {
        let reads = lake.engine.columns_read(sql, path).await.unwrap();
        reads.into_iter().map(|read| read.into_iter().collect::<Vec<_>>().join(",")).collect::<Vec<_>>()
    };
    let table = "/lake/columns.albis";
    assert_eq!(read("select id from '/lake/columns.albis' where x > 1", table).await, ["id,x"]);
    assert_eq!(read("select id from '/lake/columns.albis' where x > 1", "/lake/").await, ["id,x"]);
    assert_eq!(read("select id from '/lake/t.parquet'", table).await, [""; 0]);
    assert_eq!(read("copy (select 1) to '/lake/x.csv'", table).await, [""; 0]);
    let both = "select word from '/lake/columns.albis' where id in (select max(id) from '/lake/rows.albis')";
    assert_eq!(read(both, "/lake/rows.albis").await, ["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_the_declared_type_does_not_have_is_an_error_and_never_null() {
    let lake = Lake::new();
    let values = "select 1 as n, '12' as t, 100 as d union all select 3000000000, 'abc', 4000000000000000";
    for ending in ["albis", "parquet"] {
        lake.rows(&format!("copy ({values}) to '/lake/v.{ending}'")).await;
        for (at, (column, kind, value)) in
            [("n", "int", "3000000000"), ("t", "int", "abc"), ("d", "date", "4000000000000000")].into_iter().enumerate()
        {
            let table = format!("{ending}_{at}");
            let ddl = format!("create external table {table} ({column} {kind}) stored as {ending} location '/lake/v.{ending}'");
            lake.rows(&ddl).await;
            for query in [
                format!("select {column} from {table}"),
                format!("select count(*) from {table} where {column} is null"),
                format!("select count({column}) from {table}"),
                format!("select * from {table} where {column} is not null"),
                format!("select max({column}) from {table}"),
            ] {
                let error = lake.error(&query).await;
                assert_eq!(error.kind(), ErrorKind::Invalid, "{ending}: {query}: {error}");
                if ending == "albis" {
                    let told = error.message().contains(value) && error.message().contains(&format!("`{column}`"));
                    assert!(told && error.message().contains("/lake/v.albis"), "{query}: {error}");
                }
            }
        }
    }
    // What fits is read as declared.
    lake.rows("create external table fits (n decimal(12, 1), t varchar) stored as albis location '/lake/v.albis'").await;
    assert_eq!(lake.rows("select n from fits order by n").await, "1.0\n3000000000.0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_byte_is_corrupt_wherever_it_lies_and_never_a_wrong_answer() {
    let lake = lake().await;
    let sums =
        |file: &str| format!("select count(id), sum(id), count(word), min(word || 'x'), max(word || 'x'), sum(x) from '{file}'");
    let folder = tempfile::tempdir().unwrap();
    for table in TABLES {
        let whole = lake.store_bytes(&format!("{table}.albis")).await;
        let right = lake.rows(&sums(&format!("/lake/{table}.albis"))).await;
        let mut corrupt = 0;
        for at in (0..whole.len()).step_by(whole.len() / 97) {
            let mut bytes = whole.to_vec();
            bytes[at] ^= 0x20;
            // The same name each time: nothing that was known of the version before may answer for this one.
            let local = folder.path().join("flipped.albis");
            std::fs::write(&local, &bytes).unwrap();
            lake.put("flipped.albis", bytes).await;
            for file in ["/lake/flipped.albis", local.to_str().unwrap()] {
                let mut answer = Vec::new();
                match lake.engine.execute(&sums(file)).await {
                    Ok(mut query) => answer.push(query.collect().await.map(|batches| crate::support::text(&batches))),
                    Err(error) => answer.push(Err(error)),
                }
                match answer.remove(0) {
                    // Padding between cells belongs to no answer.
                    Ok(found) => assert_eq!(found, right, "{table}, byte {at} of {file}"),
                    Err(error) => {
                        corrupt += 1;
                        let version = whole.len() - 12..whole.len() - 8;
                        let expected = if version.contains(&at) { ErrorKind::Invalid } else { ErrorKind::Corrupt };
                        assert_eq!(error.kind(), expected, "{table}, byte {at} of {file}: {error}");
                        assert!(error.message().contains("flipped.albis"), "{error}");
                    }
                }
            }
        }
        assert!(corrupt > 180, "{table}: {corrupt} of 196");
    }
    // Nor does it go on into another file.
    let mut bytes = lake.store_bytes("columns.albis").await.to_vec();
    bytes[100] ^= 1;
    lake.put("flipped.albis", bytes).await;
    for output in ["/lake/on.parquet", "/lake/on.albis"] {
        let conversion =
            Conversion { inputs: vec!["/lake/flipped.albis".to_string()], output: output.to_string(), options: Vec::new() };
        let error = lake.engine.convert(&conversion, Arc::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert_eq!(lake.error(&format!("select * from '{output}'")).await.kind(), ErrorKind::NotFound);
    }
    // Columns that no query asks for are not read, and so not verified.
    assert_eq!(lake.rows("select count(x), min(x + 1) from '/lake/flipped.albis'").await, "10000 1.0");
}
