use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use forebay_transport::{Address, Connection, Listener, Security, Server, ServerLimits, TlsSettings};
use forebay_types::ErrorKind;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::desk::{DeskService, local, open_at, pattern, unix};

/// A CA's certificate, and a server's with its key.
fn certificates(folder: &Path, name: &str) -> TlsSettings {
    let file = |what: &str, contents: String| -> Option<PathBuf> {
        let path = folder.join(format!("{name}-{what}.pem"));
        std::fs::write(&path, contents).unwrap();
        Some(path)
    };
    let mut ca = CertificateParams::new(vec![]).unwrap();
    ca.distinguished_name.push(rcgen::DnType::CommonName, format!("{name} ca"));
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_key = KeyPair::generate().unwrap();
    let ca_certificate = ca.self_signed(&ca_key).unwrap();
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec!["localhost".to_string(), "127.0.0.1".to_string()]).unwrap();
    let certificate = server.signed_by(&key, &Issuer::new(ca, ca_key)).unwrap();
    TlsSettings {
        ca: file("ca", ca_certificate.pem()),
        cert: file("cert", certificate.pem()),
        key: file("key", key.serialize_pem()),
    }
}

fn security(tls: TlsSettings) -> Security {
    crate::desk::owner("a secret of ours").with_tls(Some(tls))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_go_through_tls() {
    let folder = tempfile::tempdir().unwrap();
    let security = security(certificates(folder.path(), "good"));
    let open = open_at(&local(), security.clone(), ServerLimits::default()).await;
    let port = open.address.to_string().rsplit_once(':').unwrap().1.to_string();
    for address in [open.address.clone(), Address::Tcp(format!("localhost:{port}"))] {
        let connection = Connection::connect(&address, &security).await.unwrap();
        let payload = Bytes::from(pattern(5 << 20));
        let large = connection.call("echo".into(), vec![payload.slice(..3), payload.slice(3..)]);
        let (large, small) = tokio::join!(large, connection.call("echo small".into(), vec![]));
        assert!(large.unwrap().payload == payload);
        assert_eq!(small.unwrap().meta, "echo small");
        let given = connection.call(format!("give {}", 64 << 20).into(), vec![]).await.unwrap();
        assert_eq!(given.payload.len(), 64 << 20);
        drop(connection);
    }
    crate::desk::until(|| open.desk.closed.load(std::sync::atomic::Ordering::SeqCst) == 2).await;
    open.server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_over_tls_lets_running_calls_finish() {
    let folder = tempfile::tempdir().unwrap();
    let security = security(certificates(folder.path(), "good"));
    let open = open_at(&local(), security.clone(), ServerLimits::default()).await;
    let connection = Connection::connect(&open.address, &security).await.unwrap();
    let call = tokio::spawn(async move { connection.call("sleep 200".into(), vec![]).await });
    crate::desk::until(|| open.desk.running.load(std::sync::atomic::Ordering::SeqCst) == 1).await;
    open.server.shutdown().await;
    assert_eq!(call.await.unwrap().unwrap().meta, "sleep 200");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_of_another_ca_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (good, other) = (certificates(folder.path(), "good"), certificates(folder.path(), "other"));
    let open = open_at(&local(), security(good.clone()), ServerLimits::default()).await;
    let error = Connection::connect(&open.address, &security(other)).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().contains("TLS failed"), "{error}");
    // Without TLS there is no way in either, nor does it hang.
    let plain = Security { tls: None, ..security(good) };
    assert!(Connection::connect(&open.address, &plain).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_tls_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let tls = security(certificates(folder.path(), "good"));
    let open = open_at(&local(), Security { tls: None, ..tls.clone() }, ServerLimits::default()).await;
    let error = Connection::connect(&open.address, &tls).await.err().unwrap();
    assert!(error.message().contains("TLS failed"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unix_sockets_do_without() {
    let folder = tempfile::tempdir().unwrap();
    let security = security(certificates(folder.path(), "good"));
    let (_folder, address) = unix();
    let open = open_at(&address, security.clone(), ServerLimits::default()).await;
    Connection::connect(&open.address, &security).await.unwrap().call("echo".into(), vec![]).await.unwrap();
}

#[tokio::test]
async fn files_that_are_missing_or_wrong_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let good = certificates(folder.path(), "good");
    let other = certificates(folder.path(), "other");
    let missing = Some(folder.path().join("missing.pem"));
    let empty = Some(folder.path().join("empty.pem"));
    std::fs::write(empty.as_ref().unwrap(), "").unwrap();
    let cases = [
        (TlsSettings { cert: missing.clone(), ..good.clone() }, "missing.pem"),
        (TlsSettings { key: missing.clone(), ..good.clone() }, "missing.pem"),
        (TlsSettings { cert: empty.clone(), ..good.clone() }, "empty.pem"),
        (TlsSettings { key: empty.clone(), ..good.clone() }, "empty.pem"),
        (TlsSettings { key: other.key, ..good.clone() }, "other-key.pem"),
        (TlsSettings { cert: None, ..good.clone() }, "no certificate"),
        (TlsSettings { key: None, ..good.clone() }, "no private key"),
    ];
    for (tls, named) in cases {
        let listener = Listener::bind(&local()).await.unwrap();
        let started = Server::start(listener, security(tls), Arc::new(DeskService::default()), ServerLimits::default());
        let error = started.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains(named), "{error}");
    }
    let open = open_at(&local(), security(good.clone()), ServerLimits::default()).await;
    for (ca, named) in [(missing, "missing.pem"), (empty, "empty.pem"), (None, "no CA certificate")] {
        let tls = TlsSettings { ca, ..good.clone() };
        let error = Connection::connect(&open.address, &security(tls)).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains(named), "{error}");
    }
}
