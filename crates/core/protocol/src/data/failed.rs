//! Errors as replies of a worker, and replies as errors.

use std::time::Duration;

use forebay_types::{Error, ErrorKind};

use super::DataReply;

/// The longest that a reply may have its reader wait.
const AFTER_MAX: Duration = Duration::from_secs(10);
/// The shortest, whatever is said: nobody asks again without a pause.
const AFTER_MIN: Duration = Duration::from_millis(10);

impl DataReply {
    /// The reply that carries an error.
    pub fn failed(error: &Error) -> Self {
        let message = error.message().to_string();
        match error.retry_after() {
            Some(after) => Self::Busy { after_ms: after.min(AFTER_MAX).as_millis() as u32, message },
            None if error.is_in_vain() && error.kind() == ErrorKind::Retry => Self::InVain { message },
            None if error.is_here_alone() => Self::Elsewhere { kind: error.kind(), message },
            None => Self::Failed { kind: error.kind(), message },
        }
    }

    /// The error that a reply carries, or the reply.
    pub fn or_error(self) -> Result<Self, Error> {
        match self {
            Self::Failed { kind, message } => Err(Error::new(kind, message)),
            Self::Busy { after_ms, message } => {
                Err(Error::retry(message).after(Duration::from_millis(after_ms.into()).clamp(AFTER_MIN, AFTER_MAX)))
            }
            Self::InVain { message } => Err(Error::retry(message).in_vain()),
            Self::Elsewhere { kind, message } => Err(Error::new(kind, message).here_alone()),
            reply => Ok(reply),
        }
    }

    /// The same for a peer of a version: before 9 nobody was told when to ask again, that it is in vain, or that another worker may do it.
    pub fn for_version(self, version: u16) -> Self {
        match self {
            Self::Busy { message, .. } | Self::InVain { message } if version < 9 => {
                Self::Failed { kind: ErrorKind::Retry, message }
            }
            Self::Elsewhere { kind, message } if version < 9 => Self::Failed { kind, message },
            reply => reply,
        }
    }
}
