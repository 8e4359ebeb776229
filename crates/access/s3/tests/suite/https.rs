//! The gateway over TLS.

use std::sync::Arc;

use forebay_transport::TlsSettings;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

use crate::rig::client::request;
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
