use std::cell::Cell;
use std::sync::Arc;

use bytes::Bytes;
use forebay_client::Client;
use forebay_shared_storage::{Forwarded, PayloadHash, Place};
use forebay_types::{ForebayPath, Key, Mount};
use futures::StreamExt;
use http::header::{CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, DATE, SERVER, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use hyper::body::Incoming;

use crate::body::Upload;
use crate::buckets;
use crate::context::{Answer, AnswerBody, Context, Request};
use crate::error::{S3Error, S3Result};
use crate::headers;
use crate::rights::{MayRead, MayWrite, Writable};
use crate::store::{self, Reading, Sending, collect};
use crate::subresource::SubResource;
use crate::temporary;
use crate::xml;

/// What is passed on, and who said that it may be.
#[derive(Clone)]
pub(crate) enum Passing<'a> {
    /// Something is read, of the bucket or of an object.
    Read(Reading, &'a MayRead, Option<Key>),
    /// The bucket's configuration is changed.
    Configure(&'a MayWrite),
    /// An upload to an object is, of which nobody has anything cached.
    Upload(&'a Writable),
    /// The object is.
    Object(&'a Writable),
}

impl Passing<'_> {
    fn mount(&self) -> &Mount {
        match self {
            Self::Read(_, may, _) => may.mount(),
            Self::Configure(may) => may.mount(),
            Self::Upload(object) | Self::Object(object) => object.mount(),
        }
    }

    fn key(&self) -> Option<&Key> {
        match self {
            Self::Read(_, _, key) => key.as_ref(),
            Self::Configure(_) => None,
            Self::Upload(object) | Self::Object(object) => Some(&object.key),
        }
    }

    fn reading(&self) -> Option<Reading> {
        match self {
            Self::Read(reading, ..) => Some(*reading),
            _ => None,
        }
    }

    async fn send(self, context: &Context, method: Method, sending: Sending) -> S3Result<Forwarded> {
        match self {
            Self::Read(reading, may, _) => store::read(context, may, reading, sending).await,
            Self::Configure(may) => store::write(context, may, method, sending).await,
            Self::Upload(object) => store::write(context, object.may_write(), method, sending).await,
            Self::Object(object) => {
                let changing = Changing::begin(&context.client, object.path());
                let forwarded = store::write(context, object.may_write(), method, sending).await;
                let told = changing.end().await;
                let forwarded = forwarded?;
                told?;
                Ok(forwarded)
            }
        }
    }
}

/// Tells the workers that an object is another one now, however the request ends.
pub(crate) struct Changing {
    client: Client,
    path: Option<ForebayPath>,
}

impl Changing {
    pub(crate) fn begin(client: &Client, path: ForebayPath) -> Self {
        Self { client: client.clone(), path: Some(path) }
    }

    /// The store has answered: back when no worker answers from what it knew before; an error when that is not certain, so that
    /// the writer does not take it for granted.
    pub(crate) async fn end(mut self) -> S3Result<()> {
        let Some(path) = self.path.take() else { return Ok(()) };
        Ok(self.client.changed(&path).await?)
    }
}

impl Drop for Changing {
    /// The client went away: the store may have taken it all the same.
    fn drop(&mut self) {
        if let (Some(path), Ok(runtime)) = (self.path.take(), tokio::runtime::Handle::try_current()) {
            let client = self.client.clone();
            runtime.spawn(async move {
                if let Err(error) = client.changed(&path).await {
                    tracing::warn!(%path, %error, "a worker did not hear of a write");
                }
            });
        }
    }
}

/// Passes a request on to the mount's store and its answer back, with this side's names in it.
pub(crate) async fn forward(
    context: &Arc<Context>,
    request: &Request,
    sub: &SubResource,
    passing: Passing<'_>,
    body: Incoming,
) -> S3Result<Answer> {
    let mount = passing.mount().clone();
    if temporary::is_it(&mount) {
        return Err(S3Error::not_implemented("this is for objects of shared storage, not for temporary data"));
    }
    let place = store::place(&context.client.storage(&mount).await?)?;
    if !place.prefix.is_empty() && passing.key().is_none() && !sub.is_of_parts() {
        return Err(S3Error::access_denied()
            .saying("This bucket is a part of one at shared storage, whose configuration is not its own."));
    }
    let mut headers = headers::passed(request.headers(), passing.reading());
    let has_body = matches!(request.parts.method, Method::PUT | Method::POST);
    let upload = if has_body { Some(Upload::begin(request.headers(), request.hash.clone(), body)?) } else { None };
    let fault = upload.as_ref().map(|upload| upload.fault.clone());
    let (hash, body) = match upload {
        None => (PayloadHash::Empty, None),
        Some(upload) => outgoing(upload, &mut headers),
    };
    let query = query(request, sub, &place);
    let sending = Sending { key: passing.key().cloned(), query, headers, hash, body };
    let forwarded = passing.send(context, request.parts.method.clone(), sending).await;
    if let Some(error) = fault.and_then(|fault| fault.take()) {
        return Err(error);
    }
    let names = Names { request, sub, mount: &mount, place };
    names.answer(forwarded?).await
}

/// A body as the store gets it.
pub(crate) fn outgoing(upload: Upload, headers: &mut HeaderMap) -> (PayloadHash, Option<(crate::body::Pieces, u64)>) {
    match upload.trailer {
        Some(trailer) => {
            headers.insert("x-amz-trailer", HeaderValue::from_static(trailer.name()));
            headers.insert("x-amz-decoded-content-length", upload.bytes.into());
            let encoding = match headers.get(CONTENT_ENCODING).and_then(|encoding| encoding.to_str().ok()) {
                Some(encoding) => HeaderValue::from_str(&format!("aws-chunked,{encoding}")),
                None => Ok(HeaderValue::from_static("aws-chunked")),
            };
            if let Ok(encoding) = encoding {
                headers.insert(CONTENT_ENCODING, encoding);
            }
            let (pieces, bytes) = trailer.chunked(upload.pieces, upload.bytes);
            headers.insert(CONTENT_LENGTH, bytes.into());
            (PayloadHash::UnsignedTrailer, Some((pieces, bytes)))
        }
        None => {
            headers.insert(CONTENT_LENGTH, upload.bytes.into());
            let hash = match upload.sha256 {
                _ if upload.bytes == 0 => PayloadHash::Empty,
                Some(hex) => PayloadHash::Sha256(hex),
                None => PayloadHash::Unsigned,
            };
            (hash, (upload.bytes > 0).then_some((upload.pieces, upload.bytes)))
        }
    }
}

/// What the query says of the sub-resource, with the store's keys in it.
fn query(request: &Request, sub: &SubResource, place: &Place) -> Vec<(String, String)> {
    let mut query = sub.query(&request.target.query);
    let lists = request.target.key.is_none() && ["uploads", "versions"].contains(&sub.name);
    if lists && !place.prefix.is_empty() {
        let is_key = |name: &str, value: &str| name == "prefix" || (name == "key-marker" && !value.is_empty());
        for (_, value) in query.iter_mut().filter(|(name, value)| is_key(name, value)) {
            *value = format!("{}{value}", place.prefix);
        }
        if !query.iter().any(|(name, _)| name == "prefix") {
            query.push(("prefix".into(), place.prefix.clone()));
        }
    }
    query
}

/// The names of both sides.
struct Names<'a> {
    request: &'a Request,
    sub: &'a SubResource,
    mount: &'a Mount,
    place: Place,
}

impl Names<'_> {
    async fn answer(&self, forwarded: Forwarded) -> S3Result<Answer> {
        let (parts, stream) = forwarded.into_parts();
        let mut headers = parts.headers;
        for name in [CONNECTION, DATE, SERVER, TRANSFER_ENCODING] {
            headers.remove(name);
        }
        let is_xml = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).is_some_and(|kind| kind.contains("xml"));
        // Bytes of an object, which may be XML as well.
        let is_object = self.request.parts.method == Method::GET && self.request.target.key.is_some() && self.sub.name.is_empty();
        let is_head = self.request.parts.method == Method::HEAD;
        let body = if is_head || parts.status == StatusCode::NO_CONTENT || parts.status == StatusCode::NOT_MODIFIED {
            AnswerBody::empty()
        } else if parts.status.is_success() && (!is_xml || is_object) {
            let bytes = headers.get(CONTENT_LENGTH).and_then(|bytes| bytes.to_str().ok()?.parse().ok());
            AnswerBody::stream(Bytes::new(), stream, bytes)
        } else {
            headers.remove(CONTENT_LENGTH);
            let document = collect(stream).await?;
            if matches!(parts.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) && !is_plain_denial(&document) {
                // It is about this side's credentials, which are nobody else's business.
                tracing::warn!(mount = %self.mount.name, "shared storage does not take the mount's credentials");
                return Err(S3Error::access_denied());
            }
            AnswerBody::of(self.renamed(&document)?)
        };
        let mut answer = Answer::new(body);
        *answer.status_mut() = parts.status;
        *answer.headers_mut() = headers;
        Ok(answer)
    }

    /// A store's document with this side's names. One that is about other keys than the mount's, or can't be read, stays here.
    fn renamed(&self, document: &Bytes) -> S3Result<Bytes> {
        if document.is_empty() {
            return Ok(Bytes::new());
        }
        let host = self.request.header("host").unwrap_or("localhost");
        let encoded = buckets::show(&self.place.prefix, true);
        let strange = Cell::new(false);
        let own = |key: &str| match key.strip_prefix(&self.place.prefix).or_else(|| key.strip_prefix(&encoded)) {
            Some(own) => own.to_string(),
            None => {
                strange.set(strange.get() || !key.is_empty());
                String::new()
            }
        };
        let has_keys = ["uploadId", "uploads", "versions"].contains(&self.sub.name);
        let renamed = xml::rewrite(document, |path, text| {
            let names: Vec<&str> = path.iter().map(String::as_str).collect();
            match names[..] {
                // What a store answers that does not know what it was asked for.
                ["ListBucketResult", ..] => {
                    strange.set(true);
                    text
                }
                ["Error", "Key"] => text.strip_prefix(&self.place.prefix).unwrap_or_default().into(),
                ["Error", "Resource"] => self.request.parts.uri.path().into(),
                [.., "Bucket" | "BucketName" | "Name"] if text == self.place.bucket => self.mount.name.as_str().into(),
                [.., "Key" | "Prefix" | "KeyMarker" | "NextKeyMarker"] if has_keys => own(&text),
                [_, "Location"] if text.contains("://") => {
                    let key = self.request.target.key.as_ref().map_or("", Key::as_str);
                    format!("http://{host}/{}/{key}", self.mount.name)
                }
                _ => text,
            }
        });
        match renamed {
            Some(renamed) if !strange.get() => Ok(renamed),
            _ => {
                tracing::warn!(mount = %self.mount.name, asked = self.sub.name, "shared storage answers something else");
                Err(S3Error::not_implemented(&format!("{} at this mount's shared storage", self.sub.name)))
            }
        }
    }
}

/// Whether a refusal says no more than that the object may not be reached.
fn is_plain_denial(document: &[u8]) -> bool {
    let text = String::from_utf8_lossy(document);
    ["AccessDenied", "InvalidObjectState"].iter().any(|code| text.contains(&format!("<Code>{code}</Code>")))
}

/// Bytes that are there already, as a body that is passed on.
pub(crate) fn body_of(bytes: Bytes) -> (crate::body::Pieces, u64) {
    let length = bytes.len() as u64;
    (futures::stream::once(async move { Ok(bytes) }).boxed(), length)
}
