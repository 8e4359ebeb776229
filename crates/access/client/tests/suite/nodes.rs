//! The temporary namespace on whole small clusters.

use std::time::Duration;

use bytes::Bytes;
use forebay_client::{CreateOptions, NodeErrorKind, NodeType};
use forebay_coordinator::CoordinatorSettings;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::cluster::{Cluster, bytes};

/// The suite that every way into the namespace has to pass: an operation and its answer a line.
const CONFORMANCE: &str = include_str!("../../../../../docs/specs/nodes-conformance.jsonl");

/// Workers that know each other, so that containers are spread over them. Each hears of the later ones with its next heartbeat,
/// 50 ms later at most.
async fn spread(workers: usize) -> Cluster {
    let cluster = Cluster::start_quick(workers, CoordinatorSettings::LEASE, |_| {}).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    cluster
}

async fn conforms(workers: usize, in_place: bool) {
    let cluster = spread(workers).await;
    let client = cluster.client(|settings| settings.in_place = in_place).await;
    // A second client remembers paths too, and must not be led astray by what the first one renames.
    let other = cluster.client(|_| {}).await;
    for (line, case) in CONFORMANCE.lines().enumerate() {
        let (operation, expected) = case.split_once('\t').unwrap();
        let asked = if line % 3 == 0 { other.nodes() } else { client.nodes() };
        let mut answer = asked.answer_json(operation.as_bytes()).await;
        let message = answer.as_object_mut().unwrap().remove("message");
        let expected: Value = serde_json::from_str(expected).unwrap();
        assert_eq!(answer, expected, "line {}: {operation}: {message:?}", line + 1);
        assert_eq!(message.is_some(), answer.get("error").is_some());
    }
}

#[tokio::test]
async fn one_worker_conforms() {
    conforms(1, true).await;
}

#[tokio::test]
async fn three_workers_conform() {
    conforms(3, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_values_and_files_come_back_as_they_were_put() {
    let cluster = spread(2).await;
    let nodes = cluster.client(|_| {}).await.nodes();
    nodes.create("/tmp/d", CreateOptions::new(NodeType::Directory)).await.unwrap();
    for (seed, len) in [4096, 4097, 16 << 10, (16 << 10) + 1, 64 << 10, 1 << 20, (5 << 20) + 3, 33 << 20].into_iter().enumerate()
    {
        let value = Bytes::from(bytes(seed as u64, len));
        nodes.put("/tmp/d/k", value.clone()).await.unwrap();
        assert!(nodes.get("/tmp/d/k").await.unwrap() == value, "{len}");
    }
    let mut all = Vec::new();
    nodes.create("/tmp/d/f", CreateOptions::new(NodeType::File)).await.unwrap();
    for (seed, len) in [10, 65_530, 70_000, 1, 1 << 20, 3 << 20, 100].into_iter().enumerate() {
        let piece = bytes(seed as u64, len);
        all.extend_from_slice(&piece);
        assert_eq!(nodes.append("/tmp/d/f", piece).await.unwrap(), all.len() as u64);
    }
    for (offset, len) in [(0, 20), (65_535, 10), (70_000, 200_000), (all.len() - 50, 100)] {
        let piece = bytes(99, len);
        let end = all.len().max(offset + len);
        all.resize(end, 0);
        all[offset..offset + len].copy_from_slice(&piece);
        assert_eq!(nodes.write("/tmp/d/f", offset as u64, piece).await.unwrap(), end as u64);
    }
    let mut writer = nodes.writer("/tmp/d/f").await.unwrap();
    let refused = nodes.append("/tmp/d/f", "other").await.unwrap_err();
    assert_eq!(refused.kind, NodeErrorKind::Retry, "one writer at a time");
    let more = bytes(7, (9 << 20) + 17);
    writer.write_all(&more).await.unwrap();
    writer.flush().await.unwrap();
    all.extend_from_slice(&more);
    assert_eq!(writer.finish().await.unwrap(), all.len() as u64);
    let mut read = Vec::new();
    nodes.reader("/tmp/d/f", 0).await.unwrap().read_to_end(&mut read).await.unwrap();
    assert!(read == all);
    for (offset, len) in [(0, 1), (65_530, 100), (1 << 20, 2 << 20), (all.len() as u64 - 5, 100)] {
        let end = (offset + len).min(all.len() as u64);
        assert!(nodes.read("/tmp/d/f", offset, len).await.unwrap() == all[offset as usize..end as usize]);
    }
    nodes.delete("/tmp/d", true).await.unwrap();
    assert_eq!(nodes.stat("/tmp/d/f").await.unwrap(), None);
}

#[tokio::test]
async fn a_lease_that_is_over_takes_the_directory_along() {
    let cluster = spread(2).await;
    let nodes = cluster.client(|_| {}).await.nodes();
    nodes.create("/tmp/job", CreateOptions::new(NodeType::Directory)).await.unwrap();
    nodes.put("/tmp/job/k", "v").await.unwrap();
    nodes.lease("/tmp/job", Some(Duration::from_millis(300))).await.unwrap();
    assert_eq!(nodes.get("/tmp/job/k").await.unwrap(), "v");
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        if nodes.stat("/tmp/job").await.unwrap().is_none() {
            return;
        }
    }
    panic!("the directory is still there");
}

#[tokio::test]
async fn what_a_lost_worker_had_is_lost_at_once() {
    let mut cluster = spread(3).await;
    let nodes = cluster.client(|_| {}).await.nodes();
    // The root is with the first worker; containers are spread by their names.
    for name in 0..12 {
        nodes.create(&format!("/tmp/{name}"), CreateOptions::new(NodeType::Table)).await.unwrap();
        nodes.put(&format!("/tmp/{name}/k"), "v").await.unwrap();
    }
    cluster.workers.pop().unwrap().shutdown().await;
    let began = std::time::Instant::now();
    let (mut kept, mut lost) = (0, 0);
    for name in 0..12 {
        match nodes.get(&format!("/tmp/{name}/k")).await {
            Ok(value) => {
                assert_eq!(value, "v");
                kept += 1;
            }
            Err(error) => {
                assert_eq!(error.kind, NodeErrorKind::DataLost, "{error}");
                lost += 1;
                // The worker that has the name may hear of the loss a little later.
                while let Err(error) = nodes.delete(&format!("/tmp/{name}"), true).await {
                    assert_eq!(error.kind, NodeErrorKind::Retry, "{error}");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                assert_eq!(nodes.stat(&format!("/tmp/{name}/k")).await.unwrap(), None);
            }
        }
    }
    assert!(kept > 0 && lost > 0, "{kept} kept, {lost} lost");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}
