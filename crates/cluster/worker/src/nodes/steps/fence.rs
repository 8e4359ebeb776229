//! A worker that is stopped in the middle of an operation, and finds out when it goes on.

use std::sync::Arc;
use std::time::Duration;

use forebay_coordinator::CoordinatorSettings;
use forebay_nodes::{Got, NodeErrorKind, ROOT, Value};

use crate::nodes::Nodes;
use crate::nodes::fence::Reached;
use crate::process::bed::Bed;
use crate::{Tuning, Worker};

/// One worker, which has `/tmp`.
async fn alone() -> (Worker, Bed) {
    let bed = Bed::start(CoordinatorSettings::LEASE).await;
    // What the test says of the lease stands until it asks for a heartbeat.
    let tuning = Tuning { beat: Duration::from_secs(3600), ..Tuning::default() };
    (bed.worker("alone", tuning).await, bed)
}

fn value(text: &str) -> Value {
    Value::Inline(text.as_bytes().into())
}

fn reached(nodes: &Nodes) -> Reached {
    Reached { losses: Some(nodes.fence.losses.load(std::sync::atomic::Ordering::Relaxed)), ..Reached::from(ROOT) }
}

#[tokio::test]
async fn what_was_done_under_a_lease_that_ran_out_counts_when_the_worker_was_not_lost() {
    let (worker, _bed) = alone().await;
    let nodes = Arc::clone(&worker.rooms.nodes);
    let life = nodes.begins().await.unwrap();
    nodes.put_value(reached(&nodes), "k", value("new")).unwrap();
    nodes.cluster.lease.end();
    let counts = nodes.counts(life);
    tokio::pin!(counts);
    assert!(futures::poll!(counts.as_mut()).is_pending(), "nobody knows yet");
    nodes.cluster.want_news();
    counts.await.unwrap();
    assert!(matches!(nodes.names.read().get(ROOT, "k"), Ok(Got::Inline(b"new"))));
}

#[tokio::test]
async fn what_was_done_does_not_count_when_the_worker_was_lost() {
    let (worker, _bed) = alone().await;
    let nodes = Arc::clone(&worker.rooms.nodes);
    let (life, before) = (nodes.begins().await.unwrap(), reached(&nodes));
    nodes.put_value(before, "k", value("new")).unwrap();
    nodes.begin_anew();
    assert_eq!(nodes.counts(life).await.unwrap_err().kind, NodeErrorKind::DataLost);
    let late = nodes.put_value(before, "k", value("late")).unwrap_err();
    assert_eq!(late.kind, NodeErrorKind::Moving, "the way there is from before");
    assert!(!nodes.names.read().has(ROOT), "nothing is left of it");
}

#[tokio::test]
async fn without_a_lease_nothing_begins() {
    let (worker, _bed) = alone().await;
    let nodes = Arc::clone(&worker.rooms.nodes);
    nodes.cluster.lease.end();
    let begins = nodes.begins();
    tokio::pin!(begins);
    assert!(futures::poll!(begins.as_mut()).is_pending());
    nodes.cluster.want_news();
    begins.await.unwrap();
}
