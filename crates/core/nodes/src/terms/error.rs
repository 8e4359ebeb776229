//! Why an operation failed, by what the caller must do.

use std::fmt;

use forebay_types::{Error, ErrorKind};
use serde::{Deserialize, Serialize};

/// Why an operation on a node failed, by what the caller must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NodeErrorKind {
    /// There is no such node, or a folder on the way to it is missing.
    NotFound,
    /// The name is taken.
    Exists,
    /// The container has nodes: delete it recursively.
    NotEmpty,
    /// A part of the path is not a container.
    NotContainer,
    /// The node's type can't do this, or the container doesn't hold such nodes.
    WrongType,
    /// The request can never succeed as it is.
    Invalid,
    /// There is no room; nothing was changed.
    NoSpace,
    /// The worker that had it is gone: make it again.
    DataLost,
    /// The same call may succeed later.
    Retry,
    /// What it is about is just moving to another worker, and nothing was changed: try again in a moment. The client does so by
    /// itself; who still sees it takes it for `Retry`.
    Moving,
    /// A defect of the worker; nothing is known of what was changed.
    Internal,
    /// The caller may not do this, whatever is there.
    Denied,
}

impl NodeErrorKind {
    /// The kind's name, as JSON answers have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "NotFound",
            Self::Exists => "Exists",
            Self::NotEmpty => "NotEmpty",
            Self::NotContainer => "NotContainer",
            Self::WrongType => "WrongType",
            Self::Invalid => "Invalid",
            Self::NoSpace => "NoSpace",
            Self::DataLost => "DataLost",
            Self::Retry | Self::Moving => "Retry",
            Self::Internal => "Internal",
            Self::Denied => "Denied",
        }
    }
}

/// What stands before the names that a worker has of a container's path, when these are not all.
pub(crate) const NAMED_IN_PART: &str = "the container ..";
/// What stands behind the path of a container whose quota is full.
pub(crate) const HAS_QUOTA: &str = " has a quota of ";

/// An error of the temporary namespace: a kind to act on, and a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeError {
    /// What the caller must do.
    pub kind: NodeErrorKind,
    /// What failed and the remedy.
    pub message: String,
}

/// What operations on nodes return.
pub type NodeResult<T> = Result<T, NodeError>;

impl NodeError {
    /// An error of `kind`.
    pub fn new(kind: NodeErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn moving() -> Self {
        Self::new(NodeErrorKind::Moving, "the container is moving to another worker: try again")
    }

    pub(crate) fn not_found(name: &str) -> Self {
        Self::new(NodeErrorKind::NotFound, format!("{name:?}: there is no such node"))
    }

    /// The error of a node at this path, which stands before the message. A container that a worker could name in part only, as it has
    /// not all names above, is named as the path has it, where that is clear.
    #[must_use]
    pub fn at(mut self, path: &str) -> Self {
        if let Some(message) = self.with_whole_name(path) {
            self.message = message;
        }
        self.context(path)
    }

    fn with_whole_name(&self, path: &str) -> Option<String> {
        let (before, rest) = self.message.split_once(NAMED_IN_PART)?;
        let (names, after) = rest.split_once(HAS_QUOTA)?;
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        let mut containers = ends.filter_map(|end| path.get(..end)).filter(|container| container.ends_with(names));
        let container = containers.next().filter(|_| !names.is_empty())?;
        containers.next().is_none().then(|| format!("{before}{container}{HAS_QUOTA}{after}"))
    }

    /// Puts `what` before the message.
    #[must_use]
    pub fn context(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for NodeError {}

/// For callers that know Forebay's other errors only.
impl From<NodeError> for Error {
    fn from(error: NodeError) -> Self {
        let kind = match error.kind {
            NodeErrorKind::NotFound => ErrorKind::NotFound,
            NodeErrorKind::Exists | NodeErrorKind::NotEmpty => ErrorKind::Conflict,
            NodeErrorKind::NotContainer | NodeErrorKind::WrongType | NodeErrorKind::Invalid => ErrorKind::Invalid,
            NodeErrorKind::NoSpace | NodeErrorKind::Retry | NodeErrorKind::Moving => ErrorKind::Retry,
            NodeErrorKind::DataLost => ErrorKind::DataLost,
            NodeErrorKind::Internal => ErrorKind::Internal,
            NodeErrorKind::Denied => ErrorKind::Denied,
        };
        Error::new(kind, error.message)
    }
}

/// Of what was not looked at any further: the caller may not, or it can't be read.
impl From<&Error> for NodeError {
    fn from(error: &Error) -> Self {
        let kind = if error.kind() == ErrorKind::Denied { NodeErrorKind::Denied } else { NodeErrorKind::Invalid };
        Self::new(kind, error.message())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_may_not_is_denied_there_and_back() {
        let denied = NodeError::from(&Error::denied("no"));
        assert_eq!((denied.kind, denied.kind.as_str()), (NodeErrorKind::Denied, "Denied"));
        assert_eq!(NodeError::from(&Error::invalid("no")).kind, NodeErrorKind::Invalid);
        let error = Error::from(denied);
        assert_eq!((error.kind(), error.message()), (ErrorKind::Denied, "no"));
    }

    #[test]
    fn a_container_that_is_named_in_part_is_named_as_the_path_has_it() {
        let said = |names: &str, path: &str| {
            let message = format!("\"k\": {NAMED_IN_PART}{names}{HAS_QUOTA}9 bytes");
            NodeError::new(NodeErrorKind::NoSpace, message).at(path).message
        };
        assert_eq!(said("/q", "/tmp/a/q/in/k"), "/tmp/a/q/in/k: \"k\": /tmp/a/q has a quota of 9 bytes");
        assert_eq!(said("/q/in", "/tmp/a/q/in"), "/tmp/a/q/in: \"k\": /tmp/a/q/in has a quota of 9 bytes");
        // Either may be meant, or none is.
        for (names, path) in [("/q", "/tmp/q/q/k"), ("/q", "/tmp/quite/k"), ("", "/tmp/q/k")] {
            assert!(said(names, path).contains(NAMED_IN_PART), "{names} {path}");
        }
    }
}
