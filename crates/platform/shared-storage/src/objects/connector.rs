//! The place where `object_store` is given this crate's connections, so that bound and counters hold for its stores.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use bytes::Bytes;
use forebay_runtime::deadline;
use futures::stream::BoxStream;
use http::header::AUTHORIZATION;
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use parking_lot::Mutex;

use crate::backend::Common;
use crate::counters::{count, count_by};
use crate::http::{Payload, SendError};
use crate::request::Class;

/// Gives `object_store` this crate's HTTP client, with its counters and its bound.
#[derive(Clone)]
pub(super) struct Connector {
    common: Arc<Common>,
    anonymous: bool,
}

impl Connector {
    /// `anonymous` sends no credentials, whatever `object_store` puts on a request.
    pub(super) fn new(common: &Arc<Common>, anonymous: bool) -> Self {
        Self { common: Arc::clone(common), anonymous }
    }
}

forebay_types::shown!(Connector);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

impl Connector {
    fn count(&self, request: &HttpRequest) {
        let query = request.uri().query().unwrap_or("");
        let is_list = query.contains("list-type=") || query.contains("comp=list");
        let tally = &self.common.tally;
        count(match *request.method() {
            Method::GET if is_list => &tally.lists,
            Method::GET => &tally.gets,
            Method::HEAD => &tally.heads,
            Method::DELETE => &tally.deletes,
            _ => &tally.puts,
        });
        count_by(&tally.bytes_out, request.body().content_length() as u64);
    }
}

#[async_trait]
impl HttpService for Connector {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        self.count(&request);
        let class = request.extensions().get::<Class>().copied().unwrap_or(Class::Demand);
        let (mut parts, mut body) = request.into_parts();
        let mut pieces = Vec::new();
        while let Some(frame) = body.frame().await {
            pieces.extend(frame?.into_data().ok());
        }
        parts.extensions = http::Extensions::new();
        if self.anonymous {
            parts.headers.remove(AUTHORIZATION);
        }
        let request = http::Request::from_parts(parts, Payload::from(pieces));
        let answer = self.common.http.send(request, class).await;
        let is_last = answer.as_ref().is_ok_and(|answer| {
            let status = answer.status();
            !(status.is_server_error() || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT))
        });
        // `object_store` would try again, for whom nobody waits any more as well.
        if !is_last && deadline::is_over() {
            let why = answer.map_or_else(|error| error.to_string(), |answer| answer.status().to_string());
            let error = SendError::Broken(format!("{why}, and nobody waits for another try"));
            return Err(HttpError::new(HttpErrorKind::Unknown, error));
        }
        let answer = answer.map_err(http_error)?;
        let mut head = http::Response::new(());
        *head.status_mut() = answer.status();
        *head.headers_mut() = answer.headers().clone();
        let body = Streamed(Mutex::new(self.common.http.stream(answer)));
        Ok(head.map(|()| HttpResponseBody::new(body)))
    }
}

fn http_error(error: SendError) -> HttpError {
    let kind = match error {
        SendError::Timeout(_) => HttpErrorKind::Timeout,
        SendError::Refused => HttpErrorKind::Connect,
        SendError::Broken(_) => HttpErrorKind::Interrupted,
    };
    HttpError::new(kind, error)
}

/// A stream as a body. The lock is never taken: it makes the stream shareable, which bodies must be.
struct Streamed(Mutex<BoxStream<'static, Result<Bytes, SendError>>>);

impl Body for Streamed {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let next = self.0.get_mut().as_mut().poll_next(cx);
        next.map(|next| next.map(|piece| piece.map(Frame::data).map_err(http_error)))
    }
}
