//! The temporary namespace on whole small clusters.

mod offers;
mod one_namespace;
mod quotas;
mod renames;
mod together;
mod unreached;
mod where_they_lie;

use std::time::Duration;

use forebay_client::{Client, Nodes};
use forebay_coordinator::CoordinatorSettings;
use serde_json::Value;

use crate::cluster::Cluster;

/// The suite that every way into the namespace has to pass: an operation and its answer a line.
const CONFORMANCE: &str = include_str!("../../../../../../docs/specs/nodes-conformance.jsonl");

/// Workers that know each other, so that containers are spread over them. Each hears of the later ones with its next heartbeat,
/// 50 ms later at most.
async fn spread(workers: usize) -> Cluster {
    let cluster = Cluster::start_quick(workers, CoordinatorSettings::LEASE, |_| {}).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    cluster
}

/// The same with a client's door to the namespace.
async fn spread_nodes(workers: usize) -> (Cluster, Nodes) {
    let cluster = spread(workers).await;
    let nodes = cluster.client(|_| {}).await.nodes();
    (cluster, nodes)
}

/// The same with a disk tier each.
async fn spread_with_disks(workers: usize) -> Cluster {
    let mut cluster = Cluster::start_quick(0, CoordinatorSettings::LEASE, |_| {}).await;
    cluster.worker.store.disk_bytes = 256 << 20;
    for _ in 0..workers {
        cluster.add_worker().await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    cluster
}

/// With a class all nodes are made in it that are asked for in none.
async fn conforms(cluster: Cluster, in_place: bool, class: Option<&str>) {
    let client = cluster.client(|settings| settings.in_place = in_place).await;
    // A second client remembers paths too, and must not be led astray by what the first one renames.
    let other = cluster.client(|_| {}).await;
    conforms_with(&client, &other, class).await;
}

pub async fn conforms_with(client: &Client, other: &Client, class: Option<&str>) {
    for (line, case) in CONFORMANCE.lines().enumerate() {
        let (operation, expected) = case.split_once('\t').unwrap();
        let mut operation: Value = serde_json::from_str(operation).unwrap();
        if let (Some(class), None, "create") = (class, operation.get("storage_class"), operation["op"].as_str().unwrap()) {
            operation["storage_class"] = class.into();
        }
        let operation = operation.to_string();
        let asked = if line % 3 == 0 { other.nodes() } else { client.nodes() };
        let mut answer = asked.answer_json(operation.as_bytes()).await;
        let message = answer.as_object_mut().unwrap().remove("message");
        if let Some(class) = class
            && let Some(shown) =
                answer.get_mut("ok").and_then(Value::as_object_mut).and_then(|shown| shown.remove("storage_class"))
        {
            assert_eq!(shown, class);
        }
        let expected: Value = serde_json::from_str(expected).unwrap();
        assert_eq!(answer, expected, "line {}: {operation}: {message:?}", line + 1);
        assert_eq!(message.is_some(), answer.get("error").is_some());
    }
}

#[tokio::test]
async fn one_worker_conforms() {
    conforms(spread(1).await, true, None).await;
}

#[tokio::test]
async fn workers_conform_with_data_on_disk() {
    conforms(spread_with_disks(2).await, true, Some("disk")).await;
}

#[tokio::test]
async fn three_workers_conform() {
    conforms(spread(3).await, false, None).await;
}
