//! Loads over HTTP: who begins them, sees them and ends them.

use std::time::Duration;

use forebay_testbed::EventLog;
use serde_json::{Value as Json, json};

use crate::bed::{Answer, Bed, TABLE, query};

async fn begin(bed: &Bed, token: &str, path: &str) -> Answer {
    bed.ask_as(Some(bed.token(token)), "POST", &query("/api/v1/load", &[("path", path)]), "").await
}

async fn end(bed: &Bed, token: &str, id: &str) -> Answer {
    bed.ask_as(Some(bed.token(token)), "DELETE", &query("/api/v1/load", &[("id", id)]), "").await
}

/// What a token's holder sees.
async fn seen(bed: &Bed, token: &str) -> Vec<Json> {
    let answer = bed.ask_as(Some(bed.token(token)), "GET", "/api/v1/load", "").await.json();
    answer["loads"].as_array().unwrap().clone()
}

/// A load once it is at this.
async fn at(bed: &Bed, id: &Json, state: &str) -> Json {
    for _ in 0..600 {
        let found = seen(bed, "read").await.into_iter().find(|load| load["id"] == *id).unwrap();
        if found["state"] == state {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let all = seen(bed, "read").await;
    panic!("{id} does not come to be {state}: {all:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_says_how_far_it_is() {
    let bed = Bed::start(1).await;
    let parameters = [("path", TABLE), ("columns", "id,name"), ("where", "id > 5")];
    let begun = bed.ask_as(Some(bed.token("read lake")), "POST", &query("/api/v1/load", &parameters), "").await.json();
    assert_eq!((&begun["path"], &begun["columns"], &begun["where"]), (&json!(TABLE), &json!(["id", "name"]), &json!("id > 5")));
    let done = at(&bed, &begun["id"], "done").await;
    assert_eq!((&done["who"], &done["objects"], &done["bytes"]), (&json!("token read-lake.1"), &json!(2), &json!(10)));
    assert_eq!((&done["done_bytes"], &done["fetched_bytes"], &done["error"]), (&json!(10), &json!(7), &json!("")));
    let running = begin(&bed, "read lake", "/lake/forever").await.json();
    let running = at(&bed, &running["id"], "running").await;
    assert_eq!((&running["bytes"], &running["done_bytes"]), (&json!(10), &json!(4)));
    let failed = begin(&bed, "read lake", "/lake/none").await.json();
    let failed = at(&bed, &failed["id"], "failed").await;
    assert!(failed["error"].as_str().unwrap().contains("/lake/none: nothing is there"), "{failed}");
    let by_a_defect = begin(&bed, "read lake", "/lake/panic").await.json();
    assert!(at(&bed, &by_a_defect["id"], "failed").await["error"].as_str().unwrap().contains("defect"));
    let states: Vec<_> = seen(&bed, "read").await.iter().map(|load| load["state"].clone()).collect();
    assert_eq!(states, ["done", "running", "failed", "failed"], "the oldest first");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_is_seen_and_ended_by_who_may() {
    let bed = Bed::start(1).await;
    let begun = begin(&bed, "read lake", "/lake/forever").await.json();
    let id = begun["id"].as_str().unwrap();
    for (token, sees) in [("read lake", 1), ("read", 1), ("admin", 1), ("read other", 0), ("write lake", 0), ("admin lake", 1)] {
        assert_eq!(seen(&bed, token).await.len(), sees, "{token}");
    }
    for token in ["read", "read other", "write", "write lake"] {
        assert_eq!(end(&bed, token, id).await.wrong(), (404, "not found".into()), "{token}");
    }
    assert_eq!(begin(&bed, "read other", "/lake/forever").await.wrong(), (403, "denied".into()));
    assert_eq!(end(&bed, "read lake", id).await.json()["state"], "cancelled");
    let of_another = begin(&bed, "read lake", "/lake/forever").await.json();
    assert_eq!(end(&bed, "admin", of_another["id"].as_str().unwrap()).await.json()["state"], "cancelled");
    let of_lake = begin(&bed, "read", "/lake/forever").await.json();
    assert_eq!(end(&bed, "admin lake", of_lake["id"].as_str().unwrap()).await.json()["state"], "cancelled");
    // Who administers one mount does so with loads of that one alone.
    let elsewhere = begin(&bed, "read other", "/other/forever").await.json();
    assert_eq!(end(&bed, "admin lake", elsewhere["id"].as_str().unwrap()).await.wrong(), (404, "not found".into()));
    assert!(seen(&bed, "admin lake").await.iter().all(|load| load["id"] != elsewhere["id"]));
    assert_eq!(end(&bed, "admin", elsewhere["id"].as_str().unwrap()).await.json()["state"], "cancelled");
    // What is over stays what it was.
    let done = begin(&bed, "read lake", TABLE).await.json();
    at(&bed, &done["id"], "done").await;
    assert_eq!(end(&bed, "read lake", done["id"].as_str().unwrap()).await.json()["state"], "done");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_caller_has_four_loads_at_a_time() {
    let bed = Bed::start(1).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(begin(&bed, "read", "/lake/forever").await.json()["id"].as_str().unwrap().to_string());
    }
    assert_eq!(begin(&bed, "read", "/lake/forever").await.wrong(), (429, "retry".into()));
    assert_eq!(begin(&bed, "write", "/lake/forever").await.status, 200);
    assert_eq!(end(&bed, "read", &ids[0]).await.status, 200);
    for _ in 0..600 {
        match begin(&bed, "read", "/lake/forever").await.status {
            200 => return,
            status => assert_eq!(status, 429),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("its place is not given back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_not_be_loaded_is_refused() {
    let bed = Bed::start(1).await;
    for parameters in ["", "path=", "path=lake%2Fx", "path=%2Flake%2Fx&more=1", "path=%2Flake%2Fx&path=%2Flake%2Fy", "columns=a"]
    {
        let answer = bed.ask_as(Some(bed.token("read")), "POST", &format!("/api/v1/load?{parameters}"), "").await;
        assert_eq!(answer.wrong(), (400, "invalid".into()), "{parameters}");
    }
    assert!(seen(&bed, "read").await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loads_and_their_ends_stand_in_the_audit_log() {
    let bed = Bed::start(1).await;
    let log = EventLog::of_audit();
    // A name that no other test of this process asks for.
    let begun = begin(&bed, "read lake", "/lake/audited.csv").await.json();
    let id = begun["id"].as_str().unwrap();
    end(&bed, "read lake", id).await;
    let told = log.told();
    let lines: Vec<_> = told
        .iter()
        .filter(|event| event["on"] == "/lake/audited.csv" || event["on"] == id)
        .map(|event| ["port", "who", "what", "verdict"].map(|field| event[field].as_str()))
        .collect();
    let line = |what| ["http", "token read-lake.1", what, "allowed"];
    assert_eq!(lines, [line("load"), line("load_cancel")]);
}
