//! The check of rights before each gRPC call of scheduler and executors: a call without a stated need is nobody's.

use std::convert::Infallible;
use std::task::{Context, Poll};

use forebay_rights::Need;
use forebay_transport::{Deed, Peer};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Extensions, Request, Response};
use tonic::codegen::{BoxFuture, Service};
use tonic::server::NamedService;

/// What a call needs, by its path; none: nobody may make it.
type Needs = fn(&str) -> Option<Need>;

/// A service of gRPC whose every call is looked at: whether who is at the connection's other end has, now, what it needs.
#[derive(Clone)]
pub(crate) struct Checked<S> {
    inner: S,
    needs: Needs,
}

impl<S> Checked<S> {
    pub(crate) fn new(inner: S, needs: Needs) -> Self {
        Self { inner, needs }
    }
}

impl<S: NamedService> NamedService for Checked<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Checked<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Response<Body>, Infallible>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match check(self.needs, request.uri().path(), request.extensions()) {
            Ok(()) => Box::pin(self.inner.call(request)),
            Err(status) => Box::pin(std::future::ready(Ok(status.into_http()))),
        }
    }
}

fn check(needs: Needs, path: &str, extensions: &Extensions) -> Result<(), Status> {
    let need = needs(path).ok_or_else(|| Status::permission_denied(format!("there is no call {path} here")))?;
    // A connection brings who was let in; one without is none of our ports'.
    let peer = extensions.get::<Option<Peer>>().and_then(Option::as_ref);
    let peer = peer.ok_or_else(|| Status::unauthenticated("nobody was let in"))?;
    let deed = || Deed { port: "cluster", what: "call", on: path.to_string() };
    peer.may(&need, |_| None, deed).map_err(|error| Status::permission_denied(error.to_string()))
}
