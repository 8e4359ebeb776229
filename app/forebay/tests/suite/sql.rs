//! `forebay sql`: where statements come from and what they print.

use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use crate::support::{Bucket, Role, csv, forebay, forebay_in, forebay_with};

fn up() -> (tempfile::TempDir, Role, Bucket) {
    let home = tempfile::tempdir().unwrap();
    let up = Role::up(home.path());
    let bucket = Bucket::s3();
    bucket.put("x.csv", &csv(3));
    bucket.mount(&up);
    (home, up, bucket)
}

#[test]
fn rows_come_as_a_table_as_json_and_as_csv() {
    let (_home, up, _bucket) = up();
    let at = up.address();
    let query = "select n, word from '/lake/x.csv' order by n";
    let table = forebay(&at, &["sql", query]).ok().text();
    assert!(table.contains("| n | word   |") && table.contains("| 2 | word-2 |"), "{table}");
    let rows = forebay(&at, &["sql", "--json", query]).ok().json();
    assert_eq!(rows[2], json!({"n": 2, "word": "word-2"}));
    assert_eq!(forebay(&at, &["sql", "--csv", query]).ok().text(), "n,word\n0,word-0\n1,word-1\n2,word-2\n");
    let timed = forebay(&at, &["sql", "--timing", query]).ok();
    assert!(timed.stderr.contains("3 rows in "), "{}", timed.stderr);
}

#[test]
fn statements_come_from_arguments_files_and_the_standard_input() {
    let (home, up, _bucket) = up();
    let at = up.address();
    let script = "select 1 as a; -- two; statements\nselect ';' as b;";
    let expected = "a\n1\nb\n;\n";
    assert_eq!(forebay(&at, &["sql", "--csv", script]).ok().text(), expected);
    let file = home.path().join("script.sql");
    std::fs::write(&file, script).unwrap();
    assert_eq!(forebay(&at, &["sql", "--csv", "-f", file.to_str().unwrap()]).ok().text(), expected);
    let piped = forebay_with(home.path(), &["sql", "--csv", "--coordinator", &at], |_| (), script.as_bytes());
    assert_eq!(piped.ok().text(), expected);
    forebay(&at, &["sql", "-f", "missing.sql"]).fails(1, &["missing.sql"]);
    forebay(&at, &["sql", " ; -- nothing"]).fails(2, &["no statement"]);
    // The first failure ends a script.
    let ran = forebay(&at, &["sql", "--csv", "select 1 as a; select nonsense; select 2 as b"]).fails(1, &["nonsense"]);
    assert_eq!(ran.text(), "a\n1\n");
}

#[test]
fn copies_are_written_through_to_shared_storage() {
    let (_home, up, bucket) = up();
    let at = up.address();
    forebay(&at, &["sql", "copy (select n, square from '/lake/x.csv') to '/lake/out/x.parquet'"]).ok();
    assert!(bucket.server().counters().puts > 0);
    let back = forebay(&at, &["sql", "--csv", "select sum(square) as s from '/lake/out/*.parquet'"]).ok().text();
    assert_eq!(back, "s\n5\n");
}

#[test]
fn without_a_running_cluster_it_runs_embedded() {
    let home = tempfile::tempdir().unwrap();
    let folder = Bucket::folder();
    folder.put("x.csv", &csv(5));
    {
        let up = Role::up(home.path());
        folder.mount(&up);
    }
    let arguments = ["sql", "--embedded", "--dram", "64MiB", "--disk", "0", "--csv", "select count(*) as n from '/lake/x.csv'"];
    assert_eq!(forebay_in(home.path(), &arguments).ok().text(), "n\n5\n");
    assert_eq!(forebay_in(home.path(), &arguments).ok().text(), "n\n5\n");
}

/// Runs the prompt on a terminal of its own, made by `script`, and gives what it showed.
fn type_in(home: &std::path::Path, at: &str, keys: &str) -> String {
    let command = format!("{} sql --coordinator {at}", env!("CARGO_BIN_EXE_forebay"));
    let mut child = std::process::Command::new("script")
        .args(["-q", "-e", "-c", &command, "/dev/null"])
        .env("HOME", home)
        .env("TERM", "xterm")
        .env_remove("XDG_STATE_HOME")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for key in keys.split_inclusive('\n') {
        std::thread::sleep(std::time::Duration::from_millis(300));
        stdin.write_all(key.as_bytes()).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{shown}");
    shown
}

#[test]
fn the_prompt_takes_several_lines_survives_errors_and_has_a_history() {
    let (home, up, _bucket) = up();
    let at = up.address();
    let keys = "select count(*)\n as many from '/lake/x.csv';\nselect nonsense;\n\\timing\nselect 40 + 2 as answer;\n\\help\n\\nope\n\\q\n";
    let shown = type_in(home.path(), &at, keys);
    for words in [
        "| many |",
        "| 3    |",
        "nonsense",
        "timing is on",
        "| 42     |",
        "1 row in ",
        "quit (also Ctrl-D)",
        "\\nope is no command",
    ] {
        assert!(shown.contains(words), "no {words:?} in {shown}");
    }
    let history = std::fs::read_to_string(home.path().join(".local/state/forebay/sql-history")).unwrap();
    assert!(history.contains("40 + 2"), "{history}");
}
