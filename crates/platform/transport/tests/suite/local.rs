//! Connections of a process to itself, which need no socket and keep the same promises.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use forebay_transport::{Connection, ServerLimits};
use forebay_types::ErrorKind;

use crate::desk::{Open, asked, open, open_at, ours, pattern, unix, until};

async fn at_home() -> (tempfile::TempDir, Open, Connection) {
    let (folder, address) = unix();
    let open = open_at(&address, ours(), ServerLimits::default()).await;
    let connection = Connection::nearest(&open.address, &ours()).await.unwrap();
    (folder, open, connection)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_answers_descriptors_and_notices_are_the_same() {
    let (_folder, open, connection) = at_home().await;
    assert_eq!(open.desk.peers.lock()[0].address, "this process");
    let data = pattern(300_000);
    let (a, b) = data.split_at(100_000);
    let payload = vec![Bytes::copy_from_slice(a), Bytes::copy_from_slice(b)];
    let answer = connection.call("echo".into(), payload).await.unwrap();
    assert_eq!((&answer.meta[..], &answer.payload[..]), (&b"echo"[..], &data[..]));
    assert_eq!(connection.call("give 3000000".into(), vec![]).await.unwrap().payload.len(), 3_000_000);
    assert!(connection.call("file".into(), vec![]).await.unwrap().descriptor.unwrap().as_raw_fd() > 2);
    connection.notify("heard".into()).unwrap();
    assert_eq!(*open.desk.notices.lock(), ["heard"]);
    let long = connection.call(vec![b'x'; (16 << 20) + 1].into(), vec![]).await;
    assert_eq!(long.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_elsewhere_and_tcp_are_connected_to() {
    let open = open().await;
    let connection = Connection::nearest(&open.address, &ours()).await.unwrap();
    connection.call("echo".into(), vec![]).await.unwrap();
    assert_ne!(open.desk.peers.lock()[0].address, "this process");
    let (_folder, address) = unix();
    assert!(Connection::nearest(&address, &ours()).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_ends_with_its_caller_and_the_session_with_the_connection() {
    let (_folder, open, connection) = at_home().await;
    let call = tokio::time::timeout(Duration::from_millis(20), connection.call("sleep 60000".into(), vec![]));
    assert!(call.await.is_err());
    until(|| open.desk.calls.dropped.load(Ordering::SeqCst) == 1).await;
    assert_eq!(open.desk.calls.running.load(Ordering::SeqCst), 0);
    let clone = connection.clone();
    drop(connection);
    clone.call("echo".into(), vec![]).await.unwrap();
    assert_eq!(open.desk.closed.load(Ordering::SeqCst), 0);
    drop(clone);
    until(|| open.desk.closed.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn close_fails_what_is_in_flight() {
    let (_folder, open, connection) = at_home().await;
    let (answer, ()) = tokio::join!(connection.call("sleep 60000".into(), vec![]), async {
        until(|| open.desk.calls.running.load(Ordering::SeqCst) == 1).await;
        connection.close();
    });
    assert_eq!(answer.unwrap_err().kind(), ErrorKind::Closed);
    connection.closed().await;
    assert_eq!(connection.call("echo".into(), vec![]).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(connection.notify("x".into()).unwrap_err().kind(), ErrorKind::Closed);
    until(|| open.desk.closed.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_lets_calls_finish_and_one_that_is_dropped_does_not() {
    let (_folder, open, connection) = at_home().await;
    let call = asked(&connection, "sleep 100");
    until(|| open.desk.calls.running.load(Ordering::SeqCst) == 1).await;
    let address = open.address.clone();
    let (refused, ()) = tokio::join!(
        async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            connection.call("echo".into(), vec![]).await
        },
        open.server.shutdown()
    );
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Closed);
    assert!(call.await.unwrap().is_ok());
    assert!(connection.is_closed());
    until(|| open.desk.closed.load(Ordering::SeqCst) == 1).await;

    let again = open_at(&address, ours(), ServerLimits::default()).await;
    let connection = Connection::nearest(&address, &ours()).await.unwrap();
    let (answer, ()) = tokio::join!(connection.call("sleep 60000".into(), vec![]), async {
        until(|| again.desk.calls.running.load(Ordering::SeqCst) == 1).await;
        drop(again.server);
    });
    assert_eq!(answer.unwrap_err().kind(), ErrorKind::Closed);
    assert!(Connection::nearest(&address, &ours()).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_gone_is_held_by_nobody() {
    let (_folder, open, connection) = at_home().await;
    connection.call("echo".into(), vec![]).await.unwrap();
    open.server.shutdown().await;
    until(|| Arc::strong_count(&open.desk) == 1).await;
    assert!(connection.is_closed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_panics_is_answered_and_ends_nothing_else() {
    let (_folder, open, connection) = at_home().await;
    let (waiting, ()) = tokio::join!(connection.call("sleep 200".into(), vec![]), async {
        for what in ["panic", "panic at once", "unheard of"] {
            let answer = connection.call(what.into(), vec![]).await.unwrap();
            assert_eq!(answer.meta, format!("failed: {what}"));
        }
        assert_eq!(connection.notify("panic".into()).unwrap_err().kind(), ErrorKind::Internal);
    });
    assert_eq!(waiting.unwrap().meta, "sleep 200");
    connection.call("echo".into(), vec![]).await.unwrap();
    assert_eq!((open.desk.opened.load(Ordering::SeqCst), open.desk.closed.load(Ordering::SeqCst)), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_read_in_place_is_kept_until_the_last_holder_has_let_go() {
    let (_folder, open, connection) = at_home().await;
    connection.call("lend".into(), vec![]).await.unwrap();
    let desk = open.desk.clone();
    drop(open.server);
    connection.closed().await;
    until(|| desk.closed.load(Ordering::SeqCst) == 1).await;
    let holder = connection.clone();
    drop(connection);
    assert_eq!(desk.lent.load(Ordering::SeqCst), 1);
    drop(holder);
    until(|| desk.lent.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_goes_on_while_nobody_asks_for_its_answer() {
    let (_folder, open, connection) = at_home().await;
    let mut call = Box::pin(connection.call("sleep 50".into(), vec![]));
    let asked_once = std::future::poll_fn(|context| std::task::Poll::Ready(call.as_mut().poll(context).is_ready()));
    assert!(!asked_once.await);
    until(|| open.desk.calls.running.load(Ordering::SeqCst) == 0).await;
    assert_eq!(open.desk.calls.dropped.load(Ordering::SeqCst), 0);
    call.await.unwrap();
}

#[test]
fn what_a_call_spawns_outlives_the_callers_runtime() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (servers, callers) = (runtime(), runtime());
    let (_folder, open, connection) = servers.block_on(at_home());
    let calls = Arc::new(connection);
    callers.spawn({
        let calls = Arc::clone(&calls);
        async move { calls.call("spawn 100".into(), vec![]).await }
    });
    servers.block_on(until(|| open.desk.calls.running.load(Ordering::SeqCst) == 1));
    callers.shutdown_background();
    servers.block_on(until(|| open.desk.notices.lock().contains(&Bytes::from("spawned"))));
}
