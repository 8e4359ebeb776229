//! A request that says its trace is a part of it, to what is asked of shared storage.

use forebay_testbed::{Spans, add_mount, trace_id, traceparent};
use forebay_types::MountOptions;
use serde_json::Value;

use crate::rig::client::request;
use crate::rig::cluster::{Cluster, gateway_settings};

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_says_its_trace_is_a_part_of_it_to_the_store() {
    let spans = Spans::collected().await;
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    let folder = tempfile::tempdir().unwrap();
    let files = format!("file://{}", folder.path().display());
    add_mount(&cluster.client, "nas", &files, MountOptions::default()).await;
    for key in ["traced/a", "traced/b", "traced/c"] {
        s3.put("data", key, b"some bytes").unwrap();
    }
    // Neither one that is not recorded where it comes from, nor one that says nothing.
    let unrecorded = traceparent(1000).replace("-01", "-00");
    for (path, header) in [("/lake/traced/b", Some(unrecorded)), ("/lake/traced/c", None)] {
        let asked = request("GET", path);
        let asked = header.iter().fold(asked, |asked, header| asked.header("traceparent", header));
        let answer = asked.send(cluster.address()).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "some bytes"), "{path}");
    }
    let ways: [(&'static str, &str, &[&str]); 8] = [
        ("GET", "/lake/traced/a", &["s3", "read_object", "answer", "storage get"]),
        ("HEAD", "/lake/traced/a", &["s3", "stat", "answer", "storage head"]),
        ("GET", "/lake?list-type=2&prefix=traced%2F", &["s3", "list", "answer", "storage list"]),
        ("PUT", "/lake/traced/new", &["s3", "storage put"]),
        ("PUT", "/nas/traced/new", &["s3", "put", "answer", "storage put"]),
        ("DELETE", "/nas/traced/new", &["s3", "delete", "answer", "storage delete"]),
        ("PUT", "/tmp/traced/new", &["s3", "node", "answer"]),
        ("GET", "/tmp/traced/new", &["s3", "node", "answer"]),
    ];
    for (number, (method, path, _)) in ways.into_iter().enumerate() {
        let asked = request(method, path).header("traceparent", &traceparent(number));
        let asked = if method == "PUT" { asked.body(b"what is written".as_slice()) } else { asked };
        let answer = asked.send(cluster.address()).await;
        assert!([200, 204].contains(&answer.status), "{method} {path}: {} {}", answer.status, answer.text());
    }
    for (number, (_, path, way)) in ways.into_iter().enumerate() {
        let last = spans.come(number, way).await;
        if ["storage get", "storage put", "storage delete"].contains(&last["name"].as_str().unwrap()) {
            let said = &last["attributes"][0];
            assert_eq!((&said["key"], &said["value"]["stringValue"]), (&"forebay.path".into(), &path.into()));
        }
    }
    // Who is the first to ask past the workers asks for a share of the bandwidth.
    spans.come(3, &["s3", "coordinator", "decide"]).await;
    let asked: Vec<String> = (0..ways.len()).map(trace_id).collect();
    let all = spans.finish().await;
    let is_asked = |span: &Value| asked.iter().any(|trace| span["traceId"] == **trace);
    assert!(all.iter().all(is_asked), "{all:#?}");
}
