//! What the audit log is told of a request.

use std::net::SocketAddr;

use forebay_transport::{Deed, is_audited, tell};
use forebay_types::Error;
use http::StatusCode;

use crate::auth::Caller;
use crate::dialect::S3Error;

/// What is known of a request so far.
pub(crate) struct Asked {
    /// In S3's words.
    pub(crate) operation: &'static str,
    /// Who asks; none before a signature was found good.
    pub(crate) caller: Option<Caller>,
    /// It is no mere reading.
    pub(crate) changes: bool,
}

impl Default for Asked {
    fn default() -> Self {
        Self { operation: "other", caller: None, changes: false }
    }
}

impl Asked {
    /// The name of who asks, as far as that is known.
    pub(crate) fn who(&self) -> String {
        self.caller.as_ref().map_or_else(|| "unknown".to_string(), ToString::to_string)
    }

    /// Tells of what changes something, whether it went well or not, and of what was refused.
    pub(crate) fn tell(&self, from: SocketAddr, path: &str, error: Option<&S3Error>) {
        let refused = error.filter(|error| matches!(error.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN));
        if !(self.changes || refused.is_some()) || !is_audited() {
            return;
        }
        let refused = refused.map(|error| Error::denied(format!("{}: {}", error.code, error.message)));
        tell(self.who(), &from.to_string(), &Deed { port: "s3", what: self.operation, on: path.to_string() }, refused.as_ref());
    }
}
