//! How connections, sessions and servers end.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use forebay_transport::{Connection, ServerLimits};
use forebay_types::ErrorKind;

use crate::desk::{asked, open, open_at, ours, unix, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_closed_once_when_its_connection_is_dropped() {
    let open = open().await;
    let connection = open.connect().await;
    let clone = connection.clone();
    drop(connection);
    clone.call("echo".into(), vec![]).await.unwrap();
    let call = asked(&clone, "sleep 60000");
    until(|| open.desk.calls.running.load(Ordering::SeqCst) == 1).await;
    assert_eq!(open.desk.closed.load(Ordering::SeqCst), 0);
    call.abort();
    let _ = call.await;
    drop(clone);
    until(|| open.desk.closed.load(Ordering::SeqCst) == 1).await;
    assert_eq!(open.desk.calls.running.load(Ordering::SeqCst), 0, "calls end before their session");
    open.server.shutdown().await;
    assert_eq!(open.desk.closed.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn close_fails_what_is_in_flight() {
    let open = open().await;
    let connection = open.connect().await;
    let call = connection.call("sleep 60000".into(), vec![]);
    let (answer, ()) = tokio::join!(call, async {
        until(|| open.desk.calls.running.load(Ordering::SeqCst) == 1).await;
        connection.close();
        assert!(connection.is_closed());
    });
    assert_eq!(answer.unwrap_err().kind(), ErrorKind::Closed);
    connection.closed().await;
    assert_eq!(connection.call("echo".into(), vec![]).await.unwrap_err().kind(), ErrorKind::Closed);
    until(|| open.desk.closed.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_panics_is_answered_and_ends_nothing_else() {
    let open = open().await;
    let connection = open.connect().await;
    let waiting = asked(&connection, "sleep 300");
    until(|| open.desk.calls.running.load(Ordering::SeqCst) == 1).await;
    for _ in 0..100 {
        // In its task, and at its first poll on the task of the connection.
        for what in ["panic", "panic at once", "unheard of"] {
            let answer = connection.call(what.into(), vec![]).await.unwrap();
            assert_eq!(answer.meta, format!("failed: {what}"));
        }
    }
    connection.notify("panic".into()).unwrap();
    connection.call("echo".into(), vec![]).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().meta, "sleep 300");
    assert_eq!((open.desk.opened.load(Ordering::SeqCst), open.desk.closed.load(Ordering::SeqCst)), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_peer_reads_in_place_is_kept_until_it_has_let_go_however_the_connection_ends() {
    let (_folder, address) = unix();
    let open = open_at(&address, ours(), ServerLimits::default()).await;
    let lent = || open.desk.lent.load(Ordering::SeqCst);
    let connection = open.connect().await;
    connection.call("lend".into(), vec![]).await.unwrap();
    // An answer that no frame can carry.
    let ended = connection.call(format!("give {}", 80 << 20).into(), vec![]).await;
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Closed);
    connection.closed().await;
    until(|| open.desk.closed.load(Ordering::SeqCst) == 1).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(lent(), 1, "the peer may look at it still");
    drop(connection);
    until(|| lent() == 0).await;

    // A peer that says it is done, and a server that goes while its process lives on.
    let (closing, left) = (open.connect().await, open.connect().await);
    closing.call("lend".into(), vec![]).await.unwrap();
    left.call("lend".into(), vec![]).await.unwrap();
    closing.close();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(lent(), 2);
    drop(closing);
    until(|| lent() == 1).await;
    drop(open.server);
    left.closed().await;
    until(|| open.desk.closed.load(Ordering::SeqCst) == 3).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(lent(), 1);
    drop(left);
    until(|| lent() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_lets_running_calls_finish() {
    let (folder, address) = unix();
    let open = open_at(&address, ours(), ServerLimits::default()).await;
    let connection = open.connect().await;
    let idle = open.connect().await;
    let (call, large) = (asked(&connection, "sleep 400"), asked(&connection, format!("give {}", 64 << 20)));
    until(|| open.desk.calls.running.load(Ordering::SeqCst) >= 1).await;
    let began = Instant::now();
    let shutdown = tokio::spawn(open.server.shutdown());
    tokio::time::timeout(Duration::from_millis(300), idle.closed()).await.expect("idle connections end at once");
    assert_eq!(call.await.unwrap().unwrap().meta, "sleep 400");
    if let Ok(answer) = large.await.unwrap() {
        assert_eq!(answer.payload.len(), 64 << 20, "an answer is whole or none");
    }
    shutdown.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    connection.closed().await;
    assert_eq!(open.desk.closed.load(Ordering::SeqCst), 2);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the socket's file is removed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_ends_calls_that_take_too_long() {
    let open = open().await;
    let connection = open.connect().await;
    let call = tokio::spawn(async move { connection.call("sleep 60000".into(), vec![]).await });
    until(|| open.desk.calls.running.load(Ordering::SeqCst) == 1).await;
    let began = Instant::now();
    open.server.shutdown().await;
    let elapsed = began.elapsed();
    assert!(elapsed > Duration::from_millis(4900) && elapsed < Duration::from_secs(7), "{elapsed:?}");
    assert_eq!(call.await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    until(|| open.desk.closed.load(Ordering::SeqCst) == 1).await;
    until(|| open.desk.calls.running.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_server_ends_everything() {
    let (folder, address) = unix();
    let open = open_at(&address, ours(), ServerLimits::default()).await;
    let connection = open.connect().await;
    let call = asked(&connection, "sleep 60000");
    until(|| open.desk.calls.running.load(Ordering::SeqCst) == 1).await;
    drop(open.server);
    assert_eq!(call.await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    until(|| open.desk.calls.running.load(Ordering::SeqCst) == 0).await;
    until(|| open.desk.closed.load(Ordering::SeqCst) == 1).await;
    until(|| std::fs::read_dir(folder.path()).unwrap().count() == 0).await;
    let error = Connection::connect(&address, &ours()).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Retry);
}
