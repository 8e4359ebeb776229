//! The gateway over TLS.

use std::net::SocketAddr;
use std::time::Duration;

use forebay_testbed::{Authority, Secured};
use forebay_transport::TlsSettings;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::rig::client::{read, request};
use crate::rig::cluster::{Cluster, bytes, gateway_settings};

#[tokio::test(flavor = "multi_thread")]
async fn the_same_over_tls_and_nothing_without() {
    let folder = tempfile::tempdir().unwrap();
    let ours = Authority::new(folder.path(), "ours");
    let mut settings = gateway_settings();
    settings.tls = Some(ours.server(folder.path()));
    let (cluster, s3) = Cluster::over_s3(|_| {}, settings).await;
    assert!(cluster.node.gateway.as_ref().unwrap().is_https());
    let body = bytes(9, 300_000);
    s3.put("data", "a", &body).unwrap();
    let at = cluster.address();
    let ask = async |request: crate::rig::client::Signed| {
        let mut socket = ours.connect(at, None).await.unwrap();
        socket.write_all(request.header("connection", "close").head(at).as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // A server that closes without a word of TLS gives an error behind the whole answer.
        let _ = socket.read_to_end(&mut answer).await;
        answer
    };
    let answer = ask(request("GET", "/lake/a")).await;
    assert!(answer.starts_with(b"HTTP/1.1 200") && answer.ends_with(&body));
    let mut forged = request("GET", "/lake/a");
    forged.secret = "guessed".into();
    assert!(ask(forged).await.starts_with(b"HTTP/1.1 403"));

    let mut plain = TcpStream::connect(at).await.unwrap();
    plain.write_all(request("GET", "/lake/a").head(at).as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&answer));
}

/// The status of a signed request; none where the connection ends without an answer.
async fn status(socket: &mut Secured, at: SocketAddr) -> Option<u16> {
    socket.write_all(request("GET", "/lake/a").head(at).as_bytes()).await.ok()?;
    Some(read(socket, false).await?.status)
}

#[tokio::test(flavor = "multi_thread")]
async fn with_an_authority_of_clients_only_its_certificates_come_in() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, other) = (Authority::new(folder.path(), "ours"), Authority::new(folder.path(), "other"));
    let mut settings = gateway_settings();
    settings.tls = Some(TlsSettings { client_ca: Some(ours.file.clone()), ..ours.server(folder.path()) });
    let (cluster, s3) = Cluster::over_s3(|_| {}, settings).await;
    s3.put("data", "a", b"seen").unwrap();
    s3.reset_counters();
    let at = cluster.address();
    // The signature is right each time: it is not enough.
    for shows in [None, Some(&other)] {
        if let Ok(mut socket) = ours.connect(at, shows).await {
            assert_eq!(status(&mut socket, at).await, None);
        }
    }
    assert_eq!(s3.counters().requests(), 0);
    let mut socket = ours.connect(at, Some(&ours)).await.unwrap();
    assert_eq!(status(&mut socket, at).await, Some(200));
    // Nor is the certificate.
    let mut forged = request("GET", "/lake/a");
    forged.secret = "guessed".into();
    socket.write_all(forged.head(at).as_bytes()).await.unwrap();
    assert_eq!(read(&mut socket, false).await.unwrap().status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_was_replaced_is_shown_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (Authority::new(folder.path(), "old"), Authority::new(folder.path(), "new"));
    let mut settings = gateway_settings();
    settings.tls = Some(old.server(folder.path()));
    let (cluster, s3) = Cluster::over_s3(|_| {}, settings).await;
    s3.put("data", "a", b"seen").unwrap();
    let at = cluster.address();
    let mut standing = old.connect(at, None).await.unwrap();
    assert_eq!(status(&mut standing, at).await, Some(200));
    assert!(new.connect(at, None).await.is_err());
    new.server(folder.path());
    let replaced = async {
        loop {
            match new.connect(at, None).await {
                Ok(socket) => break socket,
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    let mut socket = tokio::time::timeout(Duration::from_secs(10), replaced).await.expect("the new one is shown");
    assert_eq!(status(&mut socket, at).await, Some(200));
    assert!(old.connect(at, None).await.is_err(), "it trusts the old authority");
    assert_eq!(status(&mut standing, at).await, Some(200), "who was there goes on");
    // One that can't be used changes nothing.
    std::fs::write(folder.path().join("cert.pem"), "half a certif").unwrap();
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert!(new.connect(at, None).await.is_ok());
}
