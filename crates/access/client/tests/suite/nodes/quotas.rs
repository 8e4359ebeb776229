//! What containers may have, on whole small clusters.

use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_client::{AdminRequest, CreateOptions, NodeErrorKind, NodePlace, NodeResult, NodeType, NodeUsage, StorageClass};

use super::{spread, spread_with_disks};
use crate::cluster::bytes;

const MIB: usize = 1 << 20;

fn is_full<T>(done: NodeResult<T>) -> bool {
    done.is_err_and(|error| {
        assert!(error.message.contains("quota"), "{error}");
        error.kind == NodeErrorKind::NoSpace
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_holds_for_all_that_comes_into_a_container_by_whichever_way() {
    let cluster = spread_with_disks(3).await;
    let nodes = cluster.client(|_| {}).await.nodes();
    // With the names of some of them the nodes are not.
    for at in 0..6 {
        let (dir, other) = (format!("/tmp/q{at}"), format!("/tmp/o{at}"));
        let inside = |name: &str| format!("{dir}/{name}");
        let outside = |name: &str| format!("{other}/{name}");
        for path in [&dir, &other] {
            nodes.create(path, CreateOptions::new(NodeType::Directory)).await.unwrap();
        }
        nodes.set_quota(&dir, Some(3 * MIB as u64)).await.unwrap();
        let usage = async || nodes.usage(&dir).await.unwrap();
        let of = |bytes: usize| NodeUsage { bytes: bytes as u64, quota: Some(3 * MIB as u64) };
        nodes.put(&inside("k"), bytes(1, MIB)).await.unwrap();
        nodes.create(&inside("f"), CreateOptions::new(NodeType::File)).await.unwrap();
        nodes.append(&inside("f"), bytes(2, MIB - 100)).await.unwrap();
        // Whose name one worker has, and its nodes another one.
        let nested = outside("q");
        nodes.create(&nested, CreateOptions::new(NodeType::Directory)).await.unwrap();
        nodes.set_quota(&nested, Some(10)).await.unwrap();
        let error = nodes.put(&format!("{nested}/k"), bytes(1, 11)).await.unwrap_err();
        // The worker of what is in it may not know its name.
        let names = [nested.as_str(), "the container"];
        assert!(names.iter().any(|name| error.message.contains(&format!("{name} has a quota of 10 bytes"))), "{error}");
        nodes.delete(&nested, true).await.unwrap();
        nodes.put(&outside("k"), bytes(3, MIB + 101)).await.unwrap();
        assert_eq!(usage().await, of(2 * MIB - 100));

        let more = || Bytes::from(bytes(4, MIB + 101));
        assert!(is_full(nodes.put(&inside("new"), more()).await));
        assert!(is_full(nodes.put(&inside("new"), bytes(5, 34 * MIB)).await), "in blocks that were brought before");
        assert!(is_full(nodes.put(&inside("k"), bytes(5, 2 * MIB + 101)).await), "in the place of what is there");
        assert!(is_full(nodes.append(&inside("f"), more()).await));
        assert!(is_full(nodes.write(&inside("f"), (MIB - 100) as u64, more()).await));
        let disk = NodePlace { class: Some(StorageClass::Disk), location: None };
        assert!(is_full(nodes.put_at(&inside("new"), more(), &disk).await));
        assert!(is_full(nodes.rename(&outside("k"), &inside("new")).await));
        nodes.put(&outside("large"), bytes(6, 2 * MIB + 101)).await.unwrap();
        assert!(is_full(nodes.rename(&outside("large"), &inside("k")).await), "in the place of what has the name");
        nodes.delete(&outside("large"), false).await.unwrap();
        let mut writer = nodes.writer(&inside("f")).await.unwrap();
        let written = async {
            writer.write(&more()).await?;
            writer.finish().await
        };
        assert!(is_full(written.await));
        for name in ["d0", "d1", "d2", "d0/d3"] {
            nodes.create(&inside(name), CreateOptions::new(NodeType::Directory)).await.unwrap();
            assert!(is_full(nodes.put(&inside(&format!("{name}/k")), more()).await), "containers in it are below its quota");
        }
        nodes.put(&inside("d0/d3/k"), bytes(7, 1000)).await.unwrap();
        assert_eq!(usage().await, of(2 * MIB + 900));
        nodes.rename(&inside("d0"), &inside("d1")).await.unwrap();
        assert_eq!(usage().await, of(2 * MIB + 900), "within it nothing comes to more");
        for name in ["d1", "d2"] {
            nodes.delete(&inside(name), true).await.unwrap();
        }
        assert_eq!(usage().await, of(2 * MIB - 100), "nothing has come");
        assert!(nodes.get(&outside("k")).await.unwrap() == bytes(3, MIB + 101), "what can't come in stays");

        let values: Vec<(String, Bytes)> = (0..300).map(|name| (format!("s{name}"), bytes(name, 4096).into())).collect();
        let values: Vec<(&str, Bytes)> = values.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let put = nodes.put_many(&dir, &values).await.unwrap();
        let fitting = (MIB + 100) / 4096;
        assert!(put[..fitting].iter().all(Result::is_ok) && put[fitting..].iter().all(|put| is_full(put.clone())));
        assert_eq!(usage().await, of(2 * MIB - 100 + fitting * 4096));
        for (name, _) in &values[..fitting] {
            nodes.delete(&inside(name), false).await.unwrap();
        }
        nodes.rename(&inside("k"), &outside("out")).await.unwrap();
        assert_eq!(usage().await, of(MIB - 100));
        nodes.rename(&outside("k"), &inside("in")).await.unwrap();
        assert_eq!(usage().await, of(2 * MIB + 1));
        nodes.set_quota(&dir, None).await.unwrap();
        nodes.put(&inside("new"), more()).await.unwrap();
        nodes.delete(&dir, true).await.unwrap();
        assert_eq!(nodes.usage(&dir).await.unwrap_err().kind, NodeErrorKind::NotFound);
    }
    assert_eq!(nodes.set_quota("/tmp", Some(1)).await.unwrap_err().kind, NodeErrorKind::Invalid);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_goes_along_when_its_worker_is_drained() {
    let cluster = spread(3).await;
    let client = cluster.client(|_| {}).await;
    let nodes = client.nodes();
    let dirs: Vec<String> = (0..12).map(|at| format!("/tmp/d{at}")).collect();
    for dir in &dirs {
        nodes.create(dir, CreateOptions::new(NodeType::Directory)).await.unwrap();
        nodes.set_quota(dir, Some(1000)).await.unwrap();
        nodes.put(&format!("{dir}/k"), bytes(1, 600)).await.unwrap();
    }
    let drained = &cluster.node.workers[0];
    client.control(AdminRequest::Drain { worker: drained.id(), draining: true }).await.unwrap();
    let began = Instant::now();
    while !drained.report().drain.is_some_and(|drain| drain.done) {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", drained.report().drain);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for dir in &dirs {
        assert_eq!(nodes.usage(dir).await.unwrap(), NodeUsage { bytes: 600, quota: Some(1000) });
        assert!(is_full(nodes.put(&format!("{dir}/l"), bytes(2, 401)).await));
        nodes.put(&format!("{dir}/l"), bytes(2, 400)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_below_a_quota_stay_with_their_worker_when_it_is_drained() {
    let cluster = spread(2).await;
    let client = cluster.client(|_| {}).await;
    let nodes = client.nodes();
    for at in 0..24 {
        nodes.create(&format!("/tmp/t{at}"), CreateOptions::new(NodeType::Directory)).await.unwrap();
        nodes.set_quota(&format!("/tmp/t{at}"), Some(1000)).await.unwrap();
        nodes.create(&format!("/tmp/t{at}/in"), CreateOptions::new(NodeType::Directory)).await.unwrap();
        nodes.put(&format!("/tmp/t{at}/in/k"), bytes(1, 600)).await.unwrap();
    }
    let drained = &cluster.node.workers[0];
    client.control(AdminRequest::Drain { worker: drained.id(), draining: true }).await.unwrap();
    let began = Instant::now();
    while !drained.report().drain.is_some_and(|drain| drain.stuck_bytes > 0 && !drain.done) {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", drained.report().drain);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for at in 0..24 {
        assert!(is_full(nodes.put(&format!("/tmp/t{at}/l"), bytes(2, 401)).await));
        assert!(is_full(nodes.put(&format!("/tmp/t{at}/in/l"), bytes(2, 401)).await));
        // Without it they go.
        nodes.set_quota(&format!("/tmp/t{at}"), None).await.unwrap();
    }
    let began = Instant::now();
    while !drained.report().drain.is_some_and(|drain| drain.done) {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", drained.report().drain);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for at in 0..24 {
        assert!(nodes.get(&format!("/tmp/t{at}/in/k")).await.unwrap() == bytes(1, 600));
    }
}
