//! Decoded columns of text: the same answers as the lines give, whatever the lines are taken for.

use std::fmt::Write;

use forebay_sql::{Engine, EngineSettings};

use crate::cluster::Cluster;
use crate::hot::{counted, heat_until};
use crate::support::{error, rows, settings};

const DECODED: &str = "chunks_decoded=";

/// An engine that looks for decoded columns, and one that does not.
fn engines(cluster: &Cluster) -> (Engine, Engine) {
    let engine = |hot_form| Engine::over_client(cluster.client.clone(), EngineSettings { hot_form, ..settings() });
    (engine(true), engine(false))
}

/// The same, which cut no file.
fn engines_of_one_thread(cluster: &Cluster) -> (Engine, Engine) {
    let settings = |hot_form| EngineSettings { hot_form, target_partitions: Some(1), ..settings() };
    let engine = |hot_form| Engine::over_client(cluster.client.clone(), settings(hot_form));
    (engine(true), engine(false))
}

/// Asks both engines.
async fn same(hot: &Engine, raw: &Engine, sql: &str) {
    // Without both of them in a message: they may be long.
    assert!(rows(hot, sql).await == rows(raw, sql).await, "{sql}");
}

/// Lines of CSV with a header: a number with gaps, a quoted word, a price and a day.
fn csv(from: usize, count: usize) -> String {
    let mut text = String::from("id,word,price,day\n");
    for id in from..from + count {
        let shown = if id % 7 == 0 { String::new() } else { id.to_string() };
        let word = format!("a word, longer \"\"{}\"\"", id % 100);
        writeln!(text, "{shown},\"{word}\",{}.25,2024-02-{:02}", id % 1000, 1 + id % 29).unwrap();
    }
    text
}

fn table(name: &str, columns: &str, kind: &str, path: &str, options: &str) -> String {
    let options = if options.is_empty() { String::new() } else { format!(" options ({options})") };
    format!("create external table {name} ({columns}) stored as {kind} location '/lake/{path}'{options}")
}

const COLUMNS: &str = "id bigint, word varchar, price decimal(10, 2), day date";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn csv_that_the_optimizer_cuts_answers_the_same() {
    let cluster = Cluster::hot().await;
    let (hot, raw) = engines(&cluster);
    let file = csv(0, 280_000);
    assert!(file.len() > 12 << 20 && file.len() < 16 << 20, "{} bytes", file.len());
    cluster.put("t.csv", file.as_bytes());
    rows(&hot, &table("t", COLUMNS, "csv", "t.csv", "'format.has_header' 'true'")).await;
    let all = "select count(id), sum(id), min(word), max(word), sum(price), min(day), max(day), count(*) from t";
    heat_until(&hot, all, DECODED, 4).await;
    for sql in [
        all,
        "select count(*) from t",
        "select count(*), sum(id) from t where word like '%longer \"42\"' and day > '2024-02-05'",
        "select * from t order by id nulls last, word, day limit 40",
        "select * from t where id between 100000 and 100050 order by id",
        "select id + 1 as next, upper(word), price * 2, id is null from t where id % 9999 = 1 order by next",
        "select day, count(*), sum(price) from t group by day order by day",
        "select arrow_typeof(id), arrow_typeof(word), arrow_typeof(price), arrow_typeof(day) from t limit 1",
        "select a.id, b.word from t a join t b on a.id = b.id + 70000 where a.id > 279000 order by a.id",
    ] {
        same(&hot, &raw, sql).await;
    }
    assert_eq!(counted(&hot, "select count(*) from t", DECODED).await, 4, "rows are counted by any column");
    assert_eq!(counted(&raw, all, DECODED).await, 0);
    // A schema of the engine's own finding is another one.
    let found = "select sum(id), count(word), max(day) from '/lake/t.csv'";
    same(&hot, &raw, found).await;
    heat_until(&hot, found, DECODED, 4).await;
    same(&hot, &raw, found).await;
    same(&hot, &raw, "select arrow_typeof(id), arrow_typeof(word), arrow_typeof(day) from '/lake/t.csv' limit 1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn files_that_are_read_whole_keep_their_order() {
    let cluster = Cluster::hot().await;
    let (hot, raw) = engines_of_one_thread(&cluster);
    let file = csv(1, 200_000);
    assert!(file.len() > 8 << 20 && file.len() < 10 << 20, "{} bytes", file.len());
    cluster.put("w.csv", file.as_bytes());
    rows(&hot, &table("w", COLUMNS, "csv", "w.csv", "'format.has_header' 'true'")).await;
    heat_until(&hot, "select * from w", DECODED, 3).await;
    for sql in ["select * from w", "select word, id from w limit 9", "select id from w where id > 150000"] {
        same(&hot, &raw, sql).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_value_of_several_lines_is_one_although_nobody_said_so() {
    let cluster = Cluster::hot().await;
    let (hot, raw) = engines_of_one_thread(&cluster);
    let mut file = csv(1, 150_000);
    // In the second chunk, and lines of it look like rows.
    for id in 0..500 {
        file += &format!("{id},\"of\n1,two,2,2024-02-02\n3,lines\",3.50,2024-02-03\n");
    }
    file += csv(500_000, 60_000).split_once('\n').unwrap().1;
    assert!(file.len() > 8 << 20 && file.len() < 10 << 20, "{} bytes", file.len());
    cluster.put("l.csv", file.as_bytes());
    rows(&hot, &table("l", COLUMNS, "csv", "l.csv", "'format.has_header' 'true'")).await;
    let all = "select count(*), sum(id), count(distinct word), sum(price), max(day) from l";
    heat_until(&hot, all, DECODED, 1).await;
    for _ in 0..4 {
        same(&hot, &raw, all).await;
        same(&hot, &raw, "select id, word from l where word like '%lines%' limit 3").await;
        tokio::time::sleep(crate::hot::QUIET).await;
    }
    assert_eq!(counted(&hot, all, DECODED).await, 1, "none after the first that is not decoded");
    assert_eq!(rows(&hot, "select count(*) from l").await, "210500");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_option_has_columns_of_its_own() {
    let cluster = Cluster::hot().await;
    let (hot, raw) = engines(&cluster);
    cluster.put("o.txt", b"1;'a,b';5\n;'it''s,';\n3;c,;7\n#4;d,;8\n");
    let three = "a varchar, b varchar, c varchar";
    let semicolons = "'format.delimiter' ';', 'format.quote' ''''";
    let cases = [
        (three, format!("{semicolons}, 'format.has_header' 'false'")),
        (three, format!("{semicolons}, 'format.has_header' 'true'")),
        ("a varchar, b varchar", "'format.has_header' 'false', 'format.quote' '|'".to_string()),
        ("a int, b varchar, c int", format!("{semicolons}, 'format.has_header' 'false', 'format.comment' '#'")),
        (
            "a int, b varchar, c varchar, d varchar",
            format!("{semicolons}, 'format.has_header' 'false', 'format.comment' '#', 'format.truncated_rows' 'true'"),
        ),
    ];
    for (at, (columns, options)) in cases.into_iter().enumerate() {
        rows(&hot, &table(&format!("o{at}"), columns, "csv", "o.txt", &options)).await;
        let sql = format!("select * from o{at}");
        heat_until(&hot, &sql, DECODED, 1).await;
        same(&hot, &raw, &sql).await;
        same(&hot, &raw, &format!("select b from o{at} where a is null or a > '1'")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn bad_lines_are_the_engines_own_error() {
    let cluster = Cluster::hot().await;
    let (hot, raw) = engines(&cluster);
    cluster.put("b.csv", b"1,2024-01-01\nx,2024-01-02\n");
    rows(&hot, &table("b", "id int, day date", "csv", "b.csv", "'format.has_header' 'false'")).await;
    for _ in 0..4 {
        assert_eq!(
            error(&hot, "select sum(id) from b").await.to_string(),
            error(&raw, "select sum(id) from b").await.to_string()
        );
        same(&hot, &raw, "select max(day) from b").await;
    }
}

fn json(from: usize, count: usize) -> String {
    let line =
        |id: usize| format!("{{\"id\":{id},\"tags\":[1,{id}],\"name\":\"a \\\"name\\\" {}\",\"rest\":{}.5}}\n", id % 50, id % 9);
    (from..from + count).map(line).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn json_answers_the_same_and_nested_columns_stay_raw() {
    let cluster = Cluster::hot().await;
    let (hot, raw) = engines(&cluster);
    let file = json(0, 200_000);
    assert!(file.len() > 10 << 20 && file.len() < 16 << 20, "{} bytes", file.len());
    cluster.put("j.json", file.as_bytes());
    let all = "select count(*), sum(id), min(name), sum(rest) from '/lake/j.json'";
    heat_until(&hot, all, DECODED, file.len().div_ceil(4 << 20) as u64).await;
    for sql in [
        all,
        "select count(*) from '/lake/j.json'",
        "select id, name from '/lake/j.json' where id % 5000 = 7 order by id",
        "select arrow_typeof(id), arrow_typeof(name), arrow_typeof(rest) from '/lake/j.json' limit 1",
        "select id, tags from '/lake/j.json' where id = 77",
    ] {
        same(&hot, &raw, sql).await;
    }
    assert_eq!(counted(&hot, "select tags, id from '/lake/j.json'", DECODED).await, 0);

    // One array is no lines, and what is lines is not one array.
    cluster.put("a.json", b"[{\"id\":1},\n{\"id\":2}]\n");
    cluster.put("n.json", b"{\"id\":1}\n{\"id\":2}\n");
    rows(&hot, &table("a", "id bigint", "json", "a.json", "'format.newline_delimited' 'false'")).await;
    rows(&hot, &table("n", "id bigint", "json", "n.json", "")).await;
    rows(&hot, &table("wrong", "id bigint", "json", "n.json", "'format.newline_delimited' 'false'")).await;
    heat_until(&hot, "select sum(id) from n", DECODED, 1).await;
    for _ in 0..3 {
        assert_eq!(rows(&hot, "select sum(id) from a").await, "3");
        assert_eq!(
            error(&hot, "select sum(id) from wrong").await.to_string(),
            error(&raw, "select sum(id) from wrong").await.to_string()
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn overwritten_lines_never_answer_with_old_columns() {
    let cluster = Cluster::hot().await;
    let engine = cluster.engine();
    for from in [1, 1_000_001, 2_000_001] {
        cluster.put("v.csv", csv(from, 1000).as_bytes());
        let sql = "select min(id), max(id), count(*) from '/lake/v.csv'";
        // Every seventh number is left out.
        let last = if (from + 999) % 7 == 0 { from + 998 } else { from + 999 };
        let answer = format!("{from} {last} 1000");
        assert_eq!(rows(&engine, sql).await, answer);
        heat_until(&engine, sql, DECODED, 1).await;
        assert_eq!(rows(&engine, sql).await, answer);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn partitions_of_a_folder_are_columns_too() {
    let cluster = Cluster::hot().await;
    let (hot, raw) = engines(&cluster);
    for (year, from) in [(2023, 1), (2024, 5001)] {
        cluster.put(&format!("p/year={year}/x.csv"), csv(from, 5000).as_bytes());
    }
    let create = "create external table p (id bigint, word varchar, price decimal(10, 2), day date, year int) stored as csv \
                  partitioned by (year) location '/lake/p/' options ('format.has_header' 'true')";
    rows(&hot, create).await;
    let all = "select year, count(*), sum(id), max(word) from p group by year order by year";
    heat_until(&hot, all, DECODED, 2).await;
    for sql in [
        all,
        "select year, id from p where id % 999 = 0 order by id",
        "select year, count(*) from p group by year order by year",
        "select count(*), sum(price) from p where year = 2024",
    ] {
        same(&hot, &raw, sql).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn decoded_columns_are_those_of_their_names() {
    let cluster = Cluster::hot().await;
    let (hot, raw) = engines(&cluster);
    let file = csv(0, 100_000);
    let mut other = String::from("day,word,id\n");
    for id in 0..100_000 {
        writeln!(other, "2024-03-{:02},\"other {id}\",{}", 1 + id % 29, id + 1_000_000).unwrap();
    }
    cluster.put("names/a.csv", file.as_bytes());
    cluster.put("names/b.csv", other.as_bytes());
    rows(&hot, &table("names", COLUMNS, "csv", "names/", "'format.has_header' 'true'")).await;
    let all = "select count(*), count(id), sum(id), min(word), max(word), sum(price), min(day), max(day) from names";
    heat_until(&hot, all, DECODED, 3).await;
    assert!(rows(&hot, all).await.contains("other 99999"));
    for sql in [all, "select * from names where id in (5, 1000005) order by id", "select count(*) from names where price is null"]
    {
        same(&hot, &raw, sql).await;
    }
    assert_eq!(rows(&hot, "select id, word, day from names where id = 1000005").await, "1000005 other 5 2024-03-06");
}
