use std::path::Path;
use std::sync::Arc;

use forebay_types::{Error, Result};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::{Address, TlsSettings};

/// The listening side: shows `cert` and proves it with `key`.
pub(crate) fn acceptor(tls: &TlsSettings) -> Result<TlsAcceptor> {
    acceptor_for(tls, &[])
}

/// The same for a port that speaks another protocol than ours, with the names that its clients ask for (ALPN), as in `h2`.
pub fn acceptor_for(tls: &TlsSettings, protocols: &[&str]) -> Result<TlsAcceptor> {
    let cert = wanted(&tls.cert, "certificate", "to listen")?;
    let key = wanted(&tls.key, "private key", "to listen")?;
    let chain = certificates(cert, "certificate")?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, "private key", error))?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| Error::internal(format!("TLS can't be set up: {error}")))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| {
            Error::invalid(format!(
                "TLS certificate {} and private key {} can't be used together: {error}",
                cert.display(),
                key.display()
            ))
        })?;
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The connecting side: trusts the certificates in `ca`.
pub(crate) fn connector(tls: &TlsSettings) -> Result<TlsConnector> {
    let ca = wanted(&tls.ca, "CA certificate", "to connect")?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates(ca, "CA certificate")? {
        roots.add(certificate).map_err(|error| unreadable(ca, "CA certificate", error))?;
    }
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| Error::internal(format!("TLS can't be set up: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The name that the certificate of `address` must have.
pub(crate) fn server_name(address: &Address) -> Result<ServerName<'static>> {
    let host = address.host().unwrap_or_default().to_string();
    ServerName::try_from(host)
        .map_err(|_| Error::invalid(format!("{address} has no host name that a TLS certificate could be for")))
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn wanted<'a>(path: &'a Option<std::path::PathBuf>, what: &str, purpose: &str) -> Result<&'a Path> {
    path.as_deref()
        .ok_or_else(|| Error::invalid(format!("TLS is on but no {what} is set, which is needed {purpose}: name its PEM file")))
}

fn certificates(path: &Path, what: &str) -> Result<Vec<CertificateDer<'static>>> {
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
        .map_err(|error| unreadable(path, what, error))?;
    if certificates.is_empty() {
        return Err(unreadable(path, what, pem::Error::NoItemsFound));
    }
    Ok(certificates)
}

fn unreadable(path: &Path, what: &str, error: impl std::fmt::Display) -> Error {
    Error::invalid(format!("TLS {what} {} can't be read: {error}; name a readable PEM file", path.display()))
}
