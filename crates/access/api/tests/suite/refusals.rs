//! What is not answered says why.

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
