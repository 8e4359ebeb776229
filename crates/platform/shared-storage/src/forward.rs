//! Requests of S3's own that a gateway passes on: what must be known of one, and where it would go.

use std::fmt;

use bytes::Bytes;
use forebay_types::{Key, Result};
use futures::stream::BoxStream;
use http::{HeaderMap, Method, Response};

use crate::http::BodyError;

/// The bytes of an answer that is passed on, as they come.
pub type ForwardBody = BoxStream<'static, Result<Bytes>>;
/// An answer of shared storage, whatever it says.
pub type Forwarded = Response<ForwardBody>;

/// Where S3's own requests go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The bucket.
    pub bucket: String,
    /// What stands before every key in it: empty, or ending with `/`.
    pub prefix: String,
    /// The service's URL.
    pub endpoint: String,
}

/// A request of S3's own that is passed on to shared storage under the mount's credentials: multipart uploads, copies,
/// metadata. It is sent once, never again.
pub struct Forward {
    /// The method.
    pub method: Method,
    /// The key below the mount; none for the bucket itself.
    pub key: Option<Key>,
    /// Names and values, not encoded.
    pub query: Vec<(String, String)>,
    /// Headers that S3 is to see; those of the connection and the signature are made here.
    pub headers: HeaderMap,
    /// What the signature says of the body.
    pub hash: PayloadHash,
    /// The body and its length in bytes. When the stream fails the connection is broken off, so that nothing is written.
    pub body: Option<(BoxStream<'static, Result<Bytes, BodyError>>, u64)>,
}

impl Forward {
    /// Whether it changes nothing at a store: what is asked of an object's content is sent by a POST with just these names.
    pub(crate) fn reads(&self) -> bool {
        let is = |name: &str, value: &str| self.query.iter().any(|(other, has)| other == name && has == value);
        let asks_an_object = self.key.is_some() && self.query.len() == 2 && is("select", "") && is("select-type", "2");
        match self.method {
            Method::GET | Method::HEAD => true,
            Method::POST => asks_an_object,
            _ => false,
        }
    }

    /// What a span of it is called.
    pub(crate) fn span_name(&self) -> &'static str {
        match self.method {
            Method::GET => "storage get",
            Method::HEAD => "storage head",
            Method::PUT => "storage put",
            Method::DELETE => "storage delete",
            _ => "storage post",
        }
    }
}

impl fmt::Debug for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forward").field("method", &self.method).field("key", &self.key).field("query", &self.query).finish()
    }
}

/// What a signature says of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PayloadHash {
    /// There is none.
    Empty,
    /// Its SHA-256, as hexadecimal digits.
    Sha256(String),
    /// Nothing.
    Unsigned,
    /// It is chunked as `aws-chunked`, with a checksum behind the last chunk.
    UnsignedTrailer,
}

impl PayloadHash {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Empty => "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            Self::Sha256(hex) => hex,
            Self::Unsigned => "UNSIGNED-PAYLOAD",
            Self::UnsignedTrailer => "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        }
    }
}
