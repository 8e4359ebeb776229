//! The table of rights over HTTP: every credential at every path.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use forebay_transport::AUDIT;
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::bed::{Bed, DATASET, query};

/// The status of a credential at a path; those who may get what others would.
fn status(credential: &str, needs: Needs) -> u16 {
    match (credential, needs) {
        (_, Needs::Nothing) => 200,
        ("read other" | "read lake" | "write lake", Needs::Known) => 200,
        ("none" | "guess" | "other scheme", _) => 401,
        ("owner" | "read", _) => 200,
        ("read lake" | "write lake", Needs::Lake) => 200,
        // Who may not is not told whether there is a mount.
        ("read lake" | "write lake", Needs::NoMount | Needs::All) => 403,
        ("read other" | "expired", _) => 403,
        other => unreachable!("{other:?}"),
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Needs {
    Nothing,
    /// To be somebody whose right has not ended.
    Known,
    /// Reading all mounts.
    All,
    /// Reading the mount `lake`.
    Lake,
    /// Reading a mount that is not there.
    NoMount,
}

fn rows() -> Vec<(&'static str, String, &'static str, Needs)> {
    let of = |what: &str, parameters: &[(&str, &str)]| {
        query(&format!("/api/v1/shards/{what}"), &[&[("dataset", DATASET)], parameters].concat())
    };
    vec![
        ("GET", "/".into(), "", Needs::Nothing),
        ("GET", "/api/v1/status".into(), "", Needs::All),
        ("GET", "/api/v1/segments".into(), "", Needs::All),
        ("GET", "/api/v1/savings".into(), "", Needs::All),
        ("HEAD", "/api/v1/events".into(), "", Needs::All),
        ("GET", "/api/v1/jobs".into(), "", Needs::All),
        ("GET", "/api/v1/transfers".into(), "", Needs::All),
        ("POST", "/api/v1/sql".into(), "select many", Needs::Known),
        ("GET", of("get", &[("key", "1")]), "", Needs::Lake),
        ("GET", of("search", &[("condition", "name = clerk001")]), "", Needs::Lake),
        ("GET", of("count", &[]), "", Needs::Lake),
        ("GET", of("status", &[]), "", Needs::Lake),
        ("POST", of("batch", &[]), "{\"get\": 1}", Needs::Lake),
        ("GET", query("/api/v1/shards/count", &[("dataset", "/none/x")]), "", Needs::NoMount),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_path_answers_who_may_ask() {
    let bed = Bed::start(1).await;
    let mut wrong = Vec::new();
    for credential in ["none", "guess", "owner", "read", "read lake", "read other", "write lake", "expired"] {
        let token = match credential {
            "none" => None,
            "guess" => Some("a guess of somebody"),
            other => Some(bed.token(other)),
        };
        for (method, path, body, needs) in rows() {
            let answer = bed.ask_as(token, method, &path, body).await;
            let expected = match status(credential, needs) {
                200 if needs == Needs::NoMount => 404,
                status => status,
            };
            if answer.status != expected {
                wrong.push(format!("{credential} at {method} {path}: {} instead of {expected}", answer.status));
            }
            if matches!(answer.status, 401 | 403) && method != "HEAD" {
                assert_eq!(answer.wrong().1, "denied");
                assert_eq!(answer.header("www-authenticate"), if answer.status == 401 { "Bearer" } else { "" });
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What the audit log of this process is told: the fields of each event.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<BTreeMap<&'static str, String>>>>);

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == AUDIT
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.0.lock().push(fields.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}").trim_matches('"').to_string());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_refused_stands_in_the_audit_log() {
    let (log, bed) = (Log::default(), Bed::start(1).await);
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    // A name that no other test of this process asks for.
    let path = query("/api/v1/shards/batch", &[("dataset", "/lake/audited.shards")]);
    for token in [None, Some(bed.token("read other")), Some(bed.token("read lake"))] {
        bed.ask_as(token, "POST", &path, "").await;
    }
    let told = log.0.lock().clone();
    let told: Vec<_> = told.iter().filter(|event| event["on"] == "/lake/audited.shards").collect();
    let who: Vec<&str> = told.iter().map(|event| event["who"].as_str()).collect();
    assert_eq!(who, ["unknown", "token read-other.1"], "and not who only reads");
    for event in told {
        let [port, what, verdict] = ["port", "what", "verdict"].map(|field| event[field].as_str());
        assert_eq!((port, what, verdict), ("http", "shard_batch", "refused"));
        assert!(!event["why"].is_empty() && !format!("{event:?}").contains(bed.token("read other")));
    }
}
