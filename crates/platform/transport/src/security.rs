use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// How connections are secured; the same value serves for listening and for connecting.
#[derive(Clone, Default)]
pub struct Security {
    /// The cluster's token, which both ends of a connection prove to know. Blank counts as none.
    pub token: Option<Arc<str>>,
    /// TLS on TCP connections; Unix sockets never have it.
    pub tls: Option<TlsSettings>,
}

/// Files in PEM for TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// Certificates that the connecting side trusts.
    pub ca: Option<PathBuf>,
    /// The certificate (with its chain) that the listening side shows.
    pub cert: Option<PathBuf>,
    /// The private key of `cert`.
    pub key: Option<PathBuf>,
}

impl Security {
    /// Whether connections are neither proved nor encrypted: on loopback only.
    pub fn is_open(&self) -> bool {
        self.token().is_none() && self.tls.is_none()
    }

    /// The token, where one is set.
    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref().map(str::trim).filter(|token| !token.is_empty())
    }
}

/// Leaves the token out, so that it can't reach a log.
impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Security").field("token", &self.token().map(|_| "set")).field("tls", &self.tls).finish()
    }
}
