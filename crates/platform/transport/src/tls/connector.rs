//! The connecting side of TLS.

use std::io;
use std::sync::Arc;

use forebay_types::{Error, Result};
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConfig};
use tokio_rustls::TlsConnector;

use super::{certificates, private_key, provider, roots, unreadable, wanted};
use crate::{Address, TlsSettings};

/// The connecting side: trusts the certificates in `ca`, and shows `cert` to a server that asks for one.
pub(crate) fn connector(tls: &TlsSettings) -> Result<TlsConnector> {
    let ca = wanted(&tls.ca, "CA certificate", "to connect")?;
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| Error::internal(format!("TLS can't be set up: {error}")))?
        .with_root_certificates(roots(ca, "CA certificate")?);
    let config = match (&tls.cert, &tls.key) {
        (Some(cert), Some(key)) => {
            let chain = certificates(cert, "certificate")?;
            builder.with_client_auth_cert(chain, private_key(key)?).map_err(|error| unreadable(cert, "certificate", error))?
        }
        _ => builder.with_no_client_auth(),
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The name that the certificate of `address` must have.
pub(crate) fn server_name(address: &Address) -> Result<ServerName<'static>> {
    let host = address.host().unwrap_or_default().to_string();
    ServerName::try_from(host)
        .map_err(|_| Error::invalid(format!("{address} has no host name that a TLS certificate could be for")))
}

/// What to do when the server ended the handshake since it does not know this side's certificate: `Denied`, and none where it was
/// something else. TLS 1.3 says so only after the client has begun to speak.
pub(crate) fn refused_certificate(error: &(dyn std::error::Error + 'static)) -> Option<Error> {
    let alert = alert_of(error)?;
    let remedy = match alert {
        AlertDescription::CertificateRequired => "it wants a certificate of the client: name one with tls-cert and tls-key",
        AlertDescription::CertificateExpired => {
            "by the server's clock this client's certificate (tls-cert) has expired, or is not valid yet: renew it"
        }
        _ => "it does not trust this client's certificate (tls-cert): its tls-client-ca must have signed it",
    };
    Some(Error::denied(format!("TLS was refused by the server ({alert:?}): {remedy}")))
}

/// The alert that the other side ended TLS with, at the root of an error.
fn alert_of(error: &(dyn std::error::Error + 'static)) -> Option<AlertDescription> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(rustls::Error::AlertReceived(alert)) = error.downcast_ref() {
            return Some(*alert);
        }
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = inner.map(|inner| inner as &(dyn std::error::Error + 'static)).or_else(|| error.source());
    }
    None
}
