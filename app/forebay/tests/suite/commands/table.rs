//! `forebay table`: real files, converted there and back, looked into, and laid out by what queries read.

use std::path::Path;

use serde_json::Value;

use crate::support::{csv, forebay_in, forebay_with, lake_of};

fn local(folder: &Path) {
    let lines =
        |rows: std::ops::Range<usize>| rows.map(|row| format!("{row},word-{},{}\n", row % 5, row * row)).collect::<String>();
    std::fs::write(folder.join("a.csv"), format!("id,word,square\n{}", lines(100..200))).unwrap();
    std::fs::write(folder.join("b.csv"), format!("id,word,square\n{}", lines(0..100))).unwrap();
}

#[test]
fn local_files_are_converted_there_and_back_without_a_cluster() {
    let home = tempfile::tempdir().unwrap();
    local(home.path());
    let convert = "table convert a.csv b.csv t.albis --group id,square --group * --row-group-rows 64 \
        --bloom-filter word --bloom-filter square --json";
    let made = forebay_in(home.path(), &convert.split(' ').collect::<Vec<_>>());
    let made = made.ok().json();
    assert_eq!((&made[0]["rows"], &made[0]["output"]), (&Value::from(200), &Value::from("t.albis")));
    let shown = forebay_in(home.path(), &["table", "inspect", "t.albis"]).ok().text();
    assert!(shown.contains("200 in 4 row groups") && shown.contains("aligned rows") && shown.contains("square"), "{shown}");
    assert!(shown.contains("of bloom filters"), "{shown}");
    let seen = &forebay_in(home.path(), &["table", "inspect", "t.albis", "--json"]).ok().json()[0];
    assert_eq!(seen["groups"][0]["columns"], serde_json::json!(["id", "square"]));
    assert_eq!(seen["row_groups"][0]["statistics"]["id"], serde_json::json!({"nulls": 0, "min": "100", "max": "163"}));
    let filter = &seen["row_groups"][0]["statistics"]["square"]["bloom_filter"];
    // 64 different values, and 10.5 bits for each of them.
    assert_eq!(filter[1].as_u64().unwrap() - filter[0].as_u64().unwrap(), 96, "{filter}");
    assert_eq!(seen["bytes"], std::fs::metadata(home.path().join("t.albis")).unwrap().len());
    for back in ["back.parquet", "back.csv", "back.ndjson", "back.arrow", "back.albis"] {
        forebay_in(home.path(), &["table", "convert", "t.albis", back]).ok();
        forebay_in(home.path(), &["table", "convert", back, "again.csv"]).ok();
        let again = std::fs::read_to_string(home.path().join("again.csv")).unwrap();
        let lines = again.lines().collect::<Vec<_>>();
        assert_eq!((lines.len(), lines[1], lines[200]), (201, "100,word-0,10000", "99,word-4,9801"), "{back}");
    }
}

#[test]
fn what_can_not_be_converted_says_why_and_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    local(home.path());
    let run = |arguments: &[&str]| forebay_in(home.path(), &[&["table"], arguments].concat());
    run(&["convert", "a.csv"]).fails(2, &[]);
    run(&["convert", "a.csv", "out.csv", "--group", "id"]).fails(2, &[".albis"]);
    run(&["convert", "a.csv", "out"]).fails(1, &["out", ".albis"]);
    run(&["convert", "none.csv", "out.albis"]).fails(1, &["none.csv"]);
    run(&["convert", "a.csv", "out.albis", "--group", "nope"]).fails(1, &["nope"]);
    run(&["inspect", "a.csv"]).fails(1, &["a.csv"]);
    std::fs::write(home.path().join("bad.csv"), format!("id,word,square\n{}oops,w,1\n", "1,w,1\n".repeat(3000))).unwrap();
    for output in ["out.albis", "out.parquet"] {
        run(&["convert", "a.csv", "bad.csv", output]).fails(1, &["oops"]);
    }
    let mut left = std::fs::read_dir(home.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect::<Vec<_>>();
    left.retain(|name| name.contains("out") || name.contains("part"));
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn files_of_mounts_are_converted_and_queries_lay_them_out() {
    let (home, up, _bucket) = lake_of(&[("x.csv", csv(300))]);
    let at = up.address();
    let run = |arguments: &[&str]| forebay_with(home.path(), &[arguments, &["--coordinator", &at]].concat(), |_| (), b"");
    run(&["table", "convert", "/lake/x.csv", "/lake/x.albis"]).ok();
    run(&["table", "suggest", "/lake/x.albis"]).fails(1, &["forebay sql", "--queries"]);
    let rows = run(&["sql", "--csv", "select count(*) as c, max(n) as m from '/lake/x.albis' where n < 200"]).ok().text();
    assert_eq!(rows, "c,m\n200,199\n");
    for _ in 0..3 {
        run(&["sql", "--csv", "select word, sum(square) as s from '/lake/x.albis' group by word limit 1"]).ok();
    }
    let sql = |statement: &str, change: &dyn Fn(&mut std::process::Command)| {
        forebay_with(home.path(), &["sql", "--csv", statement, "--coordinator", &at], change, b"").ok();
    };
    for _ in 0..9 {
        sql("select n, word from '/lake/x.albis' limit 1", &|command| {
            command.env("FOREBAY_QUERY_HISTORY", "false");
        });
    }
    let groups = run(&["table", "suggest", "/lake/x.albis", "--json"]).ok().json();
    let columns = groups.iter().map(|group| group["columns"].to_string()).collect::<Vec<_>>();
    assert_eq!(columns, [r#"["n"]"#, r#"["square","word"]"#], "{groups:?}");
    std::fs::write(home.path().join("q.sql"), "select n, word from '/lake/x.albis'; select word, n from '/lake/x.albis';")
        .unwrap();
    let shown = run(&["table", "suggest", "/lake/x.albis", "--queries", "q.sql"]).ok().text();
    assert!(shown.contains("--group 'n,word'"), "{shown}");
    // Where a relative path was meant is not remembered.
    std::fs::create_dir(home.path().join("there")).unwrap();
    std::fs::write(home.path().join("there/near.csv"), "a,b\n1,2\n").unwrap();
    sql("select a from 'near.csv'", &|command| {
        command.current_dir(home.path().join("there"));
    });
    run(&["table", "suggest", "there/near.csv"]).fails(1, &["of them name tables or files that are not there", "relative"]);
}
