//! The proved identity behind a call, before anybody asks what it may do.

use std::fmt;
use std::sync::Arc;

use forebay_types::{CallerInfo, Grant, Role, Verifier};

/// Who somebody has proved to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// The user whose processes these are: by the kernel's word on a Unix socket, or by a secret that no other user can read.
    Owner,
    /// A process of the cluster: a worker, a scheduler, an executor.
    Member,
    /// The holder of a token.
    Holder(Arc<Verifier>),
    /// Somebody who has proved nothing, where the administrator lets such in with this right.
    Anonymous(Option<Role>),
}

impl Who {
    /// The right of a holder.
    pub fn grant(&self) -> Option<&Grant> {
        match self {
            Self::Holder(verifier) => Some(&verifier.grant),
            Self::Owner | Self::Member | Self::Anonymous(_) => None,
        }
    }

    /// As it is told to the caller.
    pub fn info(&self) -> CallerInfo {
        CallerInfo { name: self.to_string(), grant: self.grant().cloned() }
    }
}

/// The name in messages and in the audit log.
impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner => f.write_str("owner"),
            Self::Member => f.write_str("member"),
            Self::Holder(verifier) => write!(f, "token {}", verifier.id),
            Self::Anonymous(_) => f.write_str("anonymous"),
        }
    }
}
