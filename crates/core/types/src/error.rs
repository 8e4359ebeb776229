//! The one error type of all crates: sorted by what the caller must do, not by what went wrong.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What the caller must do about an error; the detail is in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ErrorKind {
    /// The same call may succeed later: a peer is away, a limit is reached, a deadline has passed.
    Retry,
    /// The world has changed since the caller looked: the object has another version now. Look again, then decide.
    Conflict,
    /// The request can never succeed as it is.
    Invalid,
    /// The thing named does not exist.
    NotFound,
    /// The caller may not do this: credentials, token, read-only mount.
    Denied,
    /// Bytes do not verify and there is no other copy to take them from.
    Corrupt,
    /// Temporary data was lost with its worker; recompute it.
    DataLost,
    /// The component was shut down.
    Closed,
    /// A defect or an unexpected answer of the system below.
    Internal,
}

impl ErrorKind {
    /// The kind's name as it appears in messages and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Conflict => "conflict",
            Self::Invalid => "invalid",
            Self::NotFound => "not found",
            Self::Denied => "denied",
            Self::Corrupt => "corrupt",
            Self::DataLost => "data lost",
            Self::Closed => "closed",
            Self::Internal => "internal",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error of every public function: a kind to act on, and a message that names the path and the remedy.
///
/// Cheap to clone, since one failed transfer fails everyone who waited for it.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    message: Arc<str>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    after: Option<Duration>,
    in_vain: bool,
    here_alone: bool,
}

/// The result of every fallible public function.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! constructors {
    ($($name:ident $kind:ident),*) => {$(
        #[doc = concat!("An error of kind [`ErrorKind::", stringify!($kind), "`].")]
        pub fn $name(message: impl Into<String>) -> Self {
            Self::new(ErrorKind::$kind, message)
        }
    )*};
}

impl Error {
    /// An error of `kind` with a message that says what failed, on which path, and what to do.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into().into(), source: None, after: None, in_vain: false, here_alone: false }
    }

    constructors!(retry Retry, conflict Conflict, invalid Invalid, not_found NotFound, denied Denied, corrupt Corrupt,
        data_lost DataLost, closed Closed, internal Internal);

    /// Keeps the underlying error as the source, for logs.
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Says when the same call makes sense again: for what is refused because too much is asked for now.
    pub fn after(mut self, wait: Duration) -> Self {
        self.after = Some(wait);
        self
    }

    /// When the same call makes sense again, where that was said.
    pub fn retry_after(&self) -> Option<Duration> {
        self.after
    }

    /// Says that something was asked again and again, or waited for as long as may be: to be as patient once more would help nobody. Of a
    /// refusal, that what was refused may have been done all the same, when it was asked before.
    pub fn in_vain(mut self) -> Self {
        self.in_vain = true;
        self
    }

    /// Whether time was spent on it in vain.
    pub fn is_in_vain(&self) -> bool {
        self.in_vain
    }

    /// Says that it is so of whom was asked, and not of the question: others that may be asked the same may do it.
    pub fn here_alone(mut self) -> Self {
        self.here_alone = true;
        self
    }

    /// Whether others that may be asked the same may do it.
    pub fn is_here_alone(&self) -> bool {
        self.here_alone
    }

    /// Puts `what` before the message: `what: message`.
    pub fn context(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message).into();
        self
    }

    /// What the caller must do.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message without the kind.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// Sorts an operating system's error by what the caller must do.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        use std::io::ErrorKind as Io;
        let kind = match error.kind() {
            Io::NotFound => ErrorKind::NotFound,
            Io::PermissionDenied => ErrorKind::Denied,
            Io::InvalidInput => ErrorKind::Invalid,
            Io::ConnectionRefused
            | Io::ConnectionReset
            | Io::ConnectionAborted
            | Io::NotConnected
            | Io::BrokenPipe
            | Io::TimedOut
            | Io::Interrupted
            | Io::UnexpectedEof
            | Io::StorageFull
            | Io::WouldBlock => ErrorKind::Retry,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, error.to_string()).with_source(error)
    }
}

/// Adds context to results, as [`Error::context`] does to errors.
pub trait ResultExt<T> {
    /// Puts `what()` before the error's message.
    fn context<D: fmt::Display>(self, what: impl FnOnce() -> D) -> Result<T>;
}

impl<T, E: Into<Error>> ResultExt<T> for std::result::Result<T, E> {
    fn context<D: fmt::Display>(self, what: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|error| error.into().context(what()))
    }
}
