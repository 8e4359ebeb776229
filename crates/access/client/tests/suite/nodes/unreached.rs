//! Workers that a client can't reach, or that end while they are asked: what they have is lost when the cluster has lost them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use forebay_client::NodeErrorKind;
use forebay_nodes::DirId;
use forebay_testbed::until;
use tokio::sync::Notify;

use crate::scripted::{Coordinator, Worker, lose};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_of_a_node_ends_when_its_worker_is_lost() {
    let (root, other) = (Worker::start(1, &[]).await, Worker::start(2, &[]).await);
    *root.shared.nodes.leads_to.lock() = Some(DirId { worker: 2, number: 7 });
    let coordinator = Coordinator::start(&[&root, &other]).await;
    let nodes = coordinator.client(|_| {}).await.nodes();
    let asking = tokio::spawn(async move { nodes.append("/tmp/d/f", "bytes").await });
    until("the other worker is asked", || other.node_calls() == 1).await;
    lose(&coordinator, &other);
    let began = Instant::now();
    let lost = asking.await.unwrap().unwrap_err();
    assert_eq!(lost.kind, NodeErrorKind::DataLost, "{lost}");
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

/// A worker ends after it was asked about a temporary node: it may have done what it was asked for, and has lost nothing as far as the cluster
/// knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_be_done_is_done_again_only_if_that_comes_to_the_same() {
    for reads in [false, true] {
        let (root, mut other) = (Worker::start(1, &[]).await, Worker::start(2, &[]).await);
        *root.shared.nodes.leads_to.lock() = Some(DirId { worker: 2, number: 7 });
        let coordinator = Coordinator::start(&[&root, &other]).await;
        let nodes = coordinator.client(|_| {}).await.nodes();
        let asking = tokio::spawn(async move {
            if reads { nodes.snapshot("/tmp/d/f").await.map(drop) } else { nodes.append("/tmp/d/f", "bytes").await.map(drop) }
        });
        until("the other worker is asked", || other.node_calls() == 1).await;
        other.kill();
        if reads {
            until("the way to it is asked for again and again", || root.node_calls() > 3).await;
            assert!(!asking.is_finished(), "the cluster has it");
            lose(&coordinator, &other);
        }
        let lost = asking.await.unwrap().unwrap_err();
        assert_eq!(lost.kind, NodeErrorKind::DataLost, "{lost}");
        assert_eq!(lost.message.contains("may be done or not"), !reads, "nobody says that it is gone before it is: {lost}");
        assert!(reads || root.node_calls() == 1, "an append is asked for once");
    }
}

/// A way to an address by which the first connections break while they are made, and how many have.
async fn breaks(times: usize, target: &str) -> (String, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, target) = (listener.local_addr().unwrap().to_string(), target.to_owned());
    let broken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&broken);
    tokio::spawn(async move {
        for _ in 0..times {
            drop(listener.accept().await.unwrap());
            count.fetch_add(1, Ordering::SeqCst);
        }
        loop {
            let (mut near, _) = listener.accept().await.unwrap();
            let mut far = tokio::net::TcpStream::connect(&target).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
        }
    });
    (address, broken)
}

/// The worker is there, and what it has: with a connection nothing is lost, and for a moment nobody tries another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_not_lost_with_connections_that_broke_while_they_were_made() {
    for (at_root, times) in [(true, 1), (false, 1), (true, 3), (false, 3)] {
        let (mut root, mut other) = (Worker::start(1, &[]).await, Worker::start(2, &[]).await);
        *root.shared.nodes.leads_to.lock() = Some(DirId { worker: 2, number: 7 });
        *other.shared.nodes.refuses.lock() = Some(NodeErrorKind::NotFound);
        let broken = if at_root { &mut root } else { &mut other };
        broken.info.address = breaks(times, &broken.info.address).await.0;
        let coordinator = Coordinator::start(&[&root, &other]).await;
        let nodes = coordinator.client(|settings| settings.in_place = false).await.nodes();
        let said = nodes.get("/tmp/d/k").await.unwrap_err();
        assert_eq!(said.kind, NodeErrorKind::NotFound, "who has it says what there is: {said}");
        assert_eq!(other.node_calls(), 1);
    }
}

/// A way to an address whose connections end when that is told.
async fn ends(target: &str) -> (String, Arc<Notify>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, target) = (listener.local_addr().unwrap().to_string(), target.to_owned());
    let end = Arc::new(Notify::new());
    let told = Arc::clone(&end);
    tokio::spawn(async move {
        loop {
            let (mut near, _) = listener.accept().await.unwrap();
            let mut far = tokio::net::TcpStream::connect(&target).await.unwrap();
            let told = Arc::clone(&told);
            tokio::spawn(async move {
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                    () = told.notified() => {}
                }
            });
        }
    });
    (address, end)
}

/// Others may have put something since: it is asked what became of it, and put again, under another number, only when it was not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_whose_connection_ended_is_asked_after_and_made_again_only_if_it_was_not_done() {
    for was_done in [true, false] {
        let mut root = Worker::start(1, &[]).await;
        *root.shared.nodes.was_done.lock() = Some(was_done);
        let (address, end) = ends(&root.info.address).await;
        root.info.address = address;
        let coordinator = Coordinator::start(&[&root]).await;
        let nodes = coordinator.client(|settings| settings.in_place = false).await.nodes();
        let asking = nodes.clone();
        let asking = tokio::spawn(async move { asking.put("/tmp/k", "value").await });
        until("it is put", || root.node_calls() == 1).await;
        end.notify_waiters();
        asking.await.unwrap().unwrap();
        let puts = root.shared.nodes.puts.lock().clone();
        assert_eq!(puts.len(), if was_done { 1 } else { 2 });
        assert_eq!(root.node_calls(), puts.len() + 1, "it was asked once what became of it");
        let again = puts.last().unwrap();
        assert_eq!(again.turn, puts[0].turn + u64::from(!was_done), "what was not done never is under its number");
        nodes.put("/tmp/k", "value").await.unwrap();
        let next = *root.shared.nodes.puts.lock().last().unwrap();
        assert_eq!((next.slot, next.turn > again.turn), (again.slot, true), "a slot is used again");
    }
}

/// What a worker says of the question it does not say of the put.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_whose_worker_does_not_say_what_became_of_it_may_be_done() {
    let mut root = Worker::start(1, &[]).await;
    *root.shared.nodes.was_done.lock() = Some(true);
    let (address, end) = ends(&root.info.address).await;
    root.info.address = address;
    let coordinator = Coordinator::start(&[&root]).await;
    let nodes = coordinator.client(|settings| settings.in_place = false).await.nodes();
    let asking = tokio::spawn(async move { nodes.put("/tmp/k", "value").await });
    until("it is put", || root.node_calls() == 1).await;
    *root.shared.nodes.refuses.lock() = Some(NodeErrorKind::Denied);
    end.notify_waiters();
    let error = asking.await.unwrap().unwrap_err();
    assert_eq!(error.kind, NodeErrorKind::Retry, "{error}");
    assert!(error.message.contains("may be done or not"), "{error}");
}

/// It is cut off from this client alone: others find what it has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_not_be_reached_is_lost_when_the_cluster_says_so() {
    for at_root in [true, false] {
        let (mut root, mut other) = (Worker::start(1, &[]).await, Worker::start(2, &[]).await);
        *root.shared.nodes.leads_to.lock() = Some(DirId { worker: 2, number: 7 });
        *other.shared.nodes.refuses.lock() = Some(NodeErrorKind::NotFound);
        let away = if at_root { &mut root } else { &mut other };
        let (address, tries) = breaks(usize::MAX, &away.info.address).await;
        away.info.address = address;
        let coordinator = Coordinator::start(&[&root, &other]).await;
        let nodes = coordinator.client(|settings| settings.in_place = false).await.nodes();
        let asking = tokio::spawn(async move { nodes.get("/tmp/d/k").await });
        until("it is tried again and again", || tries.load(Ordering::SeqCst) > 3).await;
        assert!(!asking.is_finished(), "it is live, and may be reached again");
        lose(&coordinator, if at_root { &root } else { &other });
        let said = asking.await.unwrap().unwrap_err();
        // Of what the worker of /tmp had nothing is left, which who has it now says.
        let kind = if at_root { NodeErrorKind::NotFound } else { NodeErrorKind::DataLost };
        assert_eq!(said.kind, kind, "{said}");
    }
}

/// It came since, perhaps: others see it in the view.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_came_while_the_coordinator_was_away_was_told_to_be_lost() {
    let root = Worker::start(1, &[]).await;
    *root.shared.nodes.leads_to.lock() = Some(DirId { worker: 2, number: 7 });
    let mut coordinator = Coordinator::start(&[&root]).await;
    let nodes = coordinator.client(|settings| settings.in_place = false).await.nodes();
    coordinator.stop().await;
    let asking = tokio::spawn(async move { nodes.get("/tmp/d/k").await });
    until("the way to it is asked for again and again", || root.node_calls() > 3).await;
    assert!(!asking.is_finished(), "nobody says that it is lost");
    asking.abort();
}

/// It was done, others have seen it, and it was lost with its worker: nobody may conclude from an error that it never was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_be_done_and_is_lost_is_not_said_to_be_without_effect() {
    for kind in [NodeErrorKind::NotFound, NodeErrorKind::Exists, NodeErrorKind::NoSpace] {
        let (root, other) = (Worker::start(1, &[]).await, Worker::start(2, &[]).await);
        *root.shared.nodes.leads_to.lock() = Some(DirId { worker: 2, number: 7 });
        let coordinator = Coordinator::start(&[&root, &other]).await;
        let nodes = coordinator.client(|_| {}).await.nodes();
        let asking = nodes.clone();
        let asking = tokio::spawn(async move { asking.append("/tmp/d/f", "bytes").await });
        until("the other worker is asked", || other.node_calls() == 1).await;
        *root.shared.nodes.refuses.lock() = Some(kind);
        lose(&coordinator, &other);
        let lost = asking.await.unwrap().unwrap_err();
        assert_eq!(lost.kind, NodeErrorKind::DataLost, "{lost}");
        let again = nodes.append("/tmp/d/f", "bytes").await.unwrap_err();
        assert_eq!(again.kind, kind, "what was asked once: {again}");
    }
}
