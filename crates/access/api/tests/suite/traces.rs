//! A request about a dataset that says its trace is a part of it, to what is asked of shared storage.

use forebay_testbed::{Spans, traceparent};
use serde_json::json;

use crate::bed::{Bed, DATASET, query};

/// Method, what is asked, its parameters, its body, and the spans to what comes of it.
type Asked<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str, &'a [&'a str]);

#[tokio::test(flavor = "multi_thread")]
async fn a_request_about_a_dataset_is_a_part_of_its_trace_to_the_store() {
    let spans = Spans::collected().await;
    let bed = Bed::start(1).await;
    let record = json!({"id": 100_000, "name": "clerk007", "note": "a new one"}).to_string();
    let get = json!({"get": 7}).to_string();
    let asked: [Asked<'_>; 4] = [
        // The first one reads the manifest too, wherever its record comes from.
        ("GET", "get", &[("key", "7")], "", &["http shards", "get_records", "answer", "storage get"]),
        (
            "GET",
            "search",
            &[("condition", "note contains line"), ("limit", "5")],
            "",
            &["http shards", "ask_shard", "answer", "bring shard", "storage get"],
        ),
        ("PUT", "record", &[], record.as_str(), &["http shards", "change_shard", "answer", "storage put"]),
        ("POST", "batch", &[], get.as_str(), &["http shards", "get_records", "answer"]),
    ];
    for (number, (method, what, parameters, body, way)) in asked.into_iter().enumerate() {
        let path = query(&format!("/api/v1/shards/{what}"), &[&[("dataset", DATASET)], parameters].concat());
        let (shown, trace) = (format!("Bearer {}", bed.token("write lake")), traceparent(number));
        let headers = [("authorization", shown.as_str()), ("traceparent", trace.as_str())];
        let answer = bed.ask_saying(&headers, method, &path, body.to_string()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        spans.come(number, way).await;
    }
    // Who may not ask has no span.
    let trace = traceparent(9);
    let path = query("/api/v1/shards/get", &[("dataset", DATASET), ("key", "7")]);
    assert_eq!(bed.ask_saying(&[("traceparent", trace.as_str())], "GET", &path, "").await.status, 401);
    let all = spans.finish().await;
    assert!(all.iter().all(|span| span["traceId"] != forebay_testbed::trace_id(9)), "{all:#?}");
}
