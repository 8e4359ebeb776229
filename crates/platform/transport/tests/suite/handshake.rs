//! Who is let in, and what others are told.

use std::sync::atomic::Ordering;

use forebay_protocol::{PROTOCOL_VERSION, PROTOCOL_VERSION_OLDEST};
use forebay_rights::{Need, Place, Who};
use forebay_transport::{Address, Connection, Credential, Security, ServerLimits};
use forebay_types::{Error, ErrorKind, Grant, Role};
use tokio::io::AsyncReadExt;

use crate::desk::{local, open, open_at, ours, owner, unix, until};
use crate::raw;

async fn refused(address: &Address, security: &Security) -> Error {
    Connection::connect(address, security).await.err().expect("it is refused")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_secret_lets_in() {
    let open = open_at(&local(), owner("a secret of ours"), ServerLimits::default()).await;
    let connection = Connection::connect(&open.address, &owner("a secret of ours")).await.unwrap();
    connection.call("echo".into(), vec![]).await.unwrap();
    // Blanks around it come with files and variables.
    Connection::connect(&open.address, &owner("a secret of ours\n")).await.unwrap();
    assert!(open.desk.peers.lock().iter().all(|peer| *peer.caller.who() == Who::Owner));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_speak_the_newest_version_that_both_know() {
    let (new, old) = (PROTOCOL_VERSION, PROTOCOL_VERSION_OLDEST);
    for (server, client, both) in [(new, new, new), (new, old, old), (old, new, old), (old, old, old)] {
        let (_folder, socket) = unix();
        for address in [local(), socket] {
            let open = open_at(&address, ours().speaking(server), ServerLimits::default()).await;
            let connection = Connection::nearest(&open.address, &ours().speaking(client)).await.unwrap();
            assert_eq!(connection.version(), both, "{server} and {client} at {address}");
            assert_eq!(connection.call("echo".into(), vec![]).await.unwrap().version, both);
            assert_eq!(open.desk.peers.lock()[0].version, both, "the server knows it too");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_secret_or_none_does_not() {
    let open = open_at(&local(), owner("a secret of ours"), ServerLimits::default()).await;
    let error = refused(&open.address, &owner("a guess of theirs")).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(!error.message().contains("of ours") && !error.message().contains("of theirs"), "{error}");
    let error = refused(&open.address, &Security { shows: None, ..Security::default() }).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().contains("set FOREBAY_TOKEN"), "{error}");
    // What only this process knows is not what the server was given.
    assert_eq!(refused(&open.address, &Security::default()).await.kind(), ErrorKind::Denied);
    assert_eq!(open.desk.opened.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_open_on_loopback_either() {
    let open = open().await;
    for stranger in [owner("a guess of theirs"), Security { shows: None, ..Security::default() }] {
        assert_eq!(refused(&open.address, &stranger).await.kind(), ErrorKind::Denied);
    }
    assert_eq!(open.desk.opened.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_can_not_prove_itself_is_shown_nothing() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap().to_string());
    let thief = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // It answers with a nonce and a proof that it made up, and keeps what comes then.
        raw::hear(&mut stream).await;
        raw::say(&mut stream, &[&[1][..], &[7; 32], &[32], &[9; 32]].concat()).await;
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        rest
    });
    let error = refused(&address, &owner("a secret of ours")).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().contains("does not know the secret"), "{error}");
    assert!(thief.await.unwrap().is_empty(), "not a byte of a proof");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_say_who_comes_until_they_are_taken_away() {
    let (reader, writer) = (Credential::generate("reader", 1).unwrap(), Credential::generate("writer", 1).unwrap());
    let security = owner("a secret of ours");
    let verifiers = || {
        let (read, write) = (Grant::everywhere(Role::Read), Grant::everywhere(Role::Write));
        vec![reader.verifier(read, 1), writer.verifier(write, 1)]
    };
    let open = open_at(&local(), security.clone(), ServerLimits::default()).await;
    let of = |credential: &Credential| Security::holder(credential.clone());
    assert_eq!(refused(&open.address, &of(&reader)).await.kind(), ErrorKind::Denied);
    security.admits.set(verifiers());
    let connection = Connection::connect(&open.address, &of(&reader)).await.unwrap();
    connection.call("echo".into(), vec![]).await.unwrap();
    let caller = open.desk.peers.lock()[0].caller.clone();
    assert_eq!(caller.who().to_string(), "token reader.1");
    let (read, write) = (Need::read(Place::Cluster), Need::write(Place::Cluster));
    assert!(caller.may(&read, 0, |_| None).is_ok() && caller.may(&write, 0, |_| None).is_err());
    // The same list again changes nothing; one without it ends its right, on the connection that stands, too.
    security.admits.set(verifiers());
    assert!(caller.may(&read, 0, |_| None).is_ok());
    security.admits.set(verifiers().split_off(1));
    assert_eq!(caller.may(&read, 0, |_| None).unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(refused(&open.address, &of(&reader)).await.kind(), ErrorKind::Denied);
    Connection::connect(&open.address, &of(&writer)).await.unwrap();
    // A forger who knows what servers keep of a token, but not the token.
    let forged = Credential::token(&format!("fb.writer.1.{}", "0".repeat(43))).unwrap();
    assert_eq!(refused(&open.address, &of(&forged)).await.kind(), ErrorKind::Denied);
}

#[test]
fn secrets_that_can_be_guessed_are_refused() {
    for short in ["", " ", "t", "fifteen bytes !"] {
        let error = Security::owner(short).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains("16 or more"), "{error}");
    }
    assert!(Security::owner("sixteen bytes !!").is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unix_socket_of_the_same_user_is_the_kernels_word() {
    let (_folder, address) = unix();
    let open = open_at(&address, owner("a secret of ours"), ServerLimits::default()).await;
    for security in [Security::default(), owner("another secret of ours"), Security { shows: None, ..Security::default() }] {
        let connection = Connection::connect(&open.address, &security).await.unwrap();
        connection.call("echo".into(), vec![]).await.unwrap();
    }
    assert!(open.desk.peers.lock().iter().all(|peer| peer.unix && peer.same_user && *peer.caller.who() == Who::Owner));
    // Who shows a token is taken for its holder, here as well.
    let token = Security::holder(Credential::generate("reader", 1).unwrap());
    assert_eq!(refused(&open.address, &token).await.kind(), ErrorKind::Denied);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_can_refuse() {
    let open = open().await;
    open.desk.refuses.store(true, Ordering::SeqCst);
    let error = refused(&open.address, &ours()).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().ends_with("not today: come back tomorrow"), "{error}");
    assert_eq!(open.desk.closed.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_over_the_limit_are_told_to_come_back() {
    let limits = ServerLimits { connections: 2, ..ServerLimits::default() };
    let open = open_at(&local(), ours(), limits).await;
    let (first, second) = (open.connect().await, open.connect().await);
    let error = refused(&open.address, &ours()).await;
    assert_eq!(error.kind(), ErrorKind::Retry);
    assert!(error.message().contains("2 connections"), "{error}");
    drop(first);
    until(|| open.desk.closed.load(Ordering::SeqCst) == 1).await;
    let third = loop {
        match Connection::connect(&open.address, &ours()).await {
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
    let error = refused(&address, &ours()).await;
    assert_eq!(error.kind(), ErrorKind::Retry);
    assert!(error.message().contains(&address.to_string()) && error.message().contains("running there"), "{error}");
    let (_folder, address) = unix();
    assert_eq!(refused(&address, &ours()).await.kind(), ErrorKind::Retry);
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
    assert!(!format!("{:?}", owner("the hidden text!")).contains("hidden"));
}
