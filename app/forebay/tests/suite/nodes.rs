//! Temporary nodes by the command line.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Role, command, forebay, forebay_with, interrupt};

/// What every way into the namespace has to pass: an operation and its answer a line.
const CONFORMANCE: &str = include_str!("../../../../docs/specs/nodes-conformance.jsonl");

#[test]
fn a_batch_answers_as_the_suite_says() {
    let home = tempfile::tempdir().unwrap();
    let up = Role::up(home.path());
    let cases: Vec<(&str, &str)> = CONFORMANCE.lines().map(|case| case.split_once('\t').unwrap()).collect();
    let input: String = cases.iter().map(|(operation, _)| format!("{operation}\n")).collect();
    let address = up.address();
    let ran = forebay_with(home.path(), &["node", "batch", "--coordinator", &address], |_| (), input.as_bytes()).ok();
    let answers = ran.json();
    assert_eq!(answers.len(), cases.len());
    for ((operation, expected), mut answer) in cases.into_iter().zip(answers) {
        let failed = answer.as_object_mut().unwrap().remove("message").is_some();
        assert_eq!(answer, serde_json::from_str::<Value>(expected).unwrap(), "{operation}");
        assert_eq!(failed, answer.get("error").is_some());
    }
}

#[test]
fn who_waits_for_operations_or_bytes_can_be_interrupted() {
    let home = tempfile::tempdir().unwrap();
    let up = Role::up(home.path());
    let begun = |arguments: &[&str]| {
        let mut run = command(home.path());
        run.arg("node").args(arguments).args(["--coordinator", &up.address()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut run = run.spawn().unwrap();
        let input = run.stdin.take().unwrap();
        (run, input)
    };
    let (mut batch, mut operations) = begun(&["batch"]);
    operations.write_all(b"{\"op\":\"get\",\"path\":\"/tmp/k\"}\n").unwrap();
    let mut answer = String::new();
    BufReader::new(batch.stdout.take().unwrap()).read_line(&mut answer).unwrap();
    assert!(answer.contains("NotFound"), "{answer}");
    assert_eq!(interrupt(batch).0, Some(130));

    // The file is there as soon as its bytes are waited for.
    let (append, _bytes) = begun(&["append", "/tmp/f"]);
    assert!((0..500).any(|_| forebay(&up.address(), &["node", "stat", "/tmp/f"]).code == 0));
    assert_eq!(interrupt(append).0, Some(130));
}

#[test]
fn who_may_only_read_temporary_data_is_denied_the_rest() {
    let home = tempfile::tempdir().unwrap();
    let up = Role::up(home.path());
    let at = up.address();
    forebay(&at, &["node", "mkdir", "/tmp/d"]).ok();
    let token = forebay(&at, &["token", "add", "reader", "--read", "--mount", "tmp"]).ok().text().trim().to_string();
    let change = |command: &mut std::process::Command| {
        command.env("FOREBAY_TOKEN", &token).env("XDG_RUNTIME_DIR", "/none");
    };
    let operations = b"{\"op\":\"put\",\"path\":\"/tmp/d/k\",\"data\":\"v\"}\n{\"op\":\"get\",\"path\":\"/tmp/d/k\"}\n";
    let ran = forebay_with(home.path(), &["node", "batch", "--coordinator", &at], change, operations).ok();
    let kinds: Vec<_> = ran.json().into_iter().map(|answer| answer["error"].clone()).collect();
    assert_eq!(kinds, ["Denied", "NotFound"], "{}", ran.text());
    forebay_with(home.path(), &["node", "rm", "/tmp/d", "--coordinator", &at], change, b"")
        .fails(1, &["/tmp/d", "may not write temporary data"]);
}

#[test]
fn commands_put_list_move_and_delete() {
    let home = tempfile::tempdir().unwrap();
    let up = Role::up(home.path());
    let address = up.address();
    let run = |arguments: &[&str], input: &[u8]| {
        forebay_with(home.path(), &[&["node"], arguments, &["--coordinator", &address]].concat(), |_| (), input)
    };
    run(&["mkdir", "/tmp/t", "--type", "table"], b"").ok();
    run(&["put", "/tmp/t/k"], b"some bytes").ok();
    assert_eq!(run(&["get", "/tmp/t/k"], b"").ok().text(), "some bytes");
    run(&["mkdir", "/tmp/b", "--type", "bag"], b"").ok();
    for (name, bytes) in [("2", "world"), ("1", "hello ")] {
        run(&["append", &format!("/tmp/b/{name}")], bytes.as_bytes()).ok();
    }
    assert_eq!(run(&["bag", "/tmp/b"], b"").ok().text(), "hello world");
    assert_eq!(run(&["get", "/tmp/b/2"], b"").ok().text(), "world");
    assert_eq!(run(&["ls"], b"").ok().lines(), ["b", "t"]);
    assert_eq!(
        run(&["stat", "/tmp/t/k", "--json"], b"").ok().text(),
        "{\"type\":\"key-value\",\"bytes\":10,\"storage_class\":\"dram\"}\n"
    );
    run(&["mv", "/tmp/t/k", "/tmp/t/l"], b"").ok();
    assert_eq!(run(&["ls", "/tmp/t", "--json"], b"").ok().text(), "{\"name\":\"l\",\"type\":\"key-value\",\"bytes\":10}\n");
    run(&["rm", "/tmp/t"], b"").fails(1, &["/tmp/t", "recursively"]);
    run(&["rm", "-r", "/tmp/t", "/tmp/b"], b"").ok();
    run(&["get", "/tmp/t/l"], b"").fails(1, &["/tmp/t/l"]);
    run(&["mkdir", "/tmp/at", "--location", "rack1", "--storage-class", "disk"], b"").ok();
    run(&["put", "/tmp/at/k", "--location", "rack2"], b"some bytes").ok();
    run(&["put", "/tmp/at/k", "--location", "rack2"], b"others").ok();
    run(&["append", "/tmp/at/f"], b"text").ok();
    run(&["append", "/tmp/at/free", "--location", "any"], b"text").ok();
    assert_eq!(run(&["get", "/tmp/at/k"], b"").ok().text(), "others");
    assert_eq!(run(&["stat", "/tmp/at/k"], b"").ok().text(), "key-value, 6 bytes, disk, at rack2\n");
    assert_eq!(run(&["stat", "/tmp/at/free"], b"").ok().text(), "file, 4 bytes, disk\n");
    let stat = run(&["stat", "/tmp/at/f", "--json"], b"").ok().text();
    assert_eq!(stat, "{\"type\":\"file\",\"bytes\":4,\"storage_class\":\"disk\",\"location\":\"rack1\"}\n");
    run(&["put", "/tmp/at/k", "--storage-class", "dram"], b"in memory").ok();
    assert_eq!(run(&["get", "/tmp/at/k"], b"").ok().text(), "in memory");
    assert_eq!(run(&["stat", "/tmp/at/k"], b"").ok().text(), "key-value, 9 bytes, dram, at rack2\n");
    run(&["put", "/tmp/at/k"], b"as it was").ok();
    assert_eq!(run(&["stat", "/tmp/at/k"], b"").ok().text(), "key-value, 9 bytes, dram, at rack2\n");
    run(&["append", "/tmp/at/new", "--storage-class", "dram"], b"one").ok();
    run(&["append", "/tmp/at/new", "--storage-class", "dram"], b"two").ok();
    assert_eq!(run(&["stat", "/tmp/at/new"], b"").ok().text(), "file, 6 bytes, dram, at rack1\n");
    run(&["append", "/tmp/at/new", "--storage-class", "disk"], b"x").fails(1, &["/tmp/at/new", "dram", "delete it"]);
    run(&["put", "/tmp/at/new", "--storage-class", "disk"], b"x").fails(1, &["/tmp/at/new", "file"]);
    assert_eq!(run(&["ls", "/tmp/at"], b"").ok().lines(), ["f", "free", "k", "new"]);
    run(&["mkdir", "/tmp/full", "--quota", "1KB"], b"").ok();
    run(&["put", "/tmp/full/k"], &[7; 600]).ok();
    run(&["put", "/tmp/full/l"], &[7; 401]).fails(1, &["/tmp/full", "quota of 1000 bytes", "600 of them"]);
    run(&["append", "/tmp/full/f"], &[7; 401]).fails(1, &["/tmp/full", "quota of 1000 bytes"]);
    run(&["mkdir", "/tmp/full/inside"], b"").ok();
    run(&["put", "/tmp/full/inside/k"], &[7; 401]).fails(1, &["/tmp/full", "quota of 1000 bytes", "600 of them"]);
    assert_eq!(run(&["stat", "/tmp/full"], b"").ok().text(), "directory, 0 bytes, dram, 600 bytes of a quota of 1000B\n");
    assert_eq!(run(&["quota", "/tmp/full", "--json"], b"").ok().text(), "{\"quota\":1000,\"used\":600}\n");
    run(&["quota", "/tmp/full", "2KB"], b"").ok();
    run(&["put", "/tmp/full/l"], &[7; 401]).ok();
    assert_eq!(run(&["quota", "/tmp/full"], b"").ok().text(), "1001 bytes of a quota of 2000B\n");
    run(&["quota", "/tmp/full", "none"], b"").ok();
    assert_eq!(run(&["quota", "/tmp/full"], b"").ok().text(), "1001 bytes, without a quota\n");
    run(&["quota", "/tmp", "1GiB"], b"").fails(1, &["/tmp"]);
    run(&["rm", "-r", "/tmp/full"], b"").ok();
    run(&["mkdir", "/tmp/none", "--location", ""], b"").fails(1, &["location"]);
    for _ in 0..2 {
        run(&["mkdir", "-p", "/tmp/deep/er/est", "--type", "table"], b"").ok();
    }
    assert_eq!(run(&["ls", "/tmp/deep", "--json"], b"").ok().text(), "{\"name\":\"er\",\"type\":\"directory\",\"bytes\":0}\n");
    run(&["mkdir", "-p", "/tmp/deep/er/est"], b"").fails(1, &["/tmp/deep/er/est", "table"]);
    run(&["put", "/tmp/deep/k"], b"stays").ok();
    run(&["mkdir", "/tmp/deep/k", "--lease", "60s"], b"").fails(1, &["/tmp/deep/k", "key-value"]);
    assert_eq!(run(&["get", "/tmp/deep/k"], b"").ok().text(), "stays");
    run(&["rm", "-r", "/tmp/deep"], b"").ok();
    run(&["rm", "-r", "/tmp/at"], b"").ok();
    forebay(&address, &["node", "get", "/lake/x"]).fails(1, &["/tmp"]);
}
