use std::sync::Arc;

use forebay_types::{Error, Result};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::settings::TlsFiles;

/// Shows the certificate; HTTP/1.1 over TLS 1.2 or 1.3.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor> {
    let unreadable = |path: &std::path::Path, error: &dyn std::fmt::Display| {
        Error::invalid(format!("TLS file {} can't be read: {error}; name a readable PEM file", path.display()))
    };
    let chain = CertificateDer::pem_file_iter(&files.cert).and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>());
    let chain = chain.map_err(|error| unreadable(&files.cert, &error))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| unreadable(&files.key, &error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::internal(format!("TLS can't be set up: {error}")))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| unreadable(&files.cert, &error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
