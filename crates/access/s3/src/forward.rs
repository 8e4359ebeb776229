use std::sync::Arc;

use bytes::Bytes;
use forebay_client::Client;
use forebay_shared_storage::{Forward, ForwardBody, Forwarded, PayloadHash, Place};
use forebay_types::{Error, ForebayPath, Key, Mount};
use futures::{StreamExt, TryStreamExt};
use http::header::{CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, DATE, SERVER, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use hyper::body::Incoming;

use crate::body::Upload;
use crate::context::{Answer, AnswerBody, Context, Request};
use crate::error::{S3Error, S3Result};
use crate::temporary;
use crate::xml;

/// Headers of a request that a store is to see, beside those of `x-amz-` but [`NOT_PASSED`].
const PASSED: [&str; 13] = [
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-md5",
    "content-type",
    "expires",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "range",
];
/// What belongs to the signature, or to how the body comes.
const NOT_PASSED: [&str; 6] = [
    "x-amz-content-sha256",
    "x-amz-copy-source",
    "x-amz-date",
    "x-amz-decoded-content-length",
    "x-amz-security-token",
    "x-amz-trailer",
];
/// Longest document that is written with other names.
const DOCUMENT_BYTES_MAX: usize = 16 << 20;

/// What a request changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    /// Nothing that anybody has cached.
    None,
    /// The object that it names.
    Object,
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
    mount: &Mount,
    key: Option<Key>,
    body: Incoming,
    write: Write,
) -> S3Result<Answer> {
    if temporary::is_it(mount) {
        return Err(S3Error::not_implemented("this is for objects of shared storage, not for temporary data"));
    }
    let mut headers = passed(request.headers());
    let has_body = matches!(request.parts.method, Method::PUT | Method::POST);
    let upload = if has_body { Some(Upload::begin(request.headers(), request.hash.clone(), body)?) } else { None };
    let fault = upload.as_ref().map(|upload| upload.fault.clone());
    let (hash, body) = match upload {
        None => (PayloadHash::Empty, None),
        Some(upload) => outgoing(upload, &mut headers),
    };
    let forwarded = send(context, mount, key.clone(), request, headers, hash, body, write).await;
    if let Some(error) = fault.and_then(|fault| fault.take()) {
        return Err(error);
    }
    let (forwarded, place) = forwarded?;
    let names = Names { request, mount, place };
    names.answer(forwarded).await
}

#[allow(clippy::too_many_arguments)]
async fn send(
    context: &Arc<Context>,
    mount: &Mount,
    key: Option<Key>,
    request: &Request,
    headers: HeaderMap,
    hash: PayloadHash,
    body: Option<(crate::body::Pieces, u64)>,
    write: Write,
) -> S3Result<(Forwarded, Place)> {
    let storage = context.client.storage(mount).await?;
    let place = storage.s3().ok_or_else(|| S3Error::not_implemented("this mount's shared storage does not speak S3"))?;
    let query = query(request, &place, key.is_none());
    let changing = match (write, &key) {
        (Write::Object, Some(key)) => Some(Changing::begin(&context.client, ForebayPath::new(mount.name.clone(), key.clone()))),
        _ => None,
    };
    let forward = Forward { method: request.parts.method.clone(), key, query, headers, hash, body };
    let forwarded = storage.forward(forward).await;
    let told = match changing {
        Some(changing) => changing.end().await,
        None => Ok(()),
    };
    let forwarded = forwarded?;
    told?;
    Ok((forwarded, place))
}

/// The headers that a store is to see.
pub(crate) fn passed(headers: &HeaderMap) -> HeaderMap {
    let mut passed = HeaderMap::new();
    for (name, value) in headers {
        let text = name.as_str();
        if PASSED.contains(&text) || (text.starts_with("x-amz-") && !NOT_PASSED.contains(&text)) {
            passed.append(name.clone(), value.clone());
        }
    }
    // How the body came is not how the object is encoded.
    if let Some(encoding) = headers.get(CONTENT_ENCODING).and_then(|encoding| encoding.to_str().ok()) {
        let rest: Vec<&str> = encoding.split(',').map(str::trim).filter(|one| *one != "aws-chunked" && !one.is_empty()).collect();
        passed.remove(CONTENT_ENCODING);
        if let Ok(rest) = HeaderValue::from_str(&rest.join(","))
            && !rest.is_empty()
        {
            passed.insert(CONTENT_ENCODING, rest);
        }
    }
    passed
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

/// The query without what was the caller's signature, with the store's keys in it.
fn query(request: &Request, place: &Place, bucket_level: bool) -> Vec<(String, String)> {
    let mut query: Vec<(String, String)> = request.target.query.0.clone();
    query.retain(|(name, _)| !name.starts_with("X-Amz-") && name != "x-id");
    if bucket_level && !place.prefix.is_empty() {
        let lists = ["uploads", "versions"].iter().any(|name| query.iter().any(|(given, _)| given == name));
        let keys = ["prefix", "key-marker"];
        let full = |value: &mut String| *value = format!("{}{value}", place.prefix);
        query
            .iter_mut()
            .filter(|(name, value)| keys.contains(&name.as_str()) && (!value.is_empty() || name == "prefix"))
            .for_each(|(_, value)| full(value));
        if lists && !query.iter().any(|(name, _)| name == "prefix") {
            query.push(("prefix".into(), place.prefix.clone()));
        }
    }
    query
}

/// The names of both sides.
struct Names<'a> {
    request: &'a Request,
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
        let is_object = self.request.parts.method == Method::GET
            && (self.request.target.query.has("versionId")
                || self.request.headers().contains_key("x-amz-server-side-encryption-customer-algorithm"));
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
            AnswerBody::of(self.rename(&document))
        };
        let mut answer = Answer::new(body);
        *answer.status_mut() = parts.status;
        *answer.headers_mut() = headers;
        Ok(answer)
    }

    fn rename(&self, document: &Bytes) -> Bytes {
        let host = self.request.header("host").unwrap_or("localhost");
        let own = |key: &str| key.strip_prefix(&self.place.prefix).unwrap_or(key).to_string();
        xml::rewrite(document, |name, text| match name {
            "Bucket" | "BucketName" | "Name" if text == self.place.bucket => self.mount.name.as_str().into(),
            "Key" | "Prefix" | "KeyMarker" | "NextKeyMarker" => own(&text),
            "Location" if text.contains("://") => {
                let key = self.request.target.key.as_ref().map_or("", Key::as_str);
                format!("http://{host}/{}/{key}", self.mount.name)
            }
            "Resource" => self.request.parts.uri.path().into(),
            _ => text,
        })
    }
}

/// Whether a refusal says no more than that the object may not be reached.
fn is_plain_denial(document: &[u8]) -> bool {
    let text = String::from_utf8_lossy(document);
    ["AccessDenied", "InvalidObjectState"].iter().any(|code| text.contains(&format!("<Code>{code}</Code>")))
}

pub(crate) async fn collect(stream: ForwardBody) -> S3Result<Bytes> {
    let all = stream.try_fold(Vec::new(), |mut all, piece| async move {
        all.extend_from_slice(&piece);
        if all.len() > DOCUMENT_BYTES_MAX {
            return Err(Error::internal("shared storage answers with a document that does not end"));
        }
        Ok(all)
    });
    Ok(all.await?.into())
}

/// Bytes that are there already, as a body that is passed on.
pub(crate) fn body_of(bytes: Bytes) -> (crate::body::Pieces, u64) {
    let length = bytes.len() as u64;
    (futures::stream::once(async move { Ok(bytes) }).boxed(), length)
}
