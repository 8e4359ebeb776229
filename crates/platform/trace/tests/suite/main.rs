//! Spans of this process, as a collector gets them.

#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

use std::collections::BTreeMap;
use std::time::Duration;

use forebay_protocol::{TraceContext, TraceParent};
use forebay_trace::{Collector, Exporting, Kind, Span, bind, current, of, within};
use forebay_types::{Error, OperationId};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Takes requests until so many spans have come; gives the head of the last one, its body, and the spans of all.
async fn take(listener: TcpListener, count: usize) -> (String, Value, Vec<Value>) {
    let mut spans = Vec::new();
    loop {
        let (head, body) = take_one(&listener).await;
        spans.extend(body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().iter().cloned());
        if spans.len() >= count {
            return (head, body, spans);
        }
    }
}

/// Takes one request, and gives its head and its body.
async fn take_one(listener: &TcpListener) -> (String, Value) {
    let (mut socket, _) = listener.accept().await.unwrap();
    let mut came = Vec::new();
    loop {
        assert!(socket.read_buf(&mut came).await.unwrap() > 0, "it ends early");
        let text = String::from_utf8_lossy(&came).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok());
        if body.len() == length.unwrap() {
            socket.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
            return (head.to_string(), serde_json::from_str(body).unwrap());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spans_come_to_the_collector_each_below_the_one_that_it_is_a_part_of() {
    // Nothing is recorded before, whatever is asked.
    let asked = TraceContext { trace: 7, span: 8 };
    assert!(Span::asked(TraceParent::Recorded(asked), "early").context().is_none() && Span::here("early").context().is_none());

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let collector = Collector { endpoint, share: 1.0, roles: "tests".to_string() };
    let taken = tokio::spawn(take(listener, 4));
    let exporting = Exporting::start(collector.clone()).unwrap().unwrap();
    assert!(Exporting::start(collector).unwrap().is_none(), "a process has one");

    let operation = OperationId(5);
    let outer = Span::asked(TraceParent::Recorded(asked), "outer");
    outer
        .around(async {
            bind(operation);
            let mut query = Span::here("query");
            query.set("rows", || 3_u64);
            query.fail(&Error::invalid("it is wrong"));
            let context = current();
            assert_eq!((context, of(operation)), (outer.context(), outer.context()));
            // A task of its own is done for nothing that is known, but for what it is told.
            let apart = tokio::spawn(async { current() }).await.unwrap();
            let told = tokio::spawn(within(context, async { current() })).await.unwrap();
            assert_eq!((apart, told), (None, context));
            drop(query);
        })
        .await;
    drop(Span::below(of(operation), "read", Kind::Client));
    drop(outer);
    // Who is recorded by nobody, or is a part of nothing, is not here either.
    let silent = Span::asked(TraceParent::Unrecorded, "silent");
    silent.around(async { assert!(Span::here("silent").context().is_none()) }).await;
    drop(Span::below(of(OperationId(6)), "silent", Kind::Client));
    let first = Span::here("first");
    let its_trace = first.context().unwrap().trace;
    drop(first);
    exporting.finish().await;

    let (head, body, spans) = tokio::time::timeout(Duration::from_secs(10), taken).await.unwrap().unwrap();
    assert!(head.starts_with("POST /v1/traces HTTP/1.1") && head.contains("application/json"), "{head}");
    let named: BTreeMap<&str, &Value> = spans.iter().map(|span| (span["name"].as_str().unwrap(), span)).collect();
    assert_eq!(named.keys().copied().collect::<Vec<_>>(), ["first", "outer", "query", "read"], "{body}");
    let (outer, query) = (named["outer"], named["query"]);
    assert_eq!((&outer["parentSpanId"], &outer["kind"]), (&"0000000000000008".into(), &2.into()));
    for below in [query, named["read"]] {
        assert_eq!((&below["parentSpanId"], &below["traceId"]), (&outer["spanId"], &format!("{:032x}", 7).into()));
    }
    assert_eq!(query["status"]["message"], "it is wrong");
    assert_eq!(query["attributes"][0]["value"]["intValue"], "3");
    assert_eq!(named["first"]["traceId"], format!("{its_trace:032x}"));
    assert!(named["first"].get("parentSpanId").is_none());
}

#[tokio::test]
async fn what_is_no_address_is_refused() {
    for endpoint in ["", "localhost:4318", "ftp://localhost", "http://a b"] {
        let collector = Collector { endpoint: endpoint.to_string(), share: 1.0, roles: String::new() };
        let error = Exporting::start(collector).unwrap_err();
        assert!(error.message().contains("http://HOST:4318"), "{error}");
    }
}
