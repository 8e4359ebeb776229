//! Who is at the other end, and what a request shows of it.

use std::convert::Infallible;
use std::net::SocketAddr;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};
use forebay_trace::{TraceParent, parent_in};

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visitor {
    pub(crate) address: SocketAddr,
    /// One of a client, of the authority that is known here.
    pub(crate) has_shown_certificate: bool,
}

/// Who sends a request, as far as it says so: nothing of that is proved.
pub(crate) struct Sender {
    /// What stands in the header of who asks.
    authorization: Option<String>,
    /// The address, for the audit log; empty where there is no connection.
    pub(crate) address: String,
    /// The trace that it asks in.
    pub(crate) trace: TraceParent,
}

impl Sender {
    pub(crate) fn of(headers: &HeaderMap, extensions: &Extensions) -> Self {
        let authorization = headers.get(AUTHORIZATION).and_then(|header| header.to_str().ok()).map(str::to_string);
        let address = extensions.get::<ConnectInfo<Visitor>>().map(|visitor| visitor.0.address.to_string());
        Self { authorization, address: address.unwrap_or_default(), trace: parent_in(headers) }
    }

    pub(crate) fn bearer(&self) -> Option<&str> {
        let (scheme, text) = self.authorization.as_deref()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(text)
    }
}

impl<S: Sync> FromRequestParts<S> for Sender {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers, &parts.extensions))
    }
}
