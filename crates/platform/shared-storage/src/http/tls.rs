//! The certificates that are trusted: the system's, or a file that the environment names.

use std::sync::Arc;

use forebay_types::{Error, Result};
use hyper_rustls::ConfigBuilderExt;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Names a file of certificates to trust instead of the system's, as AWS's own tools read it.
const CA_BUNDLE: &str = "AWS_CA_BUNDLE";

/// Whom to trust. Without `https` nobody: no certificate is read then.
pub(crate) fn config(https: bool) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::internal("TLS can't be set up").with_source(error))?;
    if !https {
        return Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    }
    let Some(bundle) = std::env::var_os(CA_BUNDLE).filter(|bundle| !bundle.is_empty()) else {
        let builder = builder.with_native_roots().map_err(|error| {
            Error::invalid(format!("the system has no certificates to trust ({error}): install them or set {CA_BUNDLE}"))
        })?;
        return Ok(builder.with_no_client_auth());
    };
    let shown = bundle.to_string_lossy().into_owned();
    let unreadable = |error: &dyn std::fmt::Display| {
        Error::invalid(format!("{CA_BUNDLE} names {shown}, which can't be read as PEM certificates: {error}"))
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(&bundle).map_err(|error| unreadable(&error))? {
        let certificate = certificate.map_err(|error| unreadable(&error))?;
        roots.add(certificate).map_err(|error| unreadable(&error))?;
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
