//! TLS on TCP connections. Owns: what both sides read from PEM files. Start with [`Acceptor`] and `connector`.

mod acceptor;
mod connector;
mod validity;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_types::{Error, Result};
use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

pub use acceptor::{Acceptor, Spoken};
pub(crate) use connector::{connector, refused_certificate, server_name};

/// The authorities in a file.
fn roots(path: &Path, what: &str) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, what)? {
        roots.add(certificate).map_err(|error| unreadable(path, what, error))?;
    }
    Ok(roots)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| unreadable(path, "private key", error))
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn wanted<'a>(path: &'a Option<PathBuf>, what: &str, purpose: &str) -> Result<&'a Path> {
    path.as_deref()
        .ok_or_else(|| Error::invalid(format!("TLS is on but no {what} is set, which is needed {purpose}: name its PEM file")))
}

fn certificates(path: &Path, what: &str) -> Result<Vec<CertificateDer<'static>>> {
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
        .map_err(|error| unreadable(path, what, error))?;
    if certificates.is_empty() { Err(unreadable(path, what, pem::Error::NoItemsFound)) } else { Ok(certificates) }
}

fn unreadable(path: &Path, what: &str, error: impl std::fmt::Display) -> Error {
    Error::invalid(format!("TLS {what} {} can't be read: {error}; name a readable PEM file", path.display()))
}
