//! A request that says its trace is a part of it, to the GET of shared storage.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_trace::{Collector, Exporting};
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

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_says_its_trace_is_a_part_of_it_to_the_get() {
    let (spans, exporting) = collector().await;
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    for key in ["traced/a", "traced/b", "traced/c"] {
        s3.put("data", key, b"some bytes").unwrap();
    }
    let get = |path: &str, flags: &str| {
        let asked = request("GET", path);
        if flags.is_empty() { asked } else { asked.header("traceparent", &format!("00-{TRACE}-{PARENT}-{flags}")) }
    };
    // Neither one that is not recorded where it comes from, nor one that says nothing.
    for (path, flags) in [("/lake/traced/b", "00"), ("/lake/traced/c", ""), ("/lake/traced/a", "01")] {
        let answer = get(path, flags).send(cluster.address()).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "some bytes"), "{path}");
    }
    let has = |name: &str| spans.lock().iter().any(|span| span["name"] == name);
    let began = Instant::now();
    while !(has("storage get") && has("s3")) {
        assert!(began.elapsed() < Duration::from_secs(20), "{:#?}", spans.lock());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    exporting.finish().await;
    let spans = spans.lock().clone();
    assert!(spans.iter().all(|span| span["traceId"] == TRACE), "{spans:#?}");
    let named: BTreeMap<&str, &Value> = spans.iter().map(|span| (span["name"].as_str().unwrap(), span)).collect();
    let way = ["s3", "read_object", "answer", "storage get"];
    assert_eq!(named["s3"]["parentSpanId"], PARENT);
    for (above, below) in way.iter().zip(&way[1..]) {
        assert_eq!(named[below]["parentSpanId"], named[above]["spanId"], "{below} is below {above}: {spans:#?}");
    }
    let path = &named["storage get"]["attributes"][0];
    assert_eq!((&path["key"], &path["value"]["stringValue"]), (&"forebay.path".into(), &"/lake/traced/a".into()));
}
