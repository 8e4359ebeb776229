//! Where an object is, over HTTP.

use forebay_api::Explained;
use serde_json::json;

use crate::bed::{Bed, TABLE, TABLE_BYTES};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_is_explained_as_the_command_does() {
    let bed = Bed::start(2).await;
    let explain = async |path: &str| bed.get("/api/v1/explain", &[("path", path)]).await;
    let before = explain(TABLE).await.json();
    assert_eq!((&before["path"], &before["bytes"]), (&json!(TABLE), &json!(TABLE_BYTES)));
    assert_eq!((&before["missing_bytes"], &before["segments"][0]["held"]), (&json!(TABLE_BYTES), &json!([])));
    let path = TABLE.parse().unwrap();
    let info = bed.client.open(&path).await.unwrap();
    bed.client.load(vec![info.version], false, |_| ()).await.unwrap();
    let after = explain(TABLE).await.json();
    assert_eq!(after, json!(Explained::of(&bed.client, &path).await.unwrap()));
    assert_eq!(after["missing_bytes"], 0, "{after}");
    let segment = &after["segments"][0];
    assert_eq!((&segment["routed_by"], &segment["asked"][0]["worker"]), (&json!("hashing"), &segment["held"][0]["worker"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_has_no_place() {
    let bed = Bed::start(1).await;
    let explain = async |path: &str| bed.get("/api/v1/explain", &[("path", path)]).await.wrong();
    assert_eq!(explain("/lake/none.csv").await, (404, "not found".into()));
    assert_eq!(explain("lake/table.csv").await, (400, "invalid".into()));
    assert_eq!(explain("/other/x").await, (403, "denied".into()));
    assert_eq!(bed.get("/api/v1/explain", &[]).await.wrong(), (400, "invalid".into()));
}
