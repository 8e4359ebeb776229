//! The bucket `tmp`: files and values of the temporary namespace as objects, its containers as folders.
//!
//! It stands for a mount that is not there ([`temporary_mount`](crate::mounts::temporary_mount)), so that requests take the ways that those to mounts without S3 take,
//! and come here where these would go to shared storage. Nodes have no times: clients are told when the gateway began.

mod list;
mod read;
mod write;

use forebay_client::{NodeError, NodeErrorKind};
use http::StatusCode;

use crate::dialect::S3Error;
use crate::mounts::TEMPORARY;
use crate::rights::Object;

pub(crate) use list::page;
pub(crate) use read::{Opened, get, open};
pub(crate) use write::{delete, write};

/// An object's path among the nodes; of a folder's marker, whose key ends with a slash, that of the folder.
fn path_of(object: &Object) -> String {
    format!("/{TEMPORARY}/{}", object.key.as_str().trim_end_matches('/'))
}

fn is_marker(object: &Object) -> bool {
    object.key.as_str().ends_with('/')
}

impl From<NodeError> for S3Error {
    fn from(error: NodeError) -> Self {
        let conflict = |message: String| S3Error::new(StatusCode::CONFLICT, "OperationAborted", message);
        match error.kind {
            NodeErrorKind::NotFound => Self::no_such_key(),
            // What is lost does not come back: whoever made it makes it again.
            NodeErrorKind::DataLost => Self::no_such_key().saying(error.message),
            NodeErrorKind::Exists | NodeErrorKind::NotEmpty | NodeErrorKind::NotContainer | NodeErrorKind::WrongType => {
                conflict(error.message)
            }
            NodeErrorKind::Invalid => Self::invalid_request(error.message),
            NodeErrorKind::NoSpace => S3Error::new(StatusCode::INSUFFICIENT_STORAGE, "InsufficientStorage", error.message),
            NodeErrorKind::Retry | NodeErrorKind::Moving => Self::slow_down().saying(error.message),
            NodeErrorKind::Internal => Self::internal().saying(error.message),
            NodeErrorKind::Denied => Self::access_denied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_not_be_done_is_access_denied() {
        let error = S3Error::from(NodeError::new(NodeErrorKind::Denied, "token gateway.1 may not write temporary data"));
        assert_eq!((error.status, error.code), (StatusCode::FORBIDDEN, "AccessDenied"));
    }
}
