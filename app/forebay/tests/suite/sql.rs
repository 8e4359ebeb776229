//! `forebay sql`: where statements come from and what they print.

use std::time::Duration;

use serde_json::json;

use crate::support::{Bucket, Role, Terminal, csv, forebay, forebay_in, forebay_with, interrupted, lake_of};

fn up() -> (tempfile::TempDir, Role, Bucket) {
    lake_of(&[("x.csv", csv(3))])
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
    // One may begin as a flag does, and a flag that is not there is none.
    assert_eq!(forebay(&at, &["sql", "-- one\nselect 1 as a", "--csv"]).ok().text(), "a\n1\n");
    forebay(&at, &["sql", "--jsn", "select 1"]).fails(2, &["--jsn"]);
    forebay(&at, &["sql", " ; -- nothing"]).fails(2, &["no statement"]);
    // The first failure ends a script.
    let ran = forebay(&at, &["sql", "--csv", "select 1 as a; select nonsense; select 2 as b"]).fails(1, &["nonsense"]);
    assert_eq!(ran.text(), "a\n1\n");
    // It is named by where it begins, as in a file that an editor has begun with a mark.
    std::fs::write(&file, "\u{feff}select 1 as a;\n\nselect\n  nonsense;").unwrap();
    let ran = forebay(&at, &["sql", "--csv", "-f", file.to_str().unwrap()]).fails(1, &["line 3", "nonsense"]);
    assert_eq!(ran.text(), "a\n1\n");
    forebay(&at, &["sql", "selec 1"]).fails(1, &["can't be read", "selec"]);
}

#[test]
fn a_statement_that_gives_way_to_nobody_is_given_up_at_once() {
    let (_home, up, _bucket) = up();
    // Each batch of one side is joined with all of the other before anything else has its turn.
    let side = |name: &str| format!("generate_series(1, 300000) {name}(value)");
    let join = format!("select count(*) from {} join {} on a.value * b.value % 1000003 = 7", side("a"), side("b"));
    let running = || std::thread::sleep(Duration::from_secs(2));
    let (code, took) = interrupted(&up.address(), &["sql", &join], running);
    assert!(code == Some(130) && took < Duration::from_secs(3), "{code:?} after {took:?}");
}

#[test]
fn what_a_library_traces_is_not_among_the_rows() {
    let (home, up, _bucket) = up();
    // DataFusion prints what such groups are made of, where it takes traces for asked for.
    let query = "select distinct n % 2 as k from '/lake/x.csv' order by k limit 1";
    for level in ["", "info", "trace"] {
        let arguments = ["sql", "--csv", "--coordinator", &up.address(), query];
        let ran = forebay_with(home.path(), &arguments, |command| _ = command.env("RUST_LOG", level), b"");
        assert_eq!(ran.ok().text(), "k\n0\n", "RUST_LOG={level}");
    }
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
    // There is no temporary data: these are files of this machine.
    let local = tempfile::tempdir_in("/tmp").unwrap();
    let made = local.path().join("made.csv");
    let run = |statement: &str| {
        forebay_in(home.path(), &["sql", "--embedded", "--dram", "64MiB", "--disk", "0", "--csv", statement]).ok().text()
    };
    run(&format!("copy (select 7 as seven) to '{}'", made.display()));
    assert_eq!(run(&format!("select seven from '{}'", made.display())), "seven\n7\n");
    assert_eq!(std::fs::read_to_string(&made).unwrap(), "seven\n7\n");
}

#[test]
fn top_draws_and_takes_keys_on_a_terminal() {
    let (home, up, _bucket) = up();
    let mut terminal = Terminal::top(home.path(), &up.address());
    terminal.line("2");
    terminal.wait_for("s3://data", 1);
    terminal.line("?");
    terminal.wait_for("Ctrl-C", 1);
    terminal.quit();
}

#[test]
fn the_prompt_takes_several_lines_survives_errors_and_has_a_history() {
    let (home, up, _bucket) = up();
    let mut terminal = Terminal::open(home.path(), &up.address(), "");
    terminal.line("select count(*)");
    terminal.wait_for("      -> ", 1);
    terminal.line(" as many from '/lake/x.csv';");
    terminal.wait_for("| many |", 1);
    terminal.wait_for("| 3    |", 1);
    terminal.line("select nonsense;");
    terminal.wait_for("forebay: ", 1);
    terminal.line("\\timing");
    terminal.wait_for("timing is on", 1);
    terminal.line("select 40 + 2 as answer;");
    terminal.wait_for("| 42     |", 1);
    terminal.wait_for("1 row in ", 1);
    terminal.line("\\d");
    terminal.wait_for("table_name", 1);
    terminal.line("\\help");
    terminal.wait_for("quit (also Ctrl-D)", 1);
    terminal.line("\\nope");
    terminal.wait_for("\\nope is no command", 1);
    terminal.quit();
    let history = std::fs::read_to_string(home.path().join(".local/state/forebay/sql-history")).unwrap();
    assert!(history.contains("40 + 2"), "{history}");
}
