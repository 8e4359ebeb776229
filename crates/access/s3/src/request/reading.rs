//! Whether a request reads or changes something.

use http::Method;

use super::Request;

/// How a store may be read. Everything else is a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    Get,
    Head,
    /// SelectObjectContent: a question about an object that stands in the body.
    Select,
}

impl Reading {
    /// What a request reads; none when it may change something. This alone says which is which.
    pub(crate) fn of(request: &Request) -> Option<Self> {
        let is_select = request.target.key.is_some() && {
            let query = &request.target.query;
            // Nothing beside them: a store might take another name for the request's.
            query.has("select") && query.get("select-type") == Some("2") && query.of_the_request().count() == 2
        };
        match request.parts.method {
            Method::GET => Some(Self::Get),
            Method::HEAD => Some(Self::Head),
            Method::POST if is_select => Some(Self::Select),
            _ => None,
        }
    }

    pub(crate) fn method(self) -> Method {
        match self {
            Self::Get => Method::GET,
            Self::Head => Method::HEAD,
            Self::Select => Method::POST,
        }
    }
}
