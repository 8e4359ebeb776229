//! What is kept of a span.

use std::time::{Duration, SystemTime};

use forebay_protocol::TraceContext;

/// Bytes of a text of a span.
const TEXT_BYTES_MAX: usize = 4 << 10;

/// What a span is to the one above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A part of it, in the same process.
    Internal,
    /// The answer to somebody who asked from outside.
    Server,
    /// A question to somebody outside.
    Client,
}

/// What is told of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// In words.
    Text(String),
    /// A number.
    Number(u64),
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<String> for Value {
    fn from(mut text: String) -> Self {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        Self::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text[..text.floor_char_boundary(TEXT_BYTES_MAX)].to_string())
    }
}

/// A span that has ended, as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) context: TraceContext,
    /// The span that it is below; none for the first of a trace.
    pub(crate) parent: Option<u64>,
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) began: SystemTime,
    pub(crate) took: Duration,
    pub(crate) attributes: Vec<(&'static str, Value)>,
    pub(crate) error: Option<String>,
}
