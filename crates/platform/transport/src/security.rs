//! How connections are secured, for listening and for connecting.

use std::path::PathBuf;
use std::sync::Arc;

use forebay_protocol::PROTOCOL_VERSION;
use forebay_types::Result;

use crate::{Admission, Credential};

/// How connections are secured; the same value serves for listening and for connecting.
#[derive(Clone)]
pub struct Security {
    /// What this side shows where it connects. With none it gets in on Unix sockets of the same user only.
    pub shows: Option<Credential>,
    /// Whom this side lets in where it listens.
    pub admits: Arc<Admission>,
    /// TLS on TCP connections; Unix sockets never have it.
    pub tls: Option<TlsSettings>,
    /// The newest version of the protocol that this side speaks: this build's, but in tests of what a peer of the one before sees.
    pub newest: u16,
}

/// Files in PEM for TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// Certificates that the connecting side trusts.
    pub ca: Option<PathBuf>,
    /// The certificate (with its chain) that the listening side shows, and the connecting one where it is asked for one.
    pub cert: Option<PathBuf>,
    /// The private key of `cert`.
    pub key: Option<PathBuf>,
    /// Certificates that the listening side trusts: with these, clients must show one that they have signed.
    pub client_ca: Option<PathBuf>,
}

impl Default for Security {
    /// For what stays in one process: shows, and lets in, a secret that nobody else knows.
    fn default() -> Self {
        Self::showing(Credential::of_this_process())
    }
}

impl Security {
    /// One secret for everything: whoever knows it is the owner of the cluster. `Invalid` when it has fewer than 16 bytes.
    pub fn owner(secret: &str) -> Result<Self> {
        Ok(Self::showing(Credential::owner(secret)?))
    }

    /// For who only connects.
    pub fn holder(credential: Credential) -> Self {
        Self { shows: Some(credential), admits: Arc::default(), tls: None, newest: PROTOCOL_VERSION }
    }

    /// The same with TLS.
    pub fn with_tls(self, tls: Option<TlsSettings>) -> Self {
        Self { tls, ..self }
    }

    /// The same, speaking no newer version of the protocol than this: for tests.
    pub fn speaking(self, newest: u16) -> Self {
        Self { newest, ..self }
    }

    fn showing(credential: Credential) -> Self {
        let admits = Arc::new(Admission::of([&credential]));
        Self { shows: Some(credential), admits, tls: None, newest: PROTOCOL_VERSION }
    }
}

// Leaves secrets out, so that they can't reach a log.
forebay_types::shown!(Security: shows, tls);
