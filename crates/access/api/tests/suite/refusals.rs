//! What is not answered says why.

use std::collections::BTreeSet;

use crate::bed::{Bed, DATASET};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_never_be_answered_is_said_to_be_so() {
    let bed = Bed::start(1).await;
    let many: Vec<(&str, &str)> = vec![("key", "1"); 1001];
    let wrong: Vec<(&str, Vec<(&str, &str)>)> = vec![
        ("get", vec![]),
        ("get", vec![("key", "text")]),
        ("get", vec![("key", "1"), ("columns", "nothing")]),
        ("get", vec![("key", "1"), ("more", "1")]),
        ("get", vec![("key", "1"), ("columns", "id"), ("columns", "name")]),
        ("get", vec![("key", "1"), ("timeout", "10")]),
        ("get", vec![("key", "1"), ("timeout", "301s")]),
        ("get", many),
        ("search", vec![]),
        ("search", vec![("condition", "name")]),
        ("search", vec![("condition", "nothing = 1")]),
        ("search", vec![("condition", "note ~ '('")]),
        ("search", vec![("condition", "name = x"), ("limit", "0")]),
        ("search", vec![("condition", "name = x"), ("limit", "10001")]),
        ("search", vec![("condition", "name = x"), ("after", "text")]),
        ("search", vec![("condition", "name = x"), ("columns", "nothing")]),
        ("scan", vec![("limit", "0")]),
        ("scan", vec![("condition", "name = x")]),
        ("scan", vec![("after", "text")]),
        ("count", vec![("condition", "")]),
        ("status", vec![("shard", "1")]),
    ];
    for (what, parameters) in wrong {
        let answer = bed.of_dataset(what, &parameters).await;
        assert_eq!(answer.wrong(), (400, "invalid".into()), "{what} {parameters:?}");
    }
    for dataset in ["", "lake/orders.shards", "/", "/lake", "/lake/%00"] {
        let answer = bed.get("/api/v1/shards/count", &[("dataset", dataset)]).await;
        assert_eq!(answer.wrong().1, if answer.status == 404 { "not found" } else { "invalid" }, "{dataset}");
        assert!(answer.status == 400 || dataset == "/lake/%00", "{dataset}: {answer:?}");
    }
    assert_eq!(bed.get("/api/v1/shards/count", &[]).await.wrong(), (400, "invalid".into()), "without a dataset");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_is_not_found() {
    let bed = Bed::start(1).await;
    let none = bed.of_dataset("get", &[("key", "1"), ("key", "99999"), ("key", "-99999")]).await;
    assert_eq!(none.wrong(), (404, "not found".into()));
    let message = none.json()["message"].to_string();
    assert!(message.contains("there is no record of 99999, -99999"), "{message}");
    let none = bed.get("/api/v1/shards/count", &[("dataset", "/lake/none.shards")]).await;
    assert_eq!(none.wrong(), (404, "not found".into()));
    for path in ["/api/v1", "/api/v1/shards", "/api/v1/shards/put"] {
        assert_eq!(bed.get(path, &[]).await.wrong(), (404, "not found".into()), "{path}");
    }
    let path = crate::bed::query("/api/v1/shards/get", &[("dataset", DATASET), ("key", "1")]);
    let answer = bed.ask_as(Some(bed.token("read lake")), "POST", &path, "").await;
    assert_eq!((answer.wrong(), answer.header("allow")), ((405, "invalid".into()), "GET,HEAD"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_strange_is_refused_in_the_same_words() {
    let bed = Bed::start(1).await;
    let deep = "[".repeat(10_000);
    let of_dataset = |what: &str, more: &str| format!("/api/v1/shards/{what}?dataset=%2Flake%2Forders.shards{more}");
    let huge = "9".repeat(30);
    let wrong: &[(&str, String, &[u8])] = &[
        // What is no number, or a larger one than there are.
        ("GET", format!("/api/v1/segments?limit={huge}"), b""),
        ("GET", "/api/v1/segments?limit=1e3".into(), b""),
        ("GET", "/api/v1/segments?limit=".into(), b""),
        ("GET", "/api/v1/segments?limit=1&limit=2".into(), b""),
        ("GET", format!("/api/v1/filled?limit={huge}"), b""),
        ("GET", "/api/v1/filled?worker=1".into(), b""),
        ("GET", "/api/v1/savings?per_gb=1e300".into(), b""),
        ("GET", "/api/v1/savings?per_1000_requests=inf".into(), b""),
        ("GET", of_dataset("search", &format!("&condition=name+%3D+x&limit={huge}")), b""),
        ("GET", of_dataset("get", &format!("&key={huge}")), b""),
        ("GET", of_dataset("count", &format!("&timeout={huge}h")), b""),
        ("PUT", of_dataset("record", &format!("&if={huge}")), b"{\"id\": 1}"),
        ("POST", format!("/api/v1/sql?rows={huge}"), b"select many"),
        // What no text or no key has.
        ("GET", of_dataset("get", "&key=%00"), b""),
        ("GET", of_dataset("get", "&key=x%27%00%27"), b""),
        ("GET", "/api/v1/shards/count?dataset=%2Flake%2Fa%00b".into(), b""),
        ("GET", "/api/v1/shards/count?dataset=%2Flake%2F..%2Forders.shards%00".into(), b""),
        ("POST", "/api/v1/sql".into(), b"\xff\xfe"),
        // What is no JSON, or other JSON.
        ("PUT", of_dataset("record", ""), b""),
        ("PUT", of_dataset("record", ""), b"{"),
        ("PUT", of_dataset("record", ""), b"[1]"),
        ("PUT", of_dataset("record", ""), b"{\"id\": 1e999}"),
        ("PUT", of_dataset("record", ""), b"{\"id\": 1, \"name\": \"\xff\"}"),
        ("PUT", of_dataset("record", ""), b"{\"name\": \"without a key\"}"),
        ("PUT", of_dataset("record", ""), deep.as_bytes()),
        ("POST", of_dataset("change", ""), b"{\"delete\": 1}\n{}"),
        ("POST", of_dataset("change", ""), deep.as_bytes()),
    ];
    for (method, path, body) in wrong {
        let answer = bed.ask_as(Some(bed.token("write")), method, path, body.to_vec()).await;
        assert_eq!(answer.wrong(), (400, "invalid".into()), "{method} {path} {:?}", String::from_utf8_lossy(body));
        assert_eq!(answer.header("content-type"), "application/json", "{path}");
    }
    // Of a batch each line has its answer, whatever it is.
    let answers = bed.batch(&[], [deep.as_bytes(), &b"\n\xff\n{\"get\": 1e999}\n{\"count\": null}\n"[..]].concat()).await.lines();
    let kinds: Vec<Option<&str>> = answers.iter().map(|answer| answer["error"].as_str()).collect();
    assert_eq!(kinds, [Some("invalid"), Some("invalid"), Some("invalid"), None], "{answers:?}");
    for path in ["/api/v1/%ff%fe", "/api/v1/%00", "/api/v1/status/", "/api/v1//status", "/api/v1/shards/..%2Fstatus"] {
        let answer = bed.ask_as(Some(bed.token("read")), "GET", path, "").await;
        assert_eq!((answer.wrong(), answer.header("content-type")), ((404, "not found".into()), "application/json"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_path_says_how_it_may_be_asked() {
    let bed = Bed::start(1).await;
    let document = bed.ask_as(None, "GET", "/api/v1/openapi.json", "").await.json();
    for (path, item) in document["paths"].as_object().unwrap() {
        let mut described: BTreeSet<String> = item.as_object().unwrap().keys().map(|verb| verb.to_uppercase()).collect();
        if described.contains("GET") {
            described.insert("HEAD".into());
        }
        for method in ["GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
            if described.contains(method) {
                continue;
            }
            let answer = bed.ask_as(Some(bed.token("write")), method, path, "").await;
            assert_eq!(answer.wrong(), (405, "invalid".into()), "{method} {path}");
            let allowed: BTreeSet<String> = answer.header("allow").split(',').map(|verb| verb.trim().to_string()).collect();
            assert_eq!(allowed, described, "{method} {path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_workers_it_is_said_to_be_asked_again() {
    let mut bed = Bed::start(1).await;
    assert_eq!(bed.of_dataset("count", &[]).await.status, 200);
    bed.stop_workers().await;
    let answer = bed.of_dataset("count", &[("timeout", "300ms")]).await;
    assert_eq!(answer.wrong().1, "retry");
    assert!(matches!((answer.status, answer.header("retry-after")), (503, "1") | (504, "")), "{answer:?}");
    let answers = bed.batch(&[("timeout", "300ms")], "{\"get\": 1}\n{\"get\": 2}").await;
    match answers.status {
        200 => assert!(answers.lines().iter().all(|answer| answer["error"] == "retry"), "{answers:?}"),
        _ => assert_eq!(answers.wrong().1, "retry"),
    }
}
