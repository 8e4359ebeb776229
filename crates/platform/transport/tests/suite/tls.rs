//! The same over TLS.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_transport::{Address, Connection, Guard, Guarded, Listener, Security, Server, ServerLimits, TlsSettings};
use forebay_types::ErrorKind;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::desk::{DeskService, local, open_at, pattern, unix};

/// A CA with its certificate in a file.
struct Authority {
    folder: PathBuf,
    file: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(folder: &Path, name: &str) -> Self {
        let mut ca = CertificateParams::new(vec![]).unwrap();
        ca.distinguished_name.push(rcgen::DnType::CommonName, format!("{name} ca"));
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let file = folder.join(format!("{name}-ca.pem"));
        std::fs::write(&file, ca.self_signed(&key).unwrap().pem()).unwrap();
        Self { folder: folder.to_path_buf(), file, issuer: Issuer::new(ca, key) }
    }

    /// A certificate of it and its key, in files of this name, for a side that trusts this CA.
    fn issue(&self, name: &str) -> TlsSettings {
        self.issue_until(name, 4096)
    }

    /// The same, which holds until that year.
    fn issue_until(&self, name: &str, year: i32) -> TlsSettings {
        let key = KeyPair::generate().unwrap();
        let mut names = CertificateParams::new(vec!["localhost".to_string(), "127.0.0.1".to_string()]).unwrap();
        names.not_after = rcgen::date_time_ymd(year, 1, 1);
        let certificate = names.signed_by(&key, &self.issuer).unwrap();
        let file = |what: &str, contents: String| {
            let path = self.folder.join(format!("{name}-{what}.pem"));
            std::fs::write(&path, contents).unwrap();
            Some(path)
        };
        let (cert, key) = (file("cert", certificate.pem()), file("key", key.serialize_pem()));
        TlsSettings { ca: Some(self.file.clone()), cert, key, client_ca: None }
    }
}

fn certificates(folder: &Path, name: &str) -> TlsSettings {
    Authority::new(folder, name).issue(name)
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
    crate::desk::until(|| open.desk.calls.running.load(std::sync::atomic::Ordering::SeqCst) == 1).await;
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
    let error = Connection::connect(&open.address, &plain).await.err().unwrap();
    assert!(error.kind() == ErrorKind::Denied && error.message().contains("tls-ca"), "{error}");
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_an_authority_of_clients_only_its_certificates_come_in() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, other) = (Authority::new(folder.path(), "ours"), Authority::new(folder.path(), "other"));
    let server = TlsSettings { client_ca: Some(ours.file.clone()), ..ours.issue("server") };
    let client = ours.issue("client");
    let open = open_at(&local(), security(server.clone()), ServerLimits::default()).await;
    let connection = Connection::connect(&open.address, &security(client.clone())).await.unwrap();
    assert_eq!(connection.call("echo small".into(), vec![]).await.unwrap().meta, "echo small");
    let none = TlsSettings { cert: None, key: None, ..client.clone() };
    let foreign = TlsSettings { ca: client.ca.clone(), ..other.issue("foreign") };
    for tls in [none.clone(), foreign.clone()] {
        let error = Connection::connect(&open.address, &security(tls)).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert!(error.message().contains("tls-cert"), "{error}");
    }
    let expired = ours.issue_until("expired", 2015);
    let error = Connection::connect(&open.address, &security(expired)).await.err().unwrap();
    assert!(error.kind() == ErrorKind::Denied && error.message().contains("has expired, or is not valid yet"), "{error}");
    // Connections of other protocols between processes as well.
    for (tls, good) in [(client, true), (none, false), (foreign, false)] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let guard = Guard::new(&security(server.clone())).unwrap();
        let admitting = tokio::spawn(async move { guard.admit(listener.accept().await.unwrap().0).await.is_ok() });
        let connected = Guarded::connect(&address, &security(tls)).await.is_ok();
        assert_eq!((connected, admitting.await.unwrap()), (good, good));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_was_replaced_is_shown_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (Authority::new(folder.path(), "old"), Authority::new(folder.path(), "new"));
    let before = old.issue("server");
    let open = open_at(&local(), security(before.clone()), ServerLimits::default()).await;
    let standing = Connection::connect(&open.address, &security(before.clone())).await.unwrap();
    // Of the same names, as whoever renews certificates writes them.
    let after = new.issue("server");
    let trusts_new = security(TlsSettings { ca: after.ca.clone(), ..TlsSettings::default() });
    let until_it_comes_in = async {
        while Connection::connect(&open.address, &trusts_new).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), until_it_comes_in).await.unwrap();
    assert!(Connection::connect(&open.address, &security(before)).await.is_err(), "it trusts the old authority");
    assert_eq!(standing.call("echo small".into(), vec![]).await.unwrap().meta, "echo small");
    // One that can't be used changes nothing, nor does one that has expired.
    new.issue_until("server", 2015);
    tokio::time::sleep(Duration::from_millis(1200)).await;
    Connection::connect(&open.address, &trusts_new).await.unwrap();
    std::fs::write(after.cert.as_ref().unwrap(), "half a certif").unwrap();
    tokio::time::sleep(Duration::from_millis(1200)).await;
    Connection::connect(&open.address, &trusts_new).await.unwrap();
}
