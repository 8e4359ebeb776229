//! What the store does itself: a request is passed on to it, and its answer back with this side's names in it.

mod names;

use std::sync::Arc;

use forebay_shared_storage::{Forwarded, PayloadHash, Place};
use forebay_types::{Key, Mount};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, HeaderValue, Method};
use hyper::body::Incoming;

use crate::answer::Answer;
use crate::body::{Pieces, Upload};
use crate::context::Context;
use crate::dialect::{S3Error, S3Result};
use crate::request::{Reading, Request, SubResource, passed};
use crate::rights::{MayRead, MayWrite, Writable};
use crate::store::{self, Changing, Sending};
use names::Names;

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

/// Passes a request on to the mount's store and its answer back, with this side's names in it.
pub(crate) async fn forward(
    context: &Arc<Context>,
    request: &Request,
    sub: &SubResource,
    passing: Passing<'_>,
    body: Incoming,
) -> S3Result<Answer> {
    let mount = passing.mount().clone();
    if mount.name.is_temporary() {
        return Err(S3Error::not_implemented("this is for objects of shared storage, not for temporary data"));
    }
    let place = store::place(&context.client.storage(&mount).await?)?;
    if !place.prefix.is_empty() && passing.key().is_none() && !sub.is_of_parts() {
        return Err(S3Error::access_denied()
            .saying("This bucket is a part of one at shared storage, whose configuration is not its own."));
    }
    let mut headers = passed(request.headers(), passing.reading());
    let has_body = matches!(request.parts.method, Method::PUT | Method::POST);
    let upload = if has_body { Some(Upload::begin(request.headers(), request.hash.clone(), body)?) } else { None };
    let fault = upload.as_ref().map(|upload| upload.fault.clone());
    let (hash, body) = if let Some(upload) = upload { outgoing(upload, &mut headers) } else { (PayloadHash::Empty, None) };
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
fn outgoing(upload: Upload, headers: &mut HeaderMap) -> (PayloadHash, Option<(Pieces, u64)>) {
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
