//! A request that says its trace is a part of it, to what is asked of shared storage.

use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_testbed::add_mount;
use forebay_trace::{Collector, Exporting};
use forebay_types::MountOptions;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::rig::client::request;
use crate::rig::cluster::{Cluster, gateway_settings};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

type Spans = Arc<Mutex<Vec<Value>>>;

/// Answers requests of one connection, and keeps the spans that they bring.
async fn take(mut socket: TcpStream, spans: Spans) {
    let mut came = Vec::new();
    while let Ok(1..) = socket.read_buf(&mut came).await {
        let text = String::from_utf8_lossy(&came).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() != length.unwrap_or(0usize) {
            continue;
        }
        let body: Value = serde_json::from_str(body).unwrap();
        let all = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
        spans.lock().extend(all.iter().cloned());
        came.clear();
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
    }
}

/// A collector that this process sends its spans to, where these are asked for: no other test's requests are.
async fn collector() -> (Spans, Exporting) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let spans = Spans::default();
    let kept = Arc::clone(&spans);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(take(socket, Arc::clone(&kept)));
        }
    });
    let exporting = Exporting::start(Collector { endpoint, share: 0.0, roles: "gateway".to_string() });
    (spans, exporting.unwrap().expect("no other test of this process does"))
}

/// The names of spans to that one from the first of its trace, which is below the one of who asked; none where some have not come.
fn way_to<'a>(spans: &'a [Value], from: &'a Value) -> Option<Vec<&'a str>> {
    let mut way = vec![from["name"].as_str().unwrap()];
    let mut parent = &from["parentSpanId"];
    while let Some(above) = spans.iter().find(|span| span["spanId"] == *parent && span["traceId"] == from["traceId"]) {
        way.push(above["name"].as_str().unwrap());
        parent = &above["parentSpanId"];
    }
    way.reverse();
    (*parent == PARENT).then_some(way)
}

/// Whether a trace has these spans, each below the one before.
fn has_way(spans: &[Value], trace: &str, way: &[&str]) -> bool {
    let last = |span: &&Value| span["traceId"] == trace && span["name"] == way[way.len() - 1];
    spans.iter().filter(last).any(|span| way_to(spans, span).is_some_and(|names| names == way))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_says_its_trace_is_a_part_of_it_to_the_store() {
    let (spans, exporting) = collector().await;
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    let folder = tempfile::tempdir().unwrap();
    let files = format!("file://{}", folder.path().display());
    add_mount(&cluster.client, "nas", &files, MountOptions::default()).await;
    for key in ["traced/a", "traced/b", "traced/c"] {
        s3.put("data", key, b"some bytes").unwrap();
    }
    let ask = |method: &'static str, path: &str, trace: &str, flags: &str| {
        let body: &[u8] = if method == "PUT" { b"what is written" } else { b"" };
        let asked = request(method, path).body(body);
        if flags.is_empty() { asked } else { asked.header("traceparent", &format!("00-{trace}-{PARENT}-{flags}")) }
    };
    let trace = |number: usize| format!("{}{number:02x}", &TRACE[..30]);
    // Neither one that is not recorded where it comes from, nor one that says nothing.
    for (path, flags) in [("/lake/traced/b", "00"), ("/lake/traced/c", "")] {
        let answer = ask("GET", path, TRACE, flags).send(cluster.address()).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "some bytes"), "{path}");
    }
    let ways: [(&str, &str, &[&str]); 8] = [
        ("GET", "/lake/traced/a", &["s3", "read_object", "answer", "storage get"]),
        ("HEAD", "/lake/traced/a", &["s3", "stat", "answer", "storage head"]),
        ("GET", "/lake?list-type=2&prefix=traced%2F", &["s3", "list", "answer", "storage list"]),
        ("PUT", "/lake/traced/new", &["s3", "storage put"]),
        ("PUT", "/nas/traced/new", &["s3", "put", "answer", "storage put"]),
        ("DELETE", "/nas/traced/new", &["s3", "delete", "answer", "storage delete"]),
        ("PUT", "/tmp/traced/new", &["s3", "node", "answer"]),
        ("GET", "/tmp/traced/new", &["s3", "node", "answer"]),
    ];
    for (number, (method, path, _)) in ways.iter().enumerate() {
        let answer = ask(*method, path, &trace(number), "01").send(cluster.address()).await;
        assert!([200, 204].contains(&answer.status), "{method} {path}: {} {}", answer.status, answer.text());
    }
    let missing = || {
        let spans = spans.lock();
        let has = |number: usize, way: &[&str]| has_way(&spans, &trace(number), way);
        ways.iter().enumerate().filter(|(number, (.., way))| !has(*number, *way)).map(|(_, way)| *way).collect::<Vec<_>>()
    };
    let began = Instant::now();
    while !missing().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?} is not among {:#?}", missing(), spans.lock());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    exporting.finish().await;
    let spans = spans.lock().clone();
    let is_asked = |span: &Value| (0..ways.len()).any(|number| span["traceId"] == trace(number));
    assert!(spans.iter().all(is_asked), "{spans:#?}");
    let get = spans.iter().find(|span| span["traceId"] == trace(0) && span["name"] == "storage get").unwrap();
    let path = &get["attributes"][0];
    assert_eq!((&path["key"], &path["value"]["stringValue"]), (&"forebay.path".into(), &"/lake/traced/a".into()));
}
