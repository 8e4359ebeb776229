//! Certificates, and connections of those who trust who issued them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_transport::TlsSettings;
use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A connection over TLS.
pub type Secured = TlsStream<TcpStream>;

/// Who issues certificates.
pub struct Authority {
    /// Its own certificate.
    pub file: PathBuf,
    own: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// One with its certificate in a file of this name.
    pub fn new(folder: &Path, name: &str) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name.push(DnType::CommonName, format!("{name} ca"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let file = folder.join(format!("{name}-ca.pem"));
        std::fs::write(&file, certificate.pem()).unwrap();
        Self { file, own: certificate.der().clone(), issuer: Issuer::new(params, key) }
    }

    fn issue(&self) -> (Certificate, KeyPair) {
        let (names, key) = (vec!["localhost".to_string(), "127.0.0.1".to_string()], KeyPair::generate().unwrap());
        (CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer).unwrap(), key)
    }

    /// A server's certificate, in files that are always the same ones of a folder.
    pub fn server(&self, folder: &Path) -> TlsSettings {
        let ((certificate, key), cert, private) = (self.issue(), folder.join("cert.pem"), folder.join("key.pem"));
        std::fs::write(&cert, certificate.pem()).unwrap();
        std::fs::write(&private, key.serialize_pem()).unwrap();
        TlsSettings { cert: Some(cert), key: Some(private), ..TlsSettings::default() }
    }

    /// Connects as one who trusts it, and shows a certificate of another.
    pub async fn connect(&self, at: SocketAddr, shows: Option<&Self>) -> std::io::Result<Secured> {
        let mut roots = RootCertStore::empty();
        roots.add(self.own.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(roots);
        let config = match shows.map(Self::issue) {
            Some((certificate, key)) => {
                let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
                config.with_client_auth_cert(vec![certificate.der().clone()], key).unwrap()
            }
            None => config.with_no_client_auth(),
        };
        let socket = TcpStream::connect(at).await.unwrap();
        TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), socket).await
    }
}
