//! What errors are called.

use std::time::Duration;

use forebay_client::{NodeError, NodeErrorKind};
use tokio::time::timeout;

use crate::history::Failure;

/// A call that takes longer is given up, and counts as one that may still be done.
pub const GIVEN_UP_AFTER: Duration = Duration::from_secs(45);
const MESSAGE_BYTES_MAX: usize = 300;

/// An error of the client's API.
pub fn of_client(error: &forebay_types::Error) -> Failure {
    use forebay_types::ErrorKind::{Conflict, Denied, Invalid};
    let no_effect = matches!(error.kind(), Conflict | Denied | Invalid);
    Failure { kind: error.kind().as_str().to_owned(), message: cut(&error.to_string()), no_effect }
}

/// An error of temporary nodes.
pub fn of_nodes(error: &NodeError) -> Failure {
    use NodeErrorKind::{Denied, Exists, Invalid, NoSpace, NotContainer, NotEmpty, NotFound, WrongType};
    let no_effect = matches!(error.kind, Denied | Exists | Invalid | NoSpace | NotContainer | NotEmpty | NotFound | WrongType);
    let kind = match error.kind {
        NodeErrorKind::DataLost => "data lost".to_owned(),
        kind => kind.as_str().to_lowercase(),
    };
    Failure { kind, message: cut(&error.message), no_effect }
}

/// What a call says in time.
pub async fn within<T>(call: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    timeout(GIVEN_UP_AFTER, call).await.unwrap_or_else(|_| Err(given_up()))
}

/// What the client's API says in time.
pub async fn answered<T>(call: impl Future<Output = forebay_types::Result<T>>) -> Result<T, Failure> {
    within(async { call.await.map_err(|error| of_client(&error)) }).await
}

/// A call that was given up.
pub fn given_up() -> Failure {
    Failure { kind: "given up".to_owned(), message: format!("no answer within {GIVEN_UP_AFTER:?}"), no_effect: false }
}

/// What is kept of a message.
pub fn cut(message: &str) -> String {
    message.chars().take(MESSAGE_BYTES_MAX).collect()
}
