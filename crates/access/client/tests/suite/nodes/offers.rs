//! Where blocks of temporary nodes come to lie, in clusters of two locations.

use std::time::Duration;

use bytes::Bytes;
use forebay_client::{AdminRequest, Client, CreateOptions, NodeErrorKind, NodeType, Nodes};
use forebay_coordinator::CoordinatorSettings;

use crate::cluster::{Cluster, bytes, stop_drained};

const MIB: usize = 1 << 20;

/// Workers at these locations, each with so much memory, that know each other.
async fn at(workers: &[(&str, usize)]) -> Cluster {
    let mut cluster = Cluster::start_quick(0, CoordinatorSettings::LEASE, |_| {}).await;
    for (ix, (location, dram_bytes)) in workers.iter().enumerate() {
        join(&mut cluster, ix, location, *dram_bytes).await;
    }
    settled().await;
    cluster
}

async fn join(cluster: &mut Cluster, ix: usize, location: &str, dram_bytes: usize) {
    cluster.worker.location = Some(location.to_string());
    cluster.worker.store.dram_bytes = dram_bytes as u64;
    cluster.start_worker(ix).await;
}

/// Workers hear of each other with their heartbeats, every 50 ms.
async fn settled() {
    tokio::time::sleep(Duration::from_millis(700)).await;
}

/// Both ways: blocks that the client writes, and such that the node's worker does.
async fn doors(cluster: &Cluster) -> [Nodes; 2] {
    let near = cluster.client(|_| {}).await;
    let far = cluster.client(|settings| settings.in_place = false).await;
    [near.nodes(), far.nodes()]
}

fn asking(kind: NodeType, location: &str) -> CreateOptions {
    CreateOptions { location: Some(location.parse().unwrap()), ..CreateOptions::new(kind) }
}

/// Bytes in the tiers of each worker.
fn used(cluster: &Cluster) -> Vec<usize> {
    cluster.node.workers.iter().map(|worker| (worker.report().dram.1 + worker.report().disk.1) as usize).collect()
}

/// Writes 12 MiB and a bit into a directory, in all ways that there are.
async fn write(nodes: &Nodes, dir: &str) {
    nodes.put(&format!("{dir}/value"), bytes(1, 5 * MIB)).await.unwrap();
    let file = format!("{dir}/file");
    nodes.create(&file, CreateOptions::new(NodeType::File)).await.unwrap();
    nodes.append(&file, bytes(2, 300_000)).await.unwrap();
    let mut writer = nodes.writer(&file).await.unwrap();
    writer.write_bytes(Bytes::from(bytes(3, 7 * MIB))).await.unwrap();
    writer.finish().await.unwrap();
    nodes.write(&file, 100, bytes(4, 1000)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_lie_where_nodes_ask_for_and_their_containers_do() {
    let cluster = at(&[("rack1", 256 * MIB), ("rack1", 256 * MIB), ("rack2", 256 * MIB), ("rack2", 256 * MIB)]).await;
    for (door, nodes) in doors(&cluster).await.into_iter().enumerate() {
        let top = format!("/tmp/d{door}");
        nodes.create(&top, asking(NodeType::Directory, "rack2")).await.unwrap();
        nodes.create(&format!("{top}/heir"), CreateOptions::new(NodeType::Directory)).await.unwrap();
        nodes.create(&format!("{top}/other"), asking(NodeType::Directory, "rack1")).await.unwrap();
        nodes.create(&format!("{top}/free"), asking(NodeType::Directory, "any")).await.unwrap();
        let before = used(&cluster);
        write(&nodes, &top).await;
        write(&nodes, &format!("{top}/heir")).await;
        let now = used(&cluster);
        assert!(now[0] <= before[0] && now[1] <= before[1], "nothing lies elsewhere: {before:?} -> {now:?}");
        assert!(now[2] + now[3] >= before[2] + before[3] + 24 * MIB, "{before:?} -> {now:?}");
        let before = now;
        write(&nodes, &format!("{top}/other")).await;
        let now = used(&cluster);
        assert!(now[2] <= before[2] && now[3] <= before[3], "nothing lies with the container's others: {before:?} -> {now:?}");
        assert!(now[0] + now[1] >= before[0] + before[1] + 12 * MIB, "{before:?} -> {now:?}");
        for (path, location) in
            [("", "rack2"), ("/heir", "rack2"), ("/heir/file", "rack2"), ("/other/value", "rack1"), ("/free", "any")]
        {
            let stat = nodes.stat(&format!("{top}{path}")).await.unwrap().unwrap();
            assert_eq!(stat.location.as_str(), location, "{path}");
        }
        assert!(nodes.get(&format!("{top}/heir/value")).await.unwrap() == bytes(1, 5 * MIB));
        let stat = nodes.answer_json(format!(r#"{{"op":"stat","path":"{top}/other"}}"#).as_bytes()).await;
        assert_eq!(stat["ok"]["location"], "rack1");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_room_where_they_ask_for_blocks_lie_elsewhere() {
    for door in 0..2 {
        // Temporary data may have a half of each.
        let cluster = at(&[("rack1", 32 * MIB), ("rack2", 256 * MIB)]).await;
        let [near, far] = doors(&cluster).await;
        let nodes = if door == 0 { near } else { far };
        for name in ["a", "b", "c"] {
            nodes.create(&format!("/tmp/{name}"), asking(NodeType::KeyValue, "rack1")).await.unwrap();
        }
        nodes.put("/tmp/a", bytes(1, 12 * MIB)).await.unwrap();
        assert!(used(&cluster)[0] >= 12 * MIB && used(&cluster)[1] < MIB, "{:?}", used(&cluster));
        nodes.put("/tmp/b", bytes(2, 10 * MIB)).await.unwrap();
        let before = used(&cluster);
        assert!(before[0] >= 15 * MIB && before[1] >= 6 * MIB, "as much as can be where it asks for: {before:?}");
        assert!(nodes.get("/tmp/b").await.unwrap() == bytes(2, 10 * MIB));
        nodes.delete("/tmp/a", false).await.unwrap();
        // It has been seen to be full, for a second.
        tokio::time::sleep(Duration::from_millis(1200)).await;
        nodes.put("/tmp/c", bytes(3, 8 * MIB)).await.unwrap();
        assert_eq!(used(&cluster)[1], before[1], "there is room again where it asks for");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_is_refused_leaves_its_room_to_others() {
    // Temporary data may have 32 MiB in all.
    let cluster = at(&[("rack1", 32 * MIB), ("rack1", 32 * MIB)]).await;
    for nodes in doors(&cluster).await {
        nodes.put("/tmp/k", "value").await.unwrap();
        let refused = async |path: &str, len: usize| {
            let refused = nodes.put(path, bytes(1, len)).await.unwrap_err();
            settled().await;
            refused.kind
        };
        assert_eq!(refused("/tmp/none/k", 20 * MIB).await, NodeErrorKind::NotFound);
        assert_eq!(refused("/tmp/k/k", 20 * MIB).await, NodeErrorKind::NotContainer);
        assert_eq!(refused("/tmp/large", 40 * MIB).await, NodeErrorKind::NoSpace);
        nodes.put("/tmp/fits", bytes(2, 20 * MIB)).await.unwrap();
        assert!(nodes.get("/tmp/fits").await.unwrap() == bytes(2, 20 * MIB));
        nodes.delete("/tmp/fits", false).await.unwrap();
        settled().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_nobody_waits_for_any_more_leaves_its_room_to_others() {
    let cluster = at(&[("rack1", 32 * MIB), ("rack1", 32 * MIB)]).await;
    let [nodes, _] = doors(&cluster).await;
    loop {
        let (putting, value) = (nodes.clone(), bytes(1, 30 * MIB));
        let putting = tokio::spawn(async move { putting.put("/tmp/k", value).await });
        while used(&cluster).iter().sum::<usize>() < 18 * MIB && !putting.is_finished() {
            tokio::task::yield_now().await;
        }
        putting.abort();
        match putting.await {
            // It was faster.
            Ok(put) => put.unwrap(),
            Err(_) => break,
        }
        nodes.delete("/tmp/k", false).await.unwrap();
        settled().await;
    }
    settled().await;
    // The last word of it may have been under way already.
    match nodes.delete("/tmp/k", false).await {
        Err(error) if error.kind == NodeErrorKind::NotFound => {}
        deleted => deleted.unwrap(),
    }
    settled().await;
    // At most those that were just on their way are left.
    nodes.put("/tmp/k", bytes(2, 20 * MIB)).await.unwrap();
    assert!(nodes.get("/tmp/k").await.unwrap() == bytes(2, 20 * MIB));
}

#[tokio::test(flavor = "multi_thread")]
async fn with_nobody_where_they_ask_for_blocks_lie_elsewhere() {
    let mut cluster = at(&[("rack2", 256 * MIB), ("rack1", 256 * MIB), ("rack1", 256 * MIB)]).await;
    let doors = doors(&cluster).await;
    for (door, nodes) in doors.iter().enumerate() {
        nodes.create(&format!("/tmp/k{door}"), asking(NodeType::KeyValue, "rack1")).await.unwrap();
        nodes.create(&format!("/tmp/never{door}"), asking(NodeType::KeyValue, "rack3")).await.unwrap();
    }
    // Killed: they don't say that they leave, and count as live until their leases are over.
    drop(cluster.node.workers.pop());
    drop(cluster.node.workers.pop());
    for (door, nodes) in doors.iter().enumerate() {
        for name in ["k", "never"] {
            let (path, value) = (format!("/tmp/{name}{door}"), bytes(door as u64, 5 * MIB));
            let put = tokio::time::timeout(Duration::from_secs(20), nodes.put(&path, value.clone())).await;
            put.unwrap_or_else(|_| panic!("{path} waits")).unwrap();
            assert!(nodes.get(&path).await.unwrap() == value);
        }
    }
    assert!(used(&cluster)[0] >= 20 * MIB, "{:?}", used(&cluster));
}

async fn drain(cluster: &mut Cluster, client: &Client, ix: usize) {
    let worker = cluster.node.workers[ix].id();
    client.control(AdminRequest::Drain { worker, draining: true }).await.unwrap();
    stop_drained(cluster, ix).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn draining_leaves_blocks_where_their_nodes_ask_for() {
    // There is more room elsewhere.
    let mut cluster = at(&[("rack2", 512 * MIB), ("rack1", 128 * MIB)]).await;
    let client = cluster.client(|_| {}).await;
    let nodes = client.nodes();
    let value = bytes(1, 9 * MIB);
    for (name, location) in [("one", "rack1"), ("three", "rack3"), ("free", "any")] {
        nodes.create(&format!("/tmp/{name}"), asking(NodeType::KeyValue, location)).await.unwrap();
    }
    nodes.put("/tmp/one", value.clone()).await.unwrap();
    assert!(used(&cluster)[1] >= 9 * MIB);
    join(&mut cluster, 2, "rack1", 128 * MIB).await;
    settled().await;
    let before = used(&cluster);
    drain(&mut cluster, &client, 1).await;
    let now = used(&cluster);
    assert!(now[1] >= before[2] + 9 * MIB, "{before:?} -> {now:?}");
    assert_eq!(now[0], before[0], "nothing came where more room is");
    // What had to lie elsewhere goes where it asks for when somebody is there, rather than near.
    nodes.put("/tmp/three", value.clone()).await.unwrap();
    join(&mut cluster, 3, "rack3", 128 * MIB).await;
    join(&mut cluster, 4, "rack2", 512 * MIB).await;
    settled().await;
    // Whichever had it.
    let before = used(&cluster);
    drain(&mut cluster, &client, 0).await;
    drain(&mut cluster, &client, 0).await;
    let now = used(&cluster);
    assert!(now[0] >= 9 * MIB, "{before:?} -> {now:?}");
    for name in ["one", "three"] {
        assert!(nodes.get(&format!("/tmp/{name}")).await.unwrap() == value);
    }
}
