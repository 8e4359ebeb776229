//! A query on a cluster is one trace, from its command to each GET.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::collector::Collector;
use crate::support::{Bucket, csv, forebay_with, http, lake_with};

const PARENT: &str = "b7ad6b7169203331";

fn traceparent(trace: &str, flags: &str) -> String {
    format!("00-{trace}-{PARENT}-{flags}")
}

/// The spans of a trace, once it has all of these and each is below another one of them, or below what it was begun in.
#[track_caller]
fn whole(collector: &Collector, trace: &str, names: &[&str]) -> Vec<Value> {
    let began = Instant::now();
    loop {
        let spans: Vec<Value> = collector.spans().into_iter().filter(|span| span["traceId"] == trace).collect();
        let is_whole = {
            let ids: BTreeSet<&str> = spans.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
            let is_below = |span: &Value| span["parentSpanId"].as_str().is_some_and(|id| id == PARENT || ids.contains(id));
            let has = |name: &&str| spans.iter().any(|span| span["name"] == **name);
            names.iter().all(has) && spans.iter().all(is_below)
        };
        if is_whole {
            return spans;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{names:?} are not all in {spans:#?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The names of the spans above one, the nearest first.
fn above<'a>(spans: &'a [Value], span: &'a Value) -> Vec<&'a str> {
    let by_id: BTreeMap<&str, &Value> = spans.iter().map(|span| (span["spanId"].as_str().unwrap(), span)).collect();
    let mut names = Vec::new();
    let mut at = span;
    while let Some(parent) = by_id.get(at["parentSpanId"].as_str().unwrap()).copied() {
        names.push(parent["name"].as_str().unwrap());
        at = parent;
    }
    names
}

#[test]
fn a_query_on_a_cluster_is_one_trace_from_its_command_to_each_get() {
    let (bucket, collector) = (Bucket::s3(), Collector::start());
    bucket.put_csv("t", 4, 20_000);
    bucket.put("u/a.csv", &csv(20_000));
    let ports = ["--scheduler-listen", "127.0.0.1:0", "--executor-listen", "127.0.0.1:0", "--slots", "2"];
    let (home, up, _) = lake_with(&bucket, &[&["--cluster", "2", "--otlp-endpoint", &collector.endpoint], &ports[..]].concat());
    let (recorded, silent) = ("0af7651916cd43dd8448eb211c80319c", "1af7651916cd43dd8448eb211c80319c");
    let query = ["sql", "--csv", "--coordinator", &up.address(), "select count(*) as n from '/lake/t/*.csv' where square > 5"];
    let run = |trace: &str, flags: &str| {
        let change = |command: &mut Command| {
            command.env("TRACEPARENT", traceparent(trace, flags)).env("FOREBAY_OTLP_ENDPOINT", &collector.endpoint);
        };
        assert_eq!(forebay_with(home.path(), &query, change, b"").ok().text(), "n\n79988\n");
    };
    run(recorded, "01");
    let spans = whole(&collector, recorded, &["forebay sql", "query", "task", "answer", "storage get"]);
    let named = |name: &'static str| spans.iter().filter(move |span| span["name"] == name);
    assert_eq!((named("forebay sql").count(), named("query").count()), (1, 1));
    for get in named("storage get") {
        let above = above(&spans, get);
        assert_eq!(above.first(), Some(&"answer"), "a worker asks for it: {above:?}");
        assert_eq!(above[above.len() - 2..], ["query", "forebay sql"], "{above:?}");
        assert!(get["attributes"][0]["value"]["stringValue"].as_str().unwrap().starts_with("/lake/t/"), "{get}");
    }
    let query_span = named("query").next().unwrap();
    let sql = query_span["attributes"].as_array().unwrap().iter().find(|fact| fact["key"] == "db.query.text").unwrap();
    assert_eq!(sql["value"]["stringValue"], query[4]);

    // One that is not recorded where it comes from is not here, neither as a part of that trace nor as one of its own.
    run(silent, "00");
    let host = up.place("console").trim_start_matches("http://").trim_end_matches('/').to_string();
    let secret = std::fs::read_to_string(home.path().join("forebay-data/owner.secret")).unwrap();
    let other = "2af7651916cd43dd8448eb211c80319c";
    let headers = format!("Authorization: Bearer {}\r\nTraceparent: {}\r\n", secret.trim(), traceparent(other, "01"));
    assert!(http::post(&host, "/api/v1/sql", &headers, "select 1 as one").starts_with("HTTP/1.1 200"));
    let spans = whole(&collector, other, &["http sql", "query"]);
    assert_eq!(above(&spans, spans.iter().find(|span| span["name"] == "query").unwrap()), ["http sql"]);
    // A load goes on when its request is answered, and is a part of its trace to the end.
    let load = "3af7651916cd43dd8448eb211c80319c";
    let headers = format!("Authorization: Bearer {}\r\nTraceparent: {}\r\n", secret.trim(), traceparent(load, "01"));
    assert!(http::post(&host, "/api/v1/load?path=/lake/u/", &headers, "").starts_with("HTTP/1.1 200"));
    let spans = whole(&collector, load, &["http load", "prefetch", "answer", "storage get"]);
    let get = spans.iter().find(|span| span["name"] == "storage get").unwrap();
    let above = above(&spans, get);
    assert_eq!((above.first(), above.last()), (Some(&"answer"), Some(&"http load")), "{above:?}");
    let traces: BTreeSet<String> = collector.spans().iter().map(|span| span["traceId"].as_str().unwrap().to_string()).collect();
    assert_eq!(traces, BTreeSet::from([recorded.to_string(), other.to_string(), load.to_string()]));
}

#[test]
fn a_collector_that_is_away_keeps_nobody_waiting() {
    let home = tempfile::tempdir().unwrap();
    let arguments = ["sql", "--embedded", "--dram", "64MiB", "--disk", "0", "--csv", "select 1 as one"];
    let change = |endpoint: &'static str| move |command: &mut Command| _ = command.env("FOREBAY_OTLP_ENDPOINT", endpoint);
    let began = Instant::now();
    let ran = forebay_with(home.path(), &arguments, change("http://127.0.0.1:1"), b"").ok();
    assert_eq!(ran.text(), "one\n1\n");
    assert!(ran.stderr.contains("spans are lost") && began.elapsed() < Duration::from_secs(60), "{}", ran.stderr);
    forebay_with(home.path(), &arguments, change("localhost:4318"), b"").fails(2, &["otlp-endpoint", "http://HOST:4318"]);
}
