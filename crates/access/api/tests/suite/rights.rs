//! The table of rights over HTTP: every credential at every path.

use std::collections::BTreeSet;

use forebay_testbed::EventLog;

use crate::bed::{Bed, DATASET, TABLE, query};

/// The status of a credential at a path; those who may get what others would.
fn status(credential: &str, needs: Needs) -> u16 {
    match (credential, needs) {
        (_, Needs::Nothing) => 200,
        (_, Needs::NoPath) => 404,
        ("read other" | "read lake" | "write lake" | "admin lake" | "read tmp", Needs::Known | Needs::NoLoad) => 200,
        // What processes of the cluster show each other is nothing here.
        ("none" | "guess" | "other scheme" | "member", _) => 401,
        ("read tmp", Needs::Temporary) => 200,
        ("read lake" | "write lake" | "admin lake", Needs::Temporary) => 403,
        ("owner" | "admin", Needs::Admin) => 200,
        (_, Needs::Admin) => 403,
        ("read" | "read lake", Needs::Change | Needs::ChangeOfNoMount) => 403,
        ("read" | "read lake" | "write" | "write lake", Needs::Order | Needs::OrderOfNoMount) => 403,
        ("owner" | "admin" | "write" | "read", _) => 200,
        ("read lake" | "write lake" | "admin lake", Needs::Lake) => 200,
        ("write lake" | "admin lake", Needs::Change) => 200,
        ("admin lake", Needs::Order) => 200,
        // Who may not is not told whether there is a mount.
        (
            "read lake" | "write lake" | "admin lake",
            Needs::NoMount | Needs::ChangeOfNoMount | Needs::OrderOfNoMount | Needs::All,
        ) => 403,
        ("read other" | "read tmp" | "expired", _) => 403,
        other => unreachable!("{other:?}"),
    }
}

const CREDENTIALS: [&str; 14] = [
    "none",
    "guess",
    "other scheme",
    "owner",
    "member",
    "admin",
    "write",
    "read",
    "read lake",
    "read other",
    "write lake",
    "admin lake",
    "read tmp",
    "expired",
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Needs {
    Nothing,
    /// Nothing either: there is nothing there.
    NoPath,
    /// To be somebody whose right has not ended.
    Known,
    /// The same, for what is not there.
    NoLoad,
    /// Reading all mounts.
    All,
    /// Administering the cluster.
    Admin,
    /// Reading temporary data.
    Temporary,
    /// Reading the mount `lake`.
    Lake,
    /// Reading a mount that is not there.
    NoMount,
    /// Writing in the mount `lake`.
    Change,
    /// Writing in a mount that is not there.
    ChangeOfNoMount,
    /// Administering the mount `lake`.
    Order,
    /// Administering a mount that is not there.
    OrderOfNoMount,
}

fn rows() -> Vec<(&'static str, String, &'static str, Needs)> {
    let of = |what: &str, parameters: &[(&str, &str)]| {
        query(&format!("/api/v1/shards/{what}"), &[&[("dataset", DATASET)], parameters].concat())
    };
    vec![
        ("GET", "/".into(), "", Needs::Nothing),
        ("GET", "/healthz".into(), "", Needs::Nothing),
        ("GET", "/readyz".into(), "", Needs::Nothing),
        ("GET", "/api/v1/openapi.json".into(), "", Needs::Nothing),
        ("GET", "/metrics".into(), "", Needs::All),
        ("HEAD", "/metrics".into(), "", Needs::All),
        ("GET", "/console/none.js".into(), "", Needs::NoPath),
        ("GET", "/api/v1".into(), "", Needs::NoPath),
        ("GET", "/api/v1/none".into(), "", Needs::NoPath),
        ("GET", "//metrics".into(), "", Needs::NoPath),
        ("GET", "/metrics/".into(), "", Needs::NoPath),
        ("GET", "/api/v1/status".into(), "", Needs::All),
        ("GET", "/api/v1/segments".into(), "", Needs::All),
        ("GET", "/api/v1/filled".into(), "", Needs::All),
        ("GET", "/api/v1/savings".into(), "", Needs::Known),
        ("GET", "/api/v1/tokens".into(), "", Needs::Admin),
        ("GET", "/api/v1/nodes".into(), "", Needs::Temporary),
        ("HEAD", "/api/v1/events".into(), "", Needs::All),
        ("GET", query("/api/v1/explain", &[("path", TABLE)]), "", Needs::Lake),
        ("GET", query("/api/v1/explain", &[("path", "/none/x")]), "", Needs::NoMount),
        ("GET", "/api/v1/load".into(), "", Needs::Known),
        ("POST", query("/api/v1/load", &[("path", TABLE)]), "", Needs::Lake),
        ("DELETE", query("/api/v1/load", &[("id", "none")]), "", Needs::NoLoad),
        ("GET", "/api/v1/jobs".into(), "", Needs::All),
        ("GET", "/api/v1/tasks".into(), "", Needs::All),
        ("GET", "/api/v1/transfers".into(), "", Needs::All),
        ("POST", "/api/v1/sql".into(), "select many", Needs::Known),
        ("POST", "/api/v1/sql/rows".into(), "select many", Needs::Known),
        ("GET", of("get", &[("key", "1")]), "", Needs::Lake),
        ("GET", of("search", &[("condition", "name = clerk001")]), "", Needs::Lake),
        ("GET", of("scan", &[("limit", "3")]), "", Needs::Lake),
        ("GET", of("count", &[]), "", Needs::Lake),
        ("GET", of("status", &[]), "", Needs::Lake),
        ("POST", of("batch", &[]), "{\"get\": 1}", Needs::Lake),
        ("GET", of("record", &[("key", "1")]), "", Needs::Lake),
        ("PUT", of("record", &[]), "{\"id\": 90001}", Needs::Change),
        ("DELETE", of("record", &[("key", "90001")]), "", Needs::Change),
        ("POST", of("change", &[]), "{\"delete\": 90001}", Needs::Change),
        ("PUT", of("pin", &[("size", "0.9")]), "", Needs::Order),
        ("DELETE", of("pin", &[]), "", Needs::Order),
        ("PUT", of("freeze", &[]), "", Needs::Order),
        ("DELETE", of("freeze", &[]), "", Needs::Order),
        ("PUT", of("ack", &[("ack", "storage")]), "", Needs::Order),
        ("POST", of("forgo", &[]), "", Needs::Order),
        ("GET", of("refresh", &[]), "", Needs::Lake),
        ("POST", of("refresh", &[]), "", Needs::Change),
        ("PUT", of("refresh", &[("every", "off")]), "", Needs::Change),
        ("GET", of("reshard", &[]), "", Needs::Lake),
        ("POST", of("reshard", &[("to", "2")]), "", Needs::Change),
        ("GET", query("/api/v1/shards/count", &[("dataset", "/none/x")]), "", Needs::NoMount),
        ("PUT", query("/api/v1/shards/record", &[("dataset", "/none/x")]), "{\"id\": 1}", Needs::ChangeOfNoMount),
        ("POST", query("/api/v1/shards/change", &[("dataset", "/none/x")]), "{\"delete\": 1}", Needs::ChangeOfNoMount),
        ("POST", query("/api/v1/shards/refresh", &[("dataset", "/none/x")]), "", Needs::ChangeOfNoMount),
        ("POST", query("/api/v1/shards/reshard", &[("dataset", "/none/x"), ("to", "2")]), "", Needs::ChangeOfNoMount),
        ("PUT", query("/api/v1/shards/pin", &[("dataset", "/none/x")]), "", Needs::OrderOfNoMount),
    ]
}

/// The rows, and one for each file of the console. None is missing that the port says it has.
async fn all_rows(bed: &Bed) -> Vec<(&'static str, String, &'static str, Needs)> {
    let mut rows = rows();
    let described = bed.ask_as(None, "GET", "/api/v1/openapi.json", "").await.json();
    for (path, item) in described["paths"].as_object().unwrap() {
        for verb in item.as_object().unwrap().keys() {
            // An event stream has no end, and is asked for its head.
            let is_of = |method: &str| method.eq_ignore_ascii_case(verb) || (method == "HEAD" && verb == "get");
            let has = |(method, row, ..): &(&str, String, &str, Needs)| is_of(method) && row.split('?').next() == Some(path);
            assert!(rows.iter().any(has), "{verb} {path} has no row");
        }
    }
    let mut files = BTreeSet::new();
    let mut pages = vec!["/".to_string()];
    while let Some(page) = pages.pop() {
        let text = bed.ask_as(None, "GET", &page, "").await.body;
        let text = String::from_utf8(text.to_vec()).unwrap();
        for named in text.split(['"', '\'', '`']) {
            let file = named.strip_prefix("./").or(named.strip_prefix("/console/")).unwrap_or("");
            if (file.ends_with(".js") || file.ends_with(".css")) && files.insert(format!("/console/{file}")) {
                pages.push(format!("/console/{file}"));
            }
        }
    }
    assert!(files.len() >= 7, "{files:?}");
    rows.extend(files.into_iter().map(|file| ("GET", file, "", Needs::Nothing)));
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_path_answers_who_may_ask() {
    let bed = Bed::start(1).await;
    let (mut wrong, rows) = (Vec::new(), all_rows(&bed).await);
    for credential in CREDENTIALS {
        let shown = match credential {
            "none" => None,
            "guess" => Some("Bearer a guess of somebody".to_string()),
            "other scheme" => Some(format!("Basic {}", bed.token("owner"))),
            other => Some(format!("Bearer {}", bed.token(other))),
        };
        for (method, path, body, needs) in rows.clone() {
            let answer = bed.ask_with(shown.as_deref(), method, &path, body).await;
            let expected = match status(credential, needs) {
                200 if matches!(needs, Needs::NoMount | Needs::NoLoad | Needs::ChangeOfNoMount | Needs::OrderOfNoMount) => 404,
                status => status,
            };
            if answer.status != expected {
                wrong.push(format!("{credential} at {method} {path}: {} instead of {expected}", answer.status));
            }
            let is_open = needs == Needs::Nothing || path.starts_with("/console/");
            assert!(is_open || answer.header("cache-control") == "no-store", "{path}: {answer:?}");
            if matches!(answer.status, 401 | 403) && method != "HEAD" {
                // What collects metrics is told in a line.
                assert!(path == "/metrics" || answer.wrong().1 == "denied", "{path}: {answer:?}");
                assert_eq!(answer.header("www-authenticate"), if answer.status == 401 { "Bearer" } else { "" });
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_refused_stands_in_the_audit_log() {
    let bed = Bed::start(1).await;
    let log = EventLog::of_audit();
    // A name that no other test of this process asks for.
    let path = query("/api/v1/shards/batch", &[("dataset", "/lake/audited.shards")]);
    for token in [None, Some(bed.token("read other")), Some(bed.token("read lake"))] {
        bed.ask_as(token, "POST", &path, "").await;
    }
    for (what, path) in [("metrics", "/metrics"), ("api", "/api/v1/filled")] {
        let before = log.told().len();
        let answer = bed.ask_as(Some(bed.token("read tmp")), "GET", path, "").await;
        assert_eq!(answer.status, 403, "{path}: {answer:?}");
        let told = log.told()[before..].to_vec();
        let line = ["port", "who", "what", "on", "verdict"];
        let expected = ["http", "token read-tmp.1", what, path, "refused"];
        assert!(told.iter().any(|event| line.map(|field| event[field].as_str()) == expected), "{told:?}");
    }
    // What changes something is written down of who may, too.
    let path = query("/api/v1/shards/record", &[("dataset", "/lake/changed.shards")]);
    for (token, status) in [("read lake", 403), ("write lake", 404)] {
        let answer = bed.ask_as(Some(bed.token(token)), "PUT", &path, "{\"id\": 1}").await;
        assert_eq!(answer.status, status, "{token}: {answer:?}");
    }
    let told = log.told();
    let changes = told.iter().filter(|event| event["on"] == "/lake/changed.shards");
    let changes: Vec<_> = changes.map(|event| ["who", "what", "verdict"].map(|field| event[field].as_str())).collect();
    assert!(
        told.iter().filter(|event| event["on"] == "/lake/changed.shards").all(|event| event["from"].starts_with("127.0.0.1:"))
    );
    let put = |who, verdict| [who, "shard_put", verdict];
    assert_eq!(changes, [put("token read-lake.1", "refused"), put("token write-lake.1", "allowed")]);
    let told: Vec<_> = told.iter().filter(|event| event["on"] == "/lake/audited.shards").collect();
    let who: Vec<&str> = told.iter().map(|event| event["who"].as_str()).collect();
    assert_eq!(who, ["unknown", "token read-other.1"], "and not who only reads");
    for event in told {
        let [port, what, verdict] = ["port", "what", "verdict"].map(|field| event[field].as_str());
        assert_eq!((port, what, verdict), ("http", "shard_batch", "refused"));
        assert!(event["from"].starts_with("127.0.0.1:"), "{event:?}");
        assert!(!event["why"].is_empty() && !format!("{event:?}").contains(bed.token("read other")));
    }
}
