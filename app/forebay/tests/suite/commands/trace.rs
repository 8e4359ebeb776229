//! `forebay trace convert` and `forebay record`: traces of others and of a running cluster, and what is made of them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Bucket, Role, command, forebay, forebay_in, forebay_with, lake_with};

/// 40 reads of two disks within two seconds, and a write of another.
fn alibaba() -> String {
    let read = |n: u64| format!("{},R,{},4096,{}\n", n * n % 4, n * 8_192, 1_577_808_000_000_000 + n * 50_000);
    (0..40).map(read).collect::<String>() + "9,W,0,4096,1577808002000000\n"
}

fn lines(home: &Path, file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(home.join(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_published_trace_is_converted_and_simulated_and_planned_for() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("io.csv"), alibaba()).unwrap();
    let convert = ["trace", "convert", "--from", "alibaba", "io.csv", "trace.jsonl", "--json"];
    let done = forebay_in(home.path(), &convert).ok().json().remove(0);
    assert_eq!(done, json!({"lines": 41, "accesses": 41, "left_out": 0}));
    let trace = lines(home.path(), "trace.jsonl");
    assert_eq!(
        trace[3],
        json!({"at_us": 1_577_808_000_150_000_u64, "op": "read", "path": "device/1", "start": 24_576, "bytes": 4_096})
    );
    assert_eq!(trace[40]["op"], "write");

    let simulate = ["simulate", "getafix", "--trace", "trace.jsonl", "--workers", "3", "--windows", "5", "--seeds", "1"];
    let more = ["--ways", "getafix,uniform-2", "--table-age", "500ms", "--skew", "skew.svg", "--json"];
    let rows = forebay_in(home.path(), &[&simulate[..], &more].concat()).ok().json();
    assert_eq!(rows.len(), 2);
    assert!(std::fs::read_to_string(home.path().join("skew.svg")).unwrap().contains("the newest first"));
    forebay_in(home.path(), &["simulate", "getafix", "--skew", "skew.svg"]).fails(2, &["--trace"]);
    let plan = ["plan", "replicas", "--from-log", "trace.jsonl", "--workers", "2", "--json"];
    let answer = forebay_in(home.path(), &plan).ok().json().remove(0);
    let counted: u64 = answer["assignment"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|bag| bag.as_object().unwrap().values())
        .map(|count| count.as_u64().unwrap())
        .sum();
    assert_eq!((counted, &answer["unsatisfied"]), (40, &json!({})), "reads, and not the write: {answer}");
    let jobs = ["simulate", "mixapart", "--trace", "trace.jsonl", "--workers", "2", "--task", "1s", "--json"];
    let rows = forebay_in(home.path(), &jobs).ok().json();
    let of = |row: &Value| (row["jobs"].as_u64(), row["tasks"].as_u64(), row["data_scheduler"].as_bool());
    assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), [(Some(40), Some(40), Some(true)), (Some(40), Some(40), Some(false))]);
    assert_eq!(rows[0]["reuse"], 0.95, "two disks are read, each by a first one");
    forebay_in(home.path(), &[&jobs[..], &["--reuse", "0.5"]].concat()).fails(2, &["--reuse", "--trace"]);
}

#[test]
fn what_cannot_be_read_is_named_and_leaves_no_half_trace() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("io.csv"), "0,R,0,4096,5\n0,R,0,-4,6\n0,R,0,8192,7\n").unwrap();
    let convert = ["trace", "convert", "--from", "alibaba", "io.csv", "trace.jsonl"];
    forebay_in(home.path(), &convert).fails(1, &["io.csv", "line 2", "\"-4\" is no length"]);
    let left: Vec<_> = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with("trace.jsonl")), "{left:?}");
    let ran = forebay_in(home.path(), &[&convert[..], &["--skip-unreadable"]].concat()).ok();
    assert!(ran.stderr.contains("left out: line 2") && ran.text().contains("2 accesses in 2 lines; 1 lines left out"));
    assert_eq!(lines(home.path(), "trace.jsonl").len(), 2);
    let piped = ["trace", "convert", "--from", "alibaba", "-", "-"];
    let ran = forebay_with(home.path(), &piped, |_| (), b"0,R,0,4096,5\n").ok();
    assert_eq!(ran.json(), [json!({"at_us": 5, "op": "read", "path": "device/0", "bytes": 4096})]);
    forebay_in(home.path(), &["trace", "convert", "--from", "ibm", "io.csv", "x"]).fails(2, &["ibm", "snia"]);
    forebay_in(home.path(), &["trace", "convert", "--from", "snia", "none.csv", "x"]).fails(1, &["none.csv"]);
    forebay_in(home.path(), &[&convert[..], &["--per-second", "0"]].concat()).fails(2, &["--per-second"]);
    std::fs::write(home.path().join("cut.jsonl"), "{\"at_us\":1,\"path\":\"a\",\"bytes\":1}\n{\"at_us\":1,").unwrap();
    for take in [
        &["simulate", "getafix", "--trace"][..],
        &["simulate", "mixapart", "--trace"],
        &["plan", "replicas", "--workers", "1", "--from-log"],
    ] {
        forebay_in(home.path(), &[take, &["cut.jsonl"]].concat()).fails(1, &["cut.jsonl", "line 2"]);
    }
}

#[test]
fn accesses_are_recorded_until_a_signal_ends_it() {
    let bucket = Bucket::folder();
    let (home, up, _) = lake_with(&bucket, &["--audit-log", "audit.jsonl"]);
    bucket.put("dt=1/a", &[7; 300_000]);
    let elsewhere = tempfile::tempdir().unwrap();
    let record = |flags: &[&str]| {
        let mut recorder = command(elsewhere.path());
        recorder.args(["record", "--coordinator", &up.address()]).args(flags);
        let mut recorder = recorder.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        let mut stderr = BufReader::new(recorder.stderr.take().unwrap());
        stderr.read_line(&mut said).unwrap();
        assert!(said.contains("recording accesses at 1 workers"), "{said:?}");
        // Who says more has somebody who listens.
        (recorder, stderr)
    };
    let use_it = || {
        forebay(&up.address(), &["cat", "/lake/dt=1/a"]).ok();
        forebay_with(elsewhere.path(), &["cp", "-", "/lake/new", "--coordinator", &up.address()], |_| (), b"text").ok();
    };
    let plain = record(&["--out", "plain.jsonl", "--json"]);
    let hidden = record(&["--out", "hidden.jsonl", "--anonymise"]);
    use_it();
    for (recorder, _stderr) in [plain, hidden] {
        let interrupt = std::process::Command::new("kill").args(["-INT", &recorder.id().to_string()]).status();
        assert!(interrupt.unwrap().success());
        let output = recorder.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains("\"lost\":0") || said.contains("hidden.jsonl"), "{said}");
    }
    let plain = lines(elsewhere.path(), "plain.jsonl");
    let read = |line: &&Value| line["path"] == "/lake/dt=1/a" && line["op"] == "read" && line["operation"].is_string();
    let bytes = |line: &Value| line["bytes"].as_u64().unwrap() * line["times"].as_u64().unwrap_or(1);
    assert!(plain.iter().filter(read).map(bytes).sum::<u64>() >= 300_000, "{plain:?}");
    let written = plain.iter().find(|line| line["op"] == "write").unwrap();
    assert_eq!((&written["path"], &written["bytes"]), (&json!("/lake/new"), &json!(4)));
    let hidden = lines(elsewhere.path(), "hidden.jsonl");
    assert_eq!(hidden.len(), plain.len());
    let text = std::fs::read_to_string(elsewhere.path().join("hidden.jsonl")).unwrap();
    assert!(!text.contains("lake") && !text.contains("dt=1") && !text.contains("new"), "{text}");
    // It is a trace as any other.
    let plan = ["plan", "replicas", "--from-log", "plain.jsonl", "--workers", "1"];
    forebay_in(elsewhere.path(), &plan).ok();

    let audit = std::fs::read_to_string(home.path().join("audit.jsonl")).unwrap();
    let told = audit.lines().filter(|line| line.contains("\"accesses\"") && line.contains("\"allowed\""));
    assert_eq!(told.count(), 2, "once a recording, however often it asks: {audit}");
}

#[test]
fn a_recording_ends_by_itself_and_is_for_administrators() {
    let home = tempfile::tempdir().unwrap();
    let up = Role::up(home.path());
    let token = forebay(&up.address(), &["token", "add", "etl", "--write"]).ok().text().trim().to_string();
    let elsewhere = tempfile::tempdir().unwrap();
    let at = up.address();
    let record = ["record", "--out", "trace.jsonl", "--for", "1s", "--json", "--coordinator", &at];
    let done = forebay_in(elsewhere.path(), &record).ok().json().remove(0);
    assert_eq!((&done["accesses"], &done["lost"], &done["workers"]), (&json!(0), &json!(0), &json!(1)));
    assert!(done["seconds"].as_f64().unwrap() >= 1.0 && lines(elsewhere.path(), "trace.jsonl").is_empty());
    let change = |command: &mut std::process::Command| {
        command.env("FOREBAY_TOKEN", &token).env("XDG_RUNTIME_DIR", "/none");
    };
    forebay_with(elsewhere.path(), &record, change, b"").fails(1, &["may not administer"]);
}
