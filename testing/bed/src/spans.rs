//! Spans of this process, as a collector of OpenTelemetry gets them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_trace::{Collector, Exporting};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The span of those who ask, of which nothing comes here.
const PARENT: &str = "b7ad6b7169203331";
/// How long spans may take to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came so far.
type All = Arc<Mutex<Vec<Value>>>;

/// The spans of what is asked with a [`traceparent`], and of nothing else: no other test's requests are among them. A process has one.
pub struct Spans {
    all: All,
    exporting: Exporting,
}

/// The id of one of many traces.
pub fn trace_id(number: usize) -> String {
    format!("0af7651916cd43dd8448eb21{number:08x}")
}

/// The header that says that a request is a part of a trace, which who asks records.
pub fn traceparent(number: usize) -> String {
    format!("00-{}-{PARENT}-01", trace_id(number))
}

impl Spans {
    /// From now on they are collected.
    pub async fn collected() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let all = All::default();
        let kept = Arc::clone(&all);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(take(socket, Arc::clone(&kept)));
            }
        });
        let exporting = Exporting::start(Collector { endpoint, share: 0.0, roles: "tests".to_string() });
        Self { all, exporting: exporting.unwrap().expect("no other test of this process does") }
    }

    /// Waits until a trace has spans of these names, each below the one before and the first below who asked. Gives the last one.
    pub async fn come(&self, number: usize, way: &[&str]) -> Value {
        let began = Instant::now();
        loop {
            if let Some(span) = last_of(&self.all.lock(), &trace_id(number), way) {
                return span;
            }
            assert!(began.elapsed() < PATIENCE, "{way:?} is no way of trace {number} among {:#?}", self.all.lock());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// All of them, when nothing is collected any more.
    pub async fn finish(self) -> Vec<Value> {
        self.exporting.finish().await;
        self.all.lock().clone()
    }
}

/// The last span of such a way, if all of it is there.
fn last_of(spans: &[Value], trace: &str, way: &[&str]) -> Option<Value> {
    let (name, above) = way.split_last().expect("a way has a span");
    let is_below = |span: &Value| {
        let (mut names, mut parent) = (Vec::new(), &span["parentSpanId"]);
        while let Some(above) = spans.iter().find(|above| above["spanId"] == *parent && above["traceId"] == trace) {
            names.insert(0, above["name"].as_str().unwrap());
            parent = &above["parentSpanId"];
        }
        *parent == PARENT && names == above
    };
    for span in spans {
        if span["traceId"] == trace && span["name"] == *name && is_below(span) {
            return Some(span.clone());
        }
    }
    None
}

/// Answers requests of one connection, and keeps the spans that they bring.
async fn take(mut socket: TcpStream, all: All) {
    let mut came = Vec::new();
    while let Ok(1..) = socket.read_buf(&mut came).await {
        let text = String::from_utf8_lossy(&came).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() != length.unwrap_or(0usize) {
            continue;
        }
        let body: Value = serde_json::from_str(body).unwrap();
        let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
        all.lock().extend(spans.iter().cloned());
        came.clear();
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
    }
}
