//! The lines of statements that took long, in the logs of processes.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Bucket, Role, csv, forebay_with, http, lake_with};

/// Shorter than any statement takes.
const NOTHING: &str = "1ms";
/// Takes longer in any case.
const LONGER: &str = "select count(*) as n from generate_series(1, 3000000)";

/// The lines of a log of JSON that are about slow statements.
fn slow(log: &str) -> Vec<Value> {
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["target"] == "slow_query").collect()
}

/// The first of them that a process logs.
#[track_caller]
fn first(up: &Role) -> Value {
    let began = Instant::now();
    loop {
        let lines = slow(&up.log());
        assert!(lines.len() < 2, "{lines:?}");
        if let Some(line) = lines.into_iter().next() {
            return line;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "it is not told: {}", up.log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_slow_statement_is_told_by_the_process_that_runs_it() {
    let bucket = Bucket::s3();
    bucket.put("x.csv", &csv(30));
    let (home, up, _) = lake_with(&bucket, &["--slow-query", NOTHING, "--log-format", "json"]);
    let host = up.place("console").trim_start_matches("http://").trim_end_matches('/').to_string();
    let secret = std::fs::read_to_string(home.path().join("forebay-data/owner.secret")).unwrap();
    let bearer = format!("Authorization: Bearer {}\r\nContent-Type: application/sql\r\n", secret.trim());
    let answer = http::post(&host, "/api/v1/sql", &bearer, "select count(*) as n from '/lake/x.csv' /* s3://a:b@c */");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let line = first(&up);
    let told = ["who", "outcome", "level", "message"].map(|field| line[field].as_str().unwrap());
    assert_eq!(told, ["owner", "done", "INFO", "slow query"]);
    assert_eq!(line["sql"].as_str().unwrap().trim_end(), "select count(*) as n from '/lake/x.csv'");
    assert_eq!(line["rows"], 1);
    assert!(line["bytes_read"].as_u64().unwrap() > 0 && line["seconds"].as_f64().unwrap() > 0.0, "{line}");

    // A command tells it where it is asked to, and otherwise not.
    let arguments = ["sql", "--csv", "--coordinator", &up.address(), "--log-format", "json", LONGER];
    let own = |log: &'static str| {
        let change = |command: &mut Command| {
            command.env("FOREBAY_SLOW_QUERY", NOTHING).env("FOREBAY_LOG", log);
        };
        let ran = forebay_with(home.path(), &arguments, change, b"").ok();
        assert_eq!(ran.text(), "n\n3000000\n");
        slow(&ran.stderr)
    };
    let lines = own("slow_query=info");
    assert!(lines.len() == 1 && lines[0]["sql"] == LONGER, "{lines:?}");
    assert!(own("warn").is_empty());
    assert_eq!(slow(&up.log()).len(), 1, "it ran in the command");
}

#[test]
fn a_slow_job_is_told_by_the_scheduler() {
    let bucket = Bucket::s3();
    bucket.put("x.csv", &csv(3000));
    let ports = ["--scheduler-listen", "127.0.0.1:0", "--executor-listen", "127.0.0.1:0", "--slots", "2"];
    let flags = ["--cluster", "1", "--slow-query", NOTHING, "--log-format", "json"];
    let (home, up, _) = lake_with(&bucket, &[&flags[..], &ports].concat());
    let arguments = ["sql", "--csv", "--coordinator", &up.address(), "select sum(n) as s from '/lake/x.csv'"];
    assert_eq!(forebay_with(home.path(), &arguments, |_| (), b"").ok().text(), "s\n4498500\n");
    let line = first(&up);
    assert_eq!((line["who"].as_str(), line["outcome"].as_str()), (Some("owner"), Some("done")), "{line}");
    assert!(line["tasks"].as_u64().unwrap() > 0 && line["sql"].as_str().unwrap().starts_with("select sum(n)"), "{line}");
}
