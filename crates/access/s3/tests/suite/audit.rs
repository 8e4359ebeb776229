//! What the audit log is told of requests.

use forebay_s3::AccessRule;
use forebay_testbed::EventLog;

use crate::rig::client::request;
use crate::rig::cluster::{Cluster, ID, SECRET, gateway_settings};

#[tokio::test(flavor = "multi_thread")]
async fn who_changed_something_and_who_was_refused_stands_in_the_audit_log() {
    let log = EventLog::of_audit();
    let mut settings = gateway_settings();
    settings.keys.push(AccessRule::new("READER", "a reader's").read_only());
    let (cluster, s3) = Cluster::over_s3(|_| {}, settings).await;
    s3.put("data", "audited/there", b"x").unwrap();
    // Keys that no other test of this process asks for.
    let asked = [
        ("PUT", "/lake/audited/new", ID, SECRET, 200),
        ("GET", "/lake/audited/new", ID, SECRET, 200),
        ("HEAD", "/lake/audited/there", "READER", "a reader's", 200),
        ("PUT", "/lake/audited/new", "READER", "a reader's", 403),
        ("DELETE", "/tmp/audited/new", "READER", "a reader's", 403),
        ("GET", "/lake/audited/there", "READER", "a guess", 403),
        ("DELETE", "/lake/audited/new", ID, SECRET, 204),
        // It may, and finds that it can't.
        ("PUT", "/lake/audited/new?uploadId=none&partNumber=0", ID, SECRET, 400),
    ];
    for (method, path, id, secret, status) in asked {
        let mut asked = request(method, path);
        (asked.id, asked.secret) = (id.into(), secret.into());
        let answer = asked.send(cluster.address()).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
    }
    let told = log.told();
    let told: Vec<_> = told.iter().filter(|event| event["on"].contains("/audited/") && event["port"] == "s3").collect();
    let lines: Vec<_> = told.iter().map(|event| ["who", "what", "on", "verdict"].map(|field| event[field].as_str())).collect();
    let owner = format!("access key {ID}");
    let expected = [
        [&owner, "put_object", "/lake/audited/new", "allowed"],
        ["access key READER", "put_object", "/lake/audited/new", "refused"],
        ["access key READER", "delete_object", "/tmp/audited/new", "refused"],
        ["unknown", "get_object", "/lake/audited/there", "refused"],
        [&owner, "delete_object", "/lake/audited/new", "allowed"],
        [&owner, "upload_part", "/lake/audited/new", "allowed"],
    ];
    assert_eq!(lines, expected);
    for event in &told {
        assert!(event["from"].starts_with("127.0.0.1:"), "{event:?}");
        assert_eq!(event.contains_key("why"), event["verdict"] == "refused", "{event:?}");
        let text = format!("{event:?}");
        assert!(!text.contains(SECRET) && !text.contains("a reader's") && !text.contains("a guess"), "{text}");
    }
}
