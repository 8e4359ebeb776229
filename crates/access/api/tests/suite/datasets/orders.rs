//! What is ordered of a dataset's replicas over HTTP.

use forebay_client::PutCondition;
use forebay_shard_store::{DatasetOrders, DatasetPin, LogClaim, LogObject, LogPlace};
use forebay_testbed::{EventLog, Told, until_asked};
use forebay_types::{ForebayPath, WorkerId};
use serde_json::{Value as Json, json};

use crate::bed::{Bed, DATASET, query};

/// What `status` says to a token: what is ordered, and whether it may order something else.
async fn told(bed: &Bed, token: &str) -> (Json, Json) {
    let path = query("/api/v1/shards/status", &[("dataset", DATASET)]);
    let status = bed.ask_as(Some(bed.token(token)), "GET", &path, "").await.json();
    (status["orders"].clone(), status["may_order"].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_are_pinned_and_frozen_until_that_is_ended() {
    let bed = Bed::start(2).await;
    assert_eq!(told(&bed, "admin lake").await, (json!({}), json!(true)));
    let pinned = bed.order("PUT", "pin", &[("size", "0.75")]).await.json();
    // Two shards, and two replicas of each.
    let expected = json!({"dataset": DATASET, "manifest": 2, "orders": {"pin": {"size": 0.75}}, "here": 4, "replicas": 4});
    assert_eq!(pinned, expected);
    assert_eq!(told(&bed, "read lake").await, (json!({"pin": {"size": 0.75}}), json!(false)), "at once, and to who only reads");
    let status = bed.of_dataset("status", &[]).await.json();
    let replicas: Vec<&Json> =
        status["shards"].as_array().unwrap().iter().flat_map(|shard| shard["replicas"].as_array().unwrap()).collect();
    assert!(replicas.len() == 4 && replicas.iter().all(|replica| replica["least"] == 0.75), "{replicas:?}");
    let frozen = bed.order("PUT", "freeze", &[]).await.json();
    assert_eq!(frozen, json!({"dataset": DATASET, "manifest": 3, "orders": {"pin": {"size": 0.75}, "frozen": true}}));
    let of_program = bed.shards().await.orders();
    assert_eq!(
        of_program,
        DatasetOrders { pin: Some(DatasetPin { size: Some(0.75) }), frozen: true, ..DatasetOrders::default() }
    );
    assert_eq!(bed.order("PUT", "freeze", &[]).await.json()["manifest"], 3, "what holds already is not ordered anew");
    let free = bed.order("DELETE", "pin", &[]).await.json();
    assert_eq!(free, json!({"dataset": DATASET, "manifest": 4, "orders": {"frozen": true}}));
    assert_eq!(bed.order("DELETE", "freeze", &[]).await.json()["orders"], json!({}));
    let two = bed.order("PUT", "ack", &[("ack", "two-workers")]).await.json();
    assert_eq!(two["orders"], json!({"ack": "two-workers"}));
    assert_eq!(bed.of_dataset("status", &[]).await.json()["shards"][0]["ack"], "two-workers");
    until_asked("it is told who writes, and who is second", async || {
        let changed = bed.change("PUT", "record", &[], r#"{"id": 90001}"#).await;
        let status = bed.of_dataset("status", &[]).await.json();
        let is_claimed = |shard: &Json| {
            let claim = &shard["claim"];
            claim["writer"].is_string() && claim["second"].is_string() && claim["writer"] != claim["second"]
        };
        changed.status == 200 && status["shards"].as_array().unwrap().iter().any(is_claimed)
    })
    .await;
    assert_eq!(bed.order("PUT", "ack", &[("ack", "storage")]).await.json()["orders"], json!({}));
    let at_its_size = bed.order("PUT", "pin", &[]).await.json();
    assert_eq!((&at_its_size["orders"], &at_its_size["here"]), (&json!({"pin": {}}), &json!(4)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_t_be_ordered_is_refused_and_changes_nothing() {
    let bed = Bed::start(1).await;
    for size in ["0", "-1", "17", "NaN", "inf", "x"] {
        let answer = bed.order("PUT", "pin", &[("size", size)]).await;
        assert_eq!(answer.wrong(), (400, "invalid".into()), "{size}");
    }
    for (method, what, parameter) in [
        ("DELETE", "pin", ("size", "1")),
        ("PUT", "freeze", ("size", "1")),
        ("PUT", "pin", ("shard", "1")),
        ("PUT", "ack", ("ack", "one-worker")),
        ("PUT", "ack", ("size", "1")),
    ] {
        assert_eq!(bed.order(method, what, &[parameter]).await.wrong(), (400, "invalid".into()), "{method} {what}");
    }
    let answer = bed.order("POST", "pin", &[]).await;
    assert_eq!(answer.wrong(), (405, "invalid".into()));
    assert_eq!(bed.shards().await.orders(), DatasetOrders::default());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_two_workers_have_lost_is_given_up_by_who_may_administer() {
    let bed = Bed::start(1).await;
    let log = EventLog::of_audit();
    let forgo = async |token: &str| {
        let path = query("/api/v1/shards/forgo", &[("dataset", DATASET), ("timeout", "8s")]);
        bed.ask_as(Some(bed.token(token)), "POST", &path, "").await
    };
    assert_eq!(forgo("admin lake").await.json(), json!({"dataset": DATASET, "given_up": []}));
    let shards = bed.shards().await;
    let place = LogPlace { folder: String::new(), log: shards.dataset().log.clone().unwrap(), shard: 1 };
    let number = shards.dataset().shards[1].log_from;
    let object: ForebayPath = format!("{DATASET}/{}", place.key(number).unwrap()).parse().unwrap();
    // Two workers that are no longer there.
    let claim = LogClaim { id: 7, writer: WorkerId(0x71), second: WorkerId(0x72), number };
    let claimed = LogObject::Claim(claim).encode(number);
    bed.client.put(&object, claimed.into(), PutCondition::Absent).await.unwrap();
    assert_eq!(forgo("write lake").await.wrong(), (403, "denied".into()));
    assert_eq!(forgo("admin lake").await.json(), json!({"dataset": DATASET, "given_up": [1]}));
    let by_worker = |told: &&Told| {
        told["on"].starts_with("/lake/orders.shards/log/") && told["port"] == "data" && told["what"] == "shard_forgo"
    };
    assert_eq!(log.told().iter().filter(by_worker).count(), 1, "the worker that wrote it has named it too");
    assert_eq!(forgo("admin lake").await.json()["given_up"], json!([]), "the others go on from there");
    let (status, record) = (bed.of_dataset("get", &[("key", "1")]).await.status, r#"{"id": 90001}"#);
    let changed = bed.change("PUT", "record", &[], record).await;
    assert_eq!((status, changed.status), (200, 200), "{changed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_order_stands_in_the_audit_log_by_its_name_with_who_gave_it() {
    let bed = Bed::start(1).await;
    let log = EventLog::of_audit();
    // A name that no other test of this process asks for.
    let dataset = "/lake/ordered.shards";
    let orders = [("PUT", "pin"), ("DELETE", "pin"), ("PUT", "freeze"), ("DELETE", "freeze"), ("POST", "forgo")];
    for (token, status) in [("write lake", 403), ("admin lake", 404)] {
        for (method, what) in orders {
            let path = query(&format!("/api/v1/shards/{what}"), &[("dataset", dataset)]);
            let answer = bed.ask_as(Some(bed.token(token)), method, &path, "").await;
            assert_eq!(answer.status, status, "{token} {method} {what}: {answer:?}");
        }
    }
    let told = log.told();
    let told = told.iter().filter(|event| event["on"] == dataset);
    let told: Vec<_> = told.map(|event| ["port", "who", "what", "verdict"].map(|field| event[field].as_str())).collect();
    let names = ["shard_pin", "shard_unpin", "shard_freeze", "shard_thaw", "shard_forgo"];
    let of = |who, verdict| names.map(|what| ["http", who, what, verdict]);
    assert_eq!(told, [of("token write-lake.1", "refused"), of("token admin-lake.1", "allowed")].concat());
}
