//! Requests that are passed on: signed anew for the store, sent once, and answered with whatever it says.

use forebay_types::{Error, Result};
use futures::StreamExt;
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderValue, Method, Request, Response};

use super::S3;
use super::call::{Call, Kind};
use super::sign::{Signing, sign};
use crate::counters::{count, count_by};
use crate::forward::{Forward, Forwarded, PayloadHash};
use crate::http::Payload;
use crate::request::Class;

impl S3 {
    /// Sends a request under the mount's credentials, once, and gives the answer whatever it says.
    pub(super) async fn pass_on(&self, forward: Forward) -> Result<Forwarded> {
        let kind = match forward.method {
            Method::GET => Kind::Get,
            Method::HEAD => Kind::Head,
            Method::DELETE => Kind::Delete,
            _ => Kind::Put,
        };
        let about = forward.key.as_ref().map(|key| key.as_str()).unwrap_or_default();
        // Only for the messages.
        let call = Call::bucket(forward.method.clone(), kind, about);
        let full_key = forward.key.as_ref().map(|key| self.bucket.full_key(key.as_str()));
        let query: Vec<(&str, String)> = forward.query.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let uri = self.address.uri(full_key.as_deref(), &query)?;
        let mut headers = forward.headers;
        if let Some(credential) = self.credentials.get().await.map_err(|error| error.context(self.path(about)))? {
            let signing = Signing { credential: &credential, region: &self.region, hash: forward.hash.text() };
            sign(
                &signing,
                chrono::DateTime::<chrono::Utc>::from(forebay_runtime::system_time()),
                &forward.method,
                &uri,
                &query,
                &mut headers,
            )?;
            if let Some(value) = headers.get_mut(AUTHORIZATION) {
                value.set_sensitive(true);
            }
        } else if forward.hash == PayloadHash::UnsignedTrailer {
            headers.insert("x-amz-content-sha256", HeaderValue::from_static("STREAMING-UNSIGNED-PAYLOAD-TRAILER"));
        }
        // The client writes it, as the URI says.
        headers.remove(HOST);
        let payload = match forward.body {
            Some((stream, bytes)) => {
                count_by(&self.common.tally.bytes_out, bytes);
                Payload::stream(stream, bytes)
            }
            None => Payload::default(),
        };
        let mut request = Request::new(payload);
        *request.method_mut() = forward.method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        count(call.kind.counter(&self.common.tally));
        let answer = self.common.http.send(request, Class::Demand).await.map_err(|error| self.unanswered(&call, error).error)?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let failed = format!("{}: reading from {}", self.path(about), self.address.endpoint);
        let stream = self.common.http.stream(answer);
        let stream = stream.map(move |piece| piece.map_err(|error| Error::retry(format!("{failed}: {error}")))).boxed();
        let mut forwarded = Response::new(stream);
        *forwarded.status_mut() = status;
        *forwarded.headers_mut() = headers;
        Ok(forwarded)
    }
}
