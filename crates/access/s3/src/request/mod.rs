//! A request as it goes through the gateway, and what it asks for.

mod headers;
mod reading;
mod subresource;

use http::HeaderMap;
use http::request::Parts;

use crate::auth::{BodyHash, Caller};
use crate::dialect::Target;

pub(crate) use headers::{check_kept, check_meant, passed};
pub(crate) use reading::Reading;
pub(crate) use subresource::SubResource;

/// A request whose caller is known.
pub(crate) struct Request {
    pub(crate) parts: Parts,
    pub(crate) target: Target,
    pub(crate) caller: Caller,
    pub(crate) hash: BodyHash,
}

impl Request {
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// A header that is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name)?.to_str().ok()
    }

    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.target.query.get(name)
    }
}
