//! Datasets that are refreshed and given other shards over HTTP.

use std::time::Duration;

use bytes::Bytes;
use forebay_client::PutCondition;
use forebay_testbed::EventLog;
use serde_json::{Value as Json, json};

use crate::bed::{Answer, Bed, DATASET, FOLLOWED, RECORDS, query};

async fn store(bed: &Bed, name: &str, lines: &str) {
    let path = format!("{FOLLOWED}{name}").parse().unwrap();
    bed.client.put(&path, Bytes::from(lines.to_string()), PutCondition::Any).await.unwrap();
}

async fn name_of(bed: &Bed, key: &str) -> Json {
    bed.of_dataset("record", &[("key", key)]).await.json()["record"]["name"].clone()
}

/// What is known of a work once it is over.
async fn over(bed: &Bed, what: &str) -> Json {
    for _ in 0..600 {
        let status = bed.of_dataset(what, &[]).await.json();
        if status["work"]["state"] != "running" {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what} is not over");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dataset_is_refreshed_and_says_how_that_ended() {
    let bed = Bed::start(2).await;
    let before = bed.of_dataset("refresh", &[]).await.json();
    let follows = json!({"following": [FOLLOWED], "every_ms": 3_600_000, "objects": 0, "refresh": null});
    assert_eq!(before, json!({"dataset": DATASET, "follows": follows}), "nobody has asked for anything");
    store(&bed, "a", "{\"id\": 70001, \"name\": \"clerk070\"}\n{\"id\": 1, \"name\": \"other\"}\n").await;
    let done = bed.change("POST", "refresh", &[], "").await.json();
    let refreshed = json!({"objects": 1, "added": 1, "replaced": 0, "gone": 0, "changes": 2, "errors": []});
    assert_eq!(done, json!({"dataset": DATASET, "state": "done", "refreshed": refreshed}));
    assert_eq!((name_of(&bed, "70001").await, name_of(&bed, "1").await), (json!("clerk070"), json!("other")));
    store(&bed, "b", "no record\n").await;
    let done = bed.change("POST", "refresh", &[], "").await.json();
    let errors = done["refreshed"]["errors"].as_array().unwrap().clone();
    assert!(errors.len() == 1 && errors[0].as_str().unwrap().contains("/lake/in/b: "), "{done}");
    let after = bed.of_dataset("refresh", &[]).await.json();
    assert_eq!((&after["follows"]["objects"], &after["follows"]["refresh"]["errors"]), (&json!(1), &json!(errors)));
    assert_eq!(after["work"], done);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_often_a_dataset_is_refreshed_is_ordered() {
    let bed = Bed::start(1).await;
    let every = async |every: &str| bed.change("PUT", "refresh", &[("every", every)], "").await;
    assert_eq!(every("5m").await.json(), json!({"dataset": DATASET, "every_ms": 300_000}));
    assert_eq!(bed.of_dataset("refresh", &[]).await.json()["follows"]["every_ms"], 300_000);
    assert_eq!(every("off").await.json(), json!({"dataset": DATASET, "every_ms": 0}));
    for wrong in ["0s", "5", "soon"] {
        assert_eq!(every(wrong).await.wrong(), (400, "invalid".into()), "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dataset_is_given_other_shards_while_it_is_asked_and_changed() {
    let bed = Bed::start(2).await;
    assert_eq!(bed.of_dataset("reshard", &[]).await.json(), json!({"dataset": DATASET, "manifest": 1, "shards": 2}));
    // It goes on when nobody waits for it.
    let begun = bed.change("POST", "reshard", &[("to", "3"), ("timeout", "1ms")], "").await;
    assert!(matches!(begun.status, 200 | 504), "{begun:?}");
    let begun = bed.change("POST", "reshard", &[("to", "3"), ("timeout", "50ms")], "").await;
    assert!(matches!(begun.status, 200 | 504), "{begun:?}");
    let mut written = Vec::new();
    for key in 80_000..80_020 {
        let put = bed.change("PUT", "record", &[], format!("{{\"id\": {key}, \"name\": \"meanwhile\"}}")).await;
        assert_eq!(put.status, 200, "{put:?}");
        written.push(key.to_string());
    }
    let done = bed.change("POST", "reshard", &[("to", "3")], "").await.json();
    assert_eq!((&done["state"], &done["resharded"]["shards"]), (&json!("done"), &json!(3)), "{done}");
    let status = over(&bed, "reshard").await;
    assert_eq!(status["work"]["state"], "done", "{status}");
    assert_eq!(bed.shards().await.dataset().shards.len(), 3);
    for key in &written {
        assert_eq!(name_of(&bed, key).await, "meanwhile", "{key}");
    }
    let count = bed.of_dataset("count", &[]).await.json()["count"].clone();
    assert_eq!(count, RECORDS + written.len() as i64);
    let again = bed.change("POST", "reshard", &[("to", "3")], "").await.json();
    assert_eq!((&again["resharded"]["before"], &again["resharded"]["shards"]), (&json!(3), &json!(3)), "it has them already");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_not_be_made_of_a_dataset_is_refused() {
    let bed = Bed::start(1).await;
    for wrong in ["", "0", "-1", "5000", "many"] {
        let answer: Answer = bed.change("POST", "reshard", &[("to", wrong)], "").await;
        assert_eq!(answer.wrong(), (400, "invalid".into()), "{wrong}");
    }
    assert_eq!(bed.change("DELETE", "reshard", &[], "").await.wrong(), (405, "invalid".into()));
    assert_eq!(bed.shards().await.dataset().shards.len(), 2);
    let closed = Bed::closed(1).await;
    for (what, parameters) in [("refresh", &[][..]), ("reshard", &[("to", "3")][..])] {
        assert_eq!(closed.change("POST", what, parameters, "").await.wrong(), (404, "not found".into()), "{what}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_made_of_a_dataset_stands_in_the_audit_log() {
    let bed = Bed::start(1).await;
    let log = EventLog::of_audit();
    // A name that no other test of this process asks for.
    let dataset = "/lake/made.shards";
    let works = [("POST", "refresh", ""), ("PUT", "refresh", "5m"), ("POST", "reshard", "3")];
    for (token, status) in [("read lake", 403), ("write lake", 404)] {
        for (method, what, value) in works {
            let name = if what == "refresh" { "every" } else { "to" };
            let parameters = [("dataset", dataset), (name, value)];
            let count = if value.is_empty() { 1 } else { 2 };
            let path = query(&format!("/api/v1/shards/{what}"), &parameters[..count]);
            let answer = bed.ask_as(Some(bed.token(token)), method, &path, "").await;
            assert_eq!(answer.status, status, "{token} {method} {what}: {answer:?}");
        }
    }
    let told = log.told();
    let told = told.iter().filter(|event| event["on"] == dataset);
    let told: Vec<_> = told.map(|event| ["port", "who", "what", "verdict"].map(|field| event[field].as_str())).collect();
    let of = |who, verdict| ["shard_refresh", "shard_refresh_every", "shard_reshard"].map(|what| ["http", who, what, verdict]);
    assert_eq!(told, [of("token read-lake.1", "refused"), of("token write-lake.1", "allowed")].concat());
}
