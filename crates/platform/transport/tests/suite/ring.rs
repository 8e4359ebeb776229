//! Calls by shared memory, which keep the promises of those by the socket beside it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use forebay_runtime::deadline;
use forebay_transport::{Connection, ServerLimits};
use forebay_types::ErrorKind;

use crate::desk::{Open, memory, open, open_at, ours, pattern, unix, until};

/// A connection with a ring, and all that must live for it.
async fn beside() -> (tempfile::TempDir, Open, Connection) {
    let (folder, address) = unix();
    let open = open_at(&address, ours(), ServerLimits::default()).await;
    let connection = with_ring(&open).await;
    (folder, open, connection)
}

async fn with_ring(open: &Open) -> Connection {
    let connection = open.connect().await;
    let ring = connection.call("ring".into(), vec![]).await.unwrap().descriptor.expect("a ring");
    connection.use_ring(ring).unwrap();
    connection
}

/// Calls until some of them went by the ring: the server polls as long as calls come soon after each other.
async fn warm(connection: &Connection) {
    let before = connection.calls_by_ring();
    let warming = async {
        while connection.calls_by_ring() < before + 3 {
            connection.call_near("echo".into(), vec![]).await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(10), warming).await.expect("calls go by the ring");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_the_same_whatever_way_they_come() {
    let (_folder, open, connection) = beside().await;
    warm(&connection).await;
    let data = pattern(64 << 10);
    for len in
        [0, 1, 7, 8, 9, 64, 1024, 16 << 10, (20 << 10) - 4, (20 << 10) - 3, 20 << 10, 64 << 10].into_iter().cycle().take(240)
    {
        let answer = connection.call_near("echo".into(), vec![Bytes::copy_from_slice(&data[..len])]).await.unwrap();
        assert_eq!((&answer.meta[..], &answer.payload[..]), (&b"echo"[..], &data[..len]), "{len}");
    }
    let (a, b) = data[..1000].split_at(300);
    let pieces = vec![Bytes::copy_from_slice(a), Bytes::copy_from_slice(b)];
    assert_eq!(connection.call_near("echo".into(), pieces).await.unwrap().payload, data[..1000]);
    for _ in 0..20 {
        warm(&connection).await;
        assert_eq!(connection.call_near("give 3000000".into(), vec![]).await.unwrap().payload.len(), 3_000_000);
        assert_eq!(connection.call_near("sleep 1".into(), vec![]).await.unwrap().meta, "sleep 1");
        assert_eq!(connection.call_near("spin 200".into(), vec![]).await.unwrap().meta, "spin 200");
        assert!(connection.call_near("file".into(), vec![]).await.unwrap().descriptor.is_some());
    }
    connection.notify("heard".into()).unwrap();
    until(|| *open.desk.notices.lock() == ["heard"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_takes_long_ends_with_its_caller() {
    let (_folder, open, connection) = beside().await;
    warm(&connection).await;
    let call = tokio::time::timeout(Duration::from_millis(20), connection.call_near("sleep 60000".into(), vec![]));
    assert!(call.await.is_err());
    until(|| open.desk.calls.dropped.load(Ordering::SeqCst) == 1).await;
    warm(&connection).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_nobody_waits_for_any_more_is_given_up_though_no_word_of_that_comes() {
    let (_folder, open, connection) = beside().await;
    for given_up in 1..=3 {
        warm(&connection).await;
        let mut call = Box::pin(connection.call_near("sleep 60000".into(), vec![]));
        // The call itself is not dropped, so that nothing is cancelled.
        assert!(deadline::within(Duration::from_millis(100), &mut call).await.is_err(), "it takes longer");
        assert_eq!(call.await.unwrap().meta, "failed: sleep 60000");
        assert_eq!(open.desk.calls.dropped.load(Ordering::SeqCst), given_up);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_of_the_version_before_has_a_ring_too_and_is_told_nothing_of_time() {
    let (folder, address) = unix();
    let open = open_at(&address, ours(), ServerLimits::default()).await;
    let connection = Connection::connect(&open.address, &ours().speaking(8)).await.unwrap();
    let ring = connection.call("ring".into(), vec![]).await.unwrap().descriptor.expect("a ring");
    connection.use_ring(ring).unwrap();
    warm(&connection).await;
    let mut call = Box::pin(connection.call_near("sleep 900".into(), vec![]));
    assert!(deadline::within(Duration::from_millis(100), &mut call).await.is_err(), "it takes longer");
    assert_eq!(call.await.unwrap().meta, "sleep 900");
    assert_eq!(open.desk.calls.dropped.load(Ordering::SeqCst), 0);
    drop(folder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn clients_and_threads_get_answers_of_their_own_also_when_the_ring_is_full() {
    let (_folder, open, first) = beside().await;
    let second = with_ring(&open).await;
    let callers = (0..40u64).map(|caller| {
        let connection = if caller % 2 == 0 { first.clone() } else { second.clone() };
        tokio::spawn(async move {
            for number in 0..200u64 {
                let said = Bytes::from(format!("{caller} {number}").into_bytes());
                let answer = connection.call_near("echo".into(), vec![said.clone()]).await.unwrap();
                assert_eq!(answer.payload, said);
                if number % 50 == caller % 50 {
                    connection.call_near("sleep 1".into(), vec![]).await.unwrap();
                }
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    warm(&first).await;
    warm(&second).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_one_task_has_in_flight_get_their_own_answers_and_those_it_drops_hold_no_slot() {
    let (_folder, _open, connection) = beside().await;
    let echo = |said: String| connection.call_near("echo".into(), vec![Bytes::from(said.into_bytes())]);
    for round in 0..50 {
        warm(&connection).await;
        let answers = futures::future::join_all((0..24).map(|number| echo(format!("{round} {number}")))).await;
        for (number, answer) in answers.into_iter().enumerate() {
            assert_eq!(answer.unwrap().payload, format!("{round} {number}"));
        }
        let mut dropped: Vec<_> = (0..24).map(|number| Box::pin(echo(format!("dropped {number}")))).collect();
        for call in &mut dropped {
            let _ = futures::poll!(call);
        }
    }
    warm(&connection).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_takes_its_session_along() {
    let (_folder, open, connection) = beside().await;
    warm(&connection).await;
    drop(connection);
    until(|| open.desk.closed.load(Ordering::SeqCst) == 1).await;
    // Others are served on, with rings.
    warm(&with_ring(&open).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_goes_fails_calls_and_one_that_stops_lets_them_finish() {
    let (_folder, open, connection) = beside().await;
    warm(&connection).await;
    let calls: Vec<_> = (0..4)
        .map(|_| {
            let connection = connection.clone();
            tokio::spawn(async move { while connection.call_near("echo".into(), vec![]).await.is_ok() {} })
        })
        .collect();
    let slow = connection.call_near("sleep 60000".into(), vec![]);
    let (slow, ()) = tokio::join!(slow, async {
        until(|| open.desk.calls.running.load(Ordering::SeqCst) >= 1).await;
        drop(open.server);
    });
    assert_eq!(slow.unwrap_err().kind(), ErrorKind::Closed);
    for call in calls {
        tokio::time::timeout(Duration::from_secs(5), call).await.expect("every call ends").unwrap();
    }

    let (_folder, open, connection) = beside().await;
    warm(&connection).await;
    let call = tokio::spawn({
        let connection = connection.clone();
        async move { connection.call_near("sleep 100".into(), vec![]).await }
    });
    until(|| open.desk.calls.running.load(Ordering::SeqCst) == 1).await;
    open.server.shutdown().await;
    assert!(call.await.unwrap().is_ok());
    let refused = connection.call_near("echo".into(), vec![]).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_panics_is_answered_and_ends_nothing_else() {
    let (_folder, open, connection) = beside().await;
    for what in ["panic at once", "panic"] {
        warm(&connection).await;
        let answer = connection.call_near(what.into(), vec![]).await.unwrap();
        assert_eq!(answer.meta, format!("failed: {what}"));
    }
    warm(&connection).await;
    assert_eq!(open.desk.closed.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_tcp_there_is_none_and_other_memory_is_refused() {
    let tcp = open().await;
    let connection = tcp.connect().await;
    assert!(connection.call("ring".into(), vec![]).await.unwrap().descriptor.is_none());
    connection.call_near("echo".into(), vec![]).await.unwrap();
    assert_eq!(connection.calls_by_ring(), 0);
    let refused = connection.use_ring(memory(b"no ring")).unwrap_err();
    assert!(refused.message().contains("run one version of forebay"), "{refused}");
    let (_folder, open, connection) = beside().await;
    assert!(connection.call("ring".into(), vec![]).await.unwrap().descriptor.is_none(), "one a connection");
    let shared = Arc::new(connection);
    warm(&shared).await;
    drop(open);
}
