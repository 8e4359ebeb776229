use std::sync::atomic::Ordering;

use forebay_transport::{Address, Connection, Security, ServerLimits};
use forebay_types::{Error, ErrorKind};

use crate::desk::{local, open, open_at, token, unix, until};

async fn refused(address: &Address, security: &Security) -> Error {
    Connection::connect(address, security).await.err().expect("it is refused")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_token_lets_in() {
    let open = open_at(&local(), token("secret"), ServerLimits::default()).await;
    let connection = Connection::connect(&open.address, &token("secret")).await.unwrap();
    connection.call("echo".into(), vec![]).await.unwrap();
    // Blanks around it come with files and variables.
    Connection::connect(&open.address, &token("secret\n")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_token_does_not() {
    let open = open_at(&local(), token("secret"), ServerLimits::default()).await;
    let error = refused(&open.address, &token("guess")).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().contains("the cluster token does not match: set FOREBAY_TOKEN"), "{error}");
    assert!(!error.message().contains("secret") && !error.message().contains("guess"));
    let error = refused(&open.address, &Security::default()).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().contains("set FOREBAY_TOKEN"), "{error}");
    let error = refused(&open.address, &token(" ")).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert_eq!(open.desk.opened.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_proves_nothing_gets_no_requests() {
    let open = open().await;
    let error = refused(&open.address, &token("secret")).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().contains("the server has no cluster token"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unix_socket_of_the_same_user_needs_no_token() {
    let (_folder, address) = unix();
    let open = open_at(&address, token("secret"), ServerLimits::default()).await;
    for security in [Security::default(), token("secret"), token("guess")] {
        let connection = Connection::connect(&open.address, &security).await.unwrap();
        connection.call("echo".into(), vec![]).await.unwrap();
    }
    assert!(open.desk.peers.lock().iter().all(|peer| peer.unix && peer.same_user));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_can_refuse() {
    let open = open().await;
    open.desk.refuses.store(true, Ordering::SeqCst);
    let error = refused(&open.address, &Security::default()).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().ends_with("not today: come back tomorrow"), "{error}");
    assert_eq!(open.desk.closed.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_over_the_limit_are_told_to_come_back() {
    let limits = ServerLimits { connections: 2, ..ServerLimits::default() };
    let open = open_at(&local(), Security::default(), limits).await;
    let (first, second) = (open.connect().await, open.connect().await);
    let error = refused(&open.address, &Security::default()).await;
    assert_eq!(error.kind(), ErrorKind::Retry);
    assert!(error.message().contains("2 connections"), "{error}");
    drop(first);
    until(|| open.desk.closed.load(Ordering::SeqCst) == 1).await;
    let third = loop {
        match Connection::connect(&open.address, &Security::default()).await {
            Ok(connection) => break connection,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Retry),
        }
    };
    third.call("echo".into(), vec![]).await.unwrap();
    second.call("echo".into(), vec![]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_one_there_is_retry() {
    let open = open().await;
    let address = open.address.clone();
    open.server.shutdown().await;
    let error = refused(&address, &Security::default()).await;
    assert_eq!(error.kind(), ErrorKind::Retry);
    assert!(error.message().contains(&address.to_string()) && error.message().contains("running there"), "{error}");
    let (_folder, address) = unix();
    assert_eq!(refused(&address, &Security::default()).await.kind(), ErrorKind::Retry);
}

#[test]
fn addresses_are_read_back_as_written() {
    for text in ["127.0.0.1:7411", "[::1]:80", "node-1.example.org:1", "unix:/run/forebay.sock"] {
        assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
    }
    for text in ["", "localhost", ":80", "::1:80", "host:", "host:port", "host:70000", "unix:"] {
        assert_eq!(text.parse::<Address>().unwrap_err().kind(), ErrorKind::Invalid, "{text}");
    }
}

#[test]
fn a_token_is_not_shown() {
    assert!(!format!("{:?}", token("secret")).contains("secret"));
}
