//! The table of rights over HTTP: every credential at every path.

use crate::bed::{Bed, DATASET, query};

/// The status of a credential at a path; those who may get what others would.
fn status(credential: &str, needs: Needs) -> u16 {
    match (credential, needs) {
        (_, Needs::Nothing) => 200,
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
