//! Workers that are drained, stopped and added while clients go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use forebay_client::{AdminRequest, Client, CreateOptions, NodeType, Nodes};
use forebay_coordinator::CoordinatorSettings;
use forebay_testbed::until;
use forebay_types::WorkerId;

use crate::cluster::{Cluster, bytes, stop_drained};

/// Three workers that know each other.
async fn three() -> Cluster {
    let cluster = Cluster::start_quick(3, CoordinatorSettings::LEASE, |_| {}).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    cluster
}

async fn drain(client: &Client, worker: WorkerId, draining: bool) {
    client.control(AdminRequest::Drain { worker, draining }).await.unwrap();
}

/// Drains a worker of the cluster, waits until it has nothing, and stops it.
async fn drain_and_stop(cluster: &mut Cluster, client: &Client, ix: usize) {
    drain(client, cluster.node.workers[ix].id(), true).await;
    stop_drained(cluster, ix).await;
}

/// Writes and reads until it is told to stop, and checks every byte. Gives the rounds that it made.
async fn work(nodes: Nodes, own: u64, stop: Arc<AtomicBool>, rounds: Arc<AtomicU64>) {
    let top = format!("/tmp/job{own}");
    nodes.create(&top, CreateOptions::new(NodeType::Directory)).await.unwrap();
    nodes.create(&format!("{top}/log"), CreateOptions::new(NodeType::File)).await.unwrap();
    let mut log = Vec::new();
    let mut round = 0u64;
    while !stop.load(Ordering::Relaxed) {
        let seed = own * 1_000_000 + round;
        let dir = format!("{top}/d{}", round % 5);
        if round < 5 {
            nodes.create(&dir, CreateOptions::new(NodeType::Directory)).await.unwrap();
        }
        for (name, len) in [("small", 100), ("middle", 40_000), ("large", 2_500_000)] {
            let value = bytes(seed, len);
            nodes.put(&format!("{dir}/{name}"), value.clone()).await.unwrap();
            assert!(nodes.get(&format!("{dir}/{name}")).await.unwrap() == value, "{dir}/{name} in round {round}");
        }
        let line = bytes(seed, 30_000);
        let len = nodes.append(&format!("{top}/log"), line.clone()).await.unwrap();
        log.extend_from_slice(&line);
        assert_eq!(len, log.len() as u64, "nothing is appended twice or not at all");
        let file = format!("{top}/f{}", round % 7);
        nodes.create(&file, CreateOptions::new(NodeType::File)).await.unwrap();
        let content = bytes(seed + 1, 1_300_000);
        let mut writer = nodes.writer(&file).await.unwrap();
        writer.write(&content).await.unwrap();
        writer.finish().await.unwrap();
        nodes.rename(&file, &format!("{dir}/moved")).await.unwrap();
        assert!(nodes.reader(&format!("{dir}/moved"), 0).await.unwrap().read_all().await.unwrap() == content);
        nodes.delete(&format!("{dir}/moved"), false).await.unwrap();
        round += 1;
        rounds.fetch_add(1, Ordering::Relaxed);
    }
    assert!(nodes.reader(&format!("{top}/log"), 0).await.unwrap().read_all().await.unwrap() == log);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn jobs_go_on_while_workers_are_drained_stopped_and_added() {
    let mut cluster = three().await;
    let client = cluster.client(|_| {}).await;
    let far = cluster.client(|settings| settings.in_place = false).await;
    // Written before and read after: it moves with both workers.
    let nodes = client.nodes();
    nodes.create("/tmp/kept", CreateOptions::new(NodeType::Bag)).await.unwrap();
    let kept: Vec<_> = (0..20).map(|file| bytes(file, 700_000)).collect();
    for (file, content) in kept.iter().enumerate() {
        let path = format!("/tmp/kept/{file:02}");
        nodes.create(&path, CreateOptions::new(NodeType::File)).await.unwrap();
        nodes.append(&path, content.clone()).await.unwrap();
    }
    // A slow reader, who looked where things are long before they moved.
    let mut slow = nodes.bag("/tmp/kept").await.unwrap();
    let mut slowly = slow.next().await.unwrap().unwrap().to_vec();
    let (stop, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let jobs = [client.nodes(), far.nodes()].into_iter().zip(1..);
    let jobs: Vec<_> = jobs.map(|(nodes, own)| tokio::spawn(work(nodes, own, Arc::clone(&stop), Arc::clone(&rounds)))).collect();
    let more = async |than: u64| {
        while rounds.load(Ordering::Relaxed) < than {
            assert!(!jobs.iter().any(|job| job.is_finished()), "a job failed");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    more(12).await;
    // The first worker has the root; the new one takes what another gives up.
    drain_and_stop(&mut cluster, &client, 0).await;
    more(rounds.load(Ordering::Relaxed) + 6).await;
    cluster.start_worker(3).await;
    drain_and_stop(&mut cluster, &client, 0).await;
    more(rounds.load(Ordering::Relaxed) + 6).await;
    stop.store(true, Ordering::Relaxed);
    for job in jobs {
        job.await.unwrap();
    }
    let all = kept.concat();
    assert!(nodes.bag("/tmp/kept").await.unwrap().read_all().await.unwrap() == all);
    slowly.extend_from_slice(&slow.read_all().await.unwrap());
    assert!(slowly == all, "a reader who began before");
    nodes.delete("/tmp/kept", true).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_room_elsewhere_nothing_is_lost_and_a_new_worker_ends_the_wait() {
    let mut cluster = Cluster::start_quick(1, CoordinatorSettings::LEASE, |_| {}).await;
    let client = cluster.client(|_| {}).await;
    let nodes = client.nodes();
    let value = bytes(1, 3_000_000);
    nodes.put("/tmp/k", value.clone()).await.unwrap();
    drain(&client, cluster.node.workers[0].id(), true).await;
    let began = Instant::now();
    let report = loop {
        match cluster.node.workers[0].report().drain.filter(|drain| drain.bytes > 0) {
            Some(report) => break report,
            None => tokio::time::sleep(Duration::from_millis(10)).await,
        }
        assert!(began.elapsed() < Duration::from_secs(20));
    };
    assert!(!report.done && report.bytes > 3_000_000 && report.stuck_bytes > 3_000_000, "{report:?}");
    // As the only one it goes on with everything.
    nodes.put("/tmp/l", value.clone()).await.unwrap();
    assert!(nodes.get("/tmp/k").await.unwrap() == value);
    drain(&client, cluster.node.workers[0].id(), false).await;
    until("it takes part again", || cluster.node.workers[0].report().drain.is_none()).await;
    cluster.start_worker(1).await;
    drain_and_stop(&mut cluster, &client, 0).await;
    for name in ["k", "l"] {
        assert!(nodes.get(&format!("/tmp/{name}")).await.unwrap() == value);
    }
}
