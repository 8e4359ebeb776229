//! The gateway over TLS.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use forebay_transport::TlsSettings;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::rig::client::{read, request};
use crate::rig::cluster::{Cluster, bytes, gateway_settings};

#[tokio::test(flavor = "multi_thread")]
async fn the_same_over_tls_and_nothing_without() {
    let folder = tempfile::tempdir().unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".into()]).unwrap().self_signed(&key).unwrap();
    let (cert, private) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, certificate.pem()).unwrap();
    std::fs::write(&private, key.serialize_pem()).unwrap();
    let mut settings = gateway_settings();
    settings.tls = Some(TlsSettings { cert: Some(cert), key: Some(private), ..TlsSettings::default() });
    let (cluster, s3) = Cluster::over_s3(|_| {}, settings).await;
    assert!(cluster.gateway.as_ref().unwrap().is_https());
    let body = bytes(9, 300_000);
    s3.put("data", "a", &body).unwrap();

    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let connector = TlsConnector::from(Arc::new(config.with_root_certificates(roots).with_no_client_auth()));
    let at = cluster.address();
    let ask = async |request: crate::rig::client::Signed| {
        let socket = tokio::net::TcpStream::connect(at).await.unwrap();
        let mut socket = connector.connect(ServerName::try_from("localhost").unwrap(), socket).await.unwrap();
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

    let mut plain = tokio::net::TcpStream::connect(at).await.unwrap();
    plain.write_all(request("GET", "/lake/a").head(at).as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&answer));
}

/// Who issues certificates, its own in a file.
struct Authority {
    file: PathBuf,
    own: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(folder: &Path, name: &str) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, format!("{name} ca"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let file = folder.join(format!("{name}-ca.pem"));
        std::fs::write(&file, certificate.pem()).unwrap();
        Self { file, own: certificate.der().clone(), issuer: Issuer::new(params, key) }
    }

    fn issue(&self) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        (CertificateParams::new(vec!["localhost".into()]).unwrap().signed_by(&key, &self.issuer).unwrap(), key)
    }

    /// A server's, in files that are always the same ones of a folder.
    fn server(&self, folder: &Path) -> TlsSettings {
        let ((certificate, key), cert, private) = (self.issue(), folder.join("cert.pem"), folder.join("key.pem"));
        std::fs::write(&cert, certificate.pem()).unwrap();
        std::fs::write(&private, key.serialize_pem()).unwrap();
        TlsSettings { cert: Some(cert), key: Some(private), ..TlsSettings::default() }
    }
}

/// Connects as one who trusts an authority, and shows a certificate of another.
async fn connect(at: SocketAddr, trusts: &Authority, shows: Option<&Authority>) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusts.own.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots);
    let config = match shows.map(Authority::issue) {
        Some((certificate, key)) => {
            let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
            config.with_client_auth_cert(vec![certificate.der().clone()], key).unwrap()
        }
        None => config.with_no_client_auth(),
    };
    let socket = TcpStream::connect(at).await.unwrap();
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), socket).await
}

/// The status of a signed request; none where the connection ends without an answer.
async fn status(socket: &mut TlsStream<TcpStream>, at: SocketAddr) -> Option<u16> {
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
        if let Ok(mut socket) = connect(at, &ours, shows).await {
            assert_eq!(status(&mut socket, at).await, None);
        }
    }
    assert_eq!(s3.counters().requests(), 0);
    let mut socket = connect(at, &ours, Some(&ours)).await.unwrap();
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
    let mut standing = connect(at, &old, None).await.unwrap();
    assert_eq!(status(&mut standing, at).await, Some(200));
    assert!(connect(at, &new, None).await.is_err());
    new.server(folder.path());
    let replaced = async {
        loop {
            match connect(at, &new, None).await {
                Ok(socket) => break socket,
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    let mut socket = tokio::time::timeout(Duration::from_secs(10), replaced).await.expect("the new one is shown");
    assert_eq!(status(&mut socket, at).await, Some(200));
    assert!(connect(at, &old, None).await.is_err(), "it trusts the old authority");
    assert_eq!(status(&mut standing, at).await, Some(200), "who was there goes on");
    // One that can't be used changes nothing.
    std::fs::write(folder.path().join("cert.pem"), "half a certif").unwrap();
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert!(connect(at, &new, None).await.is_ok());
}
