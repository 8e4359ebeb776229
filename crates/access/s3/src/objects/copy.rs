//! Copies: within a store by the store, else through here.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use forebay_client::RangeSpec;
use forebay_shared_storage::PayloadHash;
use forebay_types::{Attributes, Mount, ObjectInfo};
use futures::{StreamExt, TryStreamExt};
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE, EXPIRES, HeaderName,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use hyper::body::Incoming;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::{local, overwritten, tags, uploads};
use crate::answer::{Answer, document, now_ms, rest};
use crate::body::{Fault, Pieces};
use crate::context::Context;
use crate::dialect::{S3Error, S3Result, Times, Xml, check_source, etag, iso_date, key_of, parse_range, rewrite_xml};
use crate::mounts::is_local;
use crate::request::{Request, passed};
use crate::rights::{MayRead, Object, Writable};
use crate::store::{self, Changing, Sending, collect};
use crate::temporary;

const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
const SOURCE: HeaderName = HeaderName::from_static("x-amz-copy-source");
const METADATA_DIRECTIVE: HeaderName = HeaderName::from_static("x-amz-metadata-directive");
const TAGGING_DIRECTIVE: HeaderName = HeaderName::from_static("x-amz-tagging-directive");
const TAGGING: HeaderName = HeaderName::from_static("x-amz-tagging");
/// What is metadata of an object beside `x-amz-meta-`.
const METADATA: [HeaderName; 6] = [CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, EXPIRES];

/// Copies an object, or a part of one. Within one store the store does it; else the bytes go through here.
pub(crate) async fn copy(context: &Arc<Context>, request: Request, target: &Writable, body: Incoming) -> S3Result<Answer> {
    drop(body);
    let (bucket, key, version) = source_of(&request)?;
    let source = MayRead::of(context, &request.caller, &bucket).await?.object(key_of(&key)?);
    let replaces = replaces(&request, METADATA_DIRECTIVE);
    let is_part = request.target.query.has("uploadId");
    if !is_part && source.mount().id == target.mount().id && source.key == target.key && !replaces && !changes(&request) {
        return Err(S3Error::invalid_request(
            "This copy request is illegal because it is trying to copy an object to itself without changing the object's metadata, storage class, website redirect location or encryption attributes.",
        ));
    }
    let is_within =
        [source.mount(), target.mount()].iter().all(|mount| !is_local(mount)) && same_store(source.mount(), target.mount());
    if is_within {
        return within(context, &request, &source, target, version).await;
    }
    // What comes through here is read as all reads are: as it is now.
    if version.is_some_and(|version| version != local::NULL_VERSION || !is_local(source.mount())) {
        return Err(S3Error::not_implemented("copying a version that is named to another store, or on this kind of mount"));
    }
    if is_local(target.mount()) {
        let source = Source::open(context, &request, &source).await?;
        return match is_part {
            true => part(context, &request, target, &source).await,
            false => whole(context, &request, target, &source).await,
        };
    }
    across(context, &request, &source, target).await
}

/// Whether a directive has something of the request in the place of what the source has, which is what is copied by default.
fn replaces(request: &Request, directive: HeaderName) -> bool {
    request.header(directive.as_str()).is_some_and(|directive| directive.eq_ignore_ascii_case("REPLACE"))
}

/// Writes what is copied to what does not speak S3.
async fn whole(context: &Context, request: &Request, target: &Writable, source: &Source) -> S3Result<Answer> {
    let (fault, bytes) = (Fault::default(), source.info.version.size);
    let pieces = source.read(context, 0..bytes, &fault)?;
    let info = match local::write(context, target, pieces, bytes, local::condition(request)?).await {
        Ok(info) => info,
        Err(error) => {
            return Err(match fault.take() {
                Some(fault) => fault,
                None => local::explain(context, request, target, error).await,
            });
        }
    };
    Ok(result("CopyObjectResult", &etag(&info.version.tag), info.modified_ms))
}

/// Takes a part of an upload to there from an object, or from a range of it.
async fn part(context: &Context, request: &Request, target: &Writable, source: &Source) -> S3Result<Answer> {
    let (fault, bytes) = (Fault::default(), copied(request, source.info.version.size)?);
    let length = bytes.end - bytes.start;
    let pieces = source.read(context, bytes, &fault)?;
    let part = uploads::take_part(context, target, request, (pieces, length), &fault).await?;
    Ok(result("CopyPartResult", &part.etag, part.modified_ms))
}

/// The bytes of a source that a part is to have: all of them, or a range that says both ends and lies within.
fn copied(request: &Request, size: u64) -> S3Result<Range<u64>> {
    let Some(text) = request.header("x-amz-copy-source-range") else { return Ok(0..size) };
    match parse_range(Some(text))? {
        Some(RangeSpec::Bounded { start, len }) if start.checked_add(len).is_some_and(|end| end <= size) => {
            Ok(start..start + len)
        }
        Some(RangeSpec::Bounded { .. }) => {
            Err(S3Error::invalid_argument(format!("Range specified is not valid for source object of size: {size}")))
        }
        _ => Err(S3Error::invalid_argument(
            "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the zero-based offsets of the first and last bytes to copy",
        )),
    }
}

/// `/bucket/key?versionId=..`, encoded, with or without its first slash.
fn source_of(request: &Request) -> S3Result<(String, String, Option<String>)> {
    let invalid = || S3Error::invalid_argument("Copy Source must mention the source bucket and key: sourcebucket/sourcekey");
    let text = request.header(SOURCE.as_str()).ok_or_else(invalid)?;
    let (path, version) = match text.split_once("?versionId=") {
        Some((path, version)) => (path, Some(percent_decode_str(version).decode_utf8().map_err(|_| invalid())?.into_owned())),
        None => (text, None),
    };
    // As in a form: `+` is a space.
    let path = path.replace('+', " ");
    let path = percent_decode_str(&path).decode_utf8().map_err(|_| invalid())?;
    let path = path.strip_prefix('/').unwrap_or(&path);
    match path.split_once('/') {
        Some((bucket, key)) if !bucket.is_empty() && !key.is_empty() => Ok((bucket.into(), key.into(), version)),
        _ => Err(invalid()),
    }
}

/// Whether a copy onto itself would change anything.
fn changes(request: &Request) -> bool {
    let changing =
        ["x-amz-storage-class", "x-amz-website-redirect-location", "x-amz-server-side-encryption", "x-amz-checksum-algorithm"];
    changing.iter().any(|name| request.headers().contains_key(*name))
        || request.header(SOURCE.as_str()).is_some_and(|s| s.contains("?versionId="))
}

fn same_store(source: &Mount, target: &Mount) -> bool {
    let (a, b) = (&source.options, &target.options);
    let both_s3 = source.url.starts_with("s3://") && target.url.starts_with("s3://");
    both_s3 && (&a.endpoint, &a.region, &a.profile, a.anonymous) == (&b.endpoint, &b.region, &b.profile, b.anonymous)
}

/// The store copies within itself, under its own names.
async fn within(
    context: &Arc<Context>,
    request: &Request,
    source: &Object,
    target: &Writable,
    version: Option<String>,
) -> S3Result<Answer> {
    let place = context.client.storage(source.mount()).await?.s3().ok_or_else(S3Error::internal)?;
    let full = format!("{}{}", place.prefix, source.key);
    let mut text = format!("{}/{}", place.bucket, utf8_percent_encode(&full, KEPT));
    if let Some(version) = version {
        text.push_str(&format!("?versionId={}", utf8_percent_encode(&version, KEPT)));
    }
    let mut headers = passed(request.headers(), None);
    headers.insert(SOURCE, HeaderValue::from_str(&text).map_err(|_| S3Error::invalid_uri())?);
    headers.insert(CONTENT_LENGTH, 0.into());
    let (status, headers, text) = send(context, request, target, headers, PayloadHash::Empty, None).await?;
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        let takes_tags = !request.target.query.has("uploadId") && !replaces(request, TAGGING_DIRECTIVE);
        return Err(refused(takes_tags));
    }
    if status == StatusCode::NOT_MODIFIED {
        // What some stores say of a condition on the source.
        return Err(S3Error::precondition_failed());
    }
    let mut answer = document(match status.is_success() {
        true => text,
        false => rewrite_xml(&text, |path, text| match path.last().map(String::as_str) {
            Some("BucketName") if text == place.bucket => source.mount().name.as_str().into(),
            Some("Key") => text.strip_prefix(&place.prefix).unwrap_or_default().into(),
            Some("Resource") => request.parts.uri.path().into(),
            _ => text,
        })
        .unwrap_or_default(),
    });
    *answer.status_mut() = status;
    for (name, value) in &headers {
        if name.as_str().starts_with("x-amz-") {
            answer.headers_mut().append(name.clone(), value.clone());
        }
    }
    Ok(answer)
}

/// The store refuses a copy: where that takes tags along, it wants rights beyond those to read and to write.
fn refused(takes_tags: bool) -> S3Error {
    match takes_tags {
        true => S3Error::access_denied().saying(
            "The store refuses the copy. Of an object with tags it wants s3:GetObjectTagging of the source and s3:PutObjectTagging of the \
             target, beside s3:GetObject and s3:PutObject. x-amz-tagging-directive: REPLACE copies without tags.",
        ),
        false => S3Error::access_denied(),
    }
}

/// From one store to another: read as any reader does, written as any writer does.
async fn across(context: &Arc<Context>, request: &Request, object: &Object, target: &Writable) -> S3Result<Answer> {
    let source = Source::open(context, request, object).await?;
    let is_part = request.target.query.has("uploadId");
    let mut headers = passed(request.headers(), None);
    let of_copies: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("x-amz-copy-source")).cloned().collect();
    for name in of_copies.into_iter().chain([METADATA_DIRECTIVE, TAGGING_DIRECTIVE]) {
        headers.remove(name);
    }
    if !is_part && !replaces(request, METADATA_DIRECTIVE) {
        take_over(&mut headers, &source.attributes);
    }
    if !is_part && !replaces(request, TAGGING_DIRECTIVE) {
        headers.remove(TAGGING);
        headers.extend(tags::tags(context, object).await?.map(|tags| (TAGGING, tags)));
    }
    let has_tags = headers.contains_key(TAGGING);
    let bytes = if is_part { copied(request, source.info.version.size)? } else { 0..source.info.version.size };
    let length = bytes.end - bytes.start;
    headers.insert(CONTENT_LENGTH, length.into());
    let fault = Fault::default();
    let body = match length {
        0 => None,
        _ => Some((source.read(context, bytes, &fault)?, length)),
    };
    let hash = if body.is_some() { PayloadHash::Unsigned } else { PayloadHash::Empty };
    let sent = send(context, request, target, headers, hash, body).await;
    let (status, headers, text) = sent.map_err(|error| fault.take().unwrap_or(error))?;
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Err(refused(has_tags));
    }
    if !status.is_success() {
        let mut answer = document(text);
        *answer.status_mut() = status;
        return Ok(answer);
    }
    let tag = headers.get(http::header::ETAG).and_then(|tag| tag.to_str().ok()).unwrap_or("");
    let root = if is_part { "CopyPartResult" } else { "CopyObjectResult" };
    Ok(result(root, tag, now_ms()))
}

async fn send(
    context: &Context,
    request: &Request,
    target: &Writable,
    headers: HeaderMap,
    hash: PayloadHash,
    body: Option<(Pieces, u64)>,
) -> S3Result<(StatusCode, HeaderMap, Bytes)> {
    let mut query = request.target.query.0.clone();
    query.retain(|(name, _)| name == "partNumber" || name == "uploadId");
    let changing = Changing::begin(&context.client, target.path());
    let sending = Sending { key: Some(target.key.clone()), query, headers, hash, body };
    let forwarded = store::write(context, target.may_write(), Method::PUT, sending).await;
    let answer = match forwarded {
        Ok(forwarded) => {
            let (parts, stream) = forwarded.into_parts();
            collect(stream).await.map(|text| (parts.status, parts.headers, text))
        }
        Err(error) => Err(error),
    };
    let told = changing.end().await;
    let answer = answer?;
    told?;
    Ok(answer)
}

/// What is copied: one version of it.
struct Source {
    info: ObjectInfo,
    attributes: Attributes,
    temporary: Option<temporary::Opened>,
}

impl Source {
    async fn open(context: &Context, request: &Request, object: &Object) -> S3Result<Self> {
        let source = if object.mount().name.is_temporary() {
            let opened = temporary::open(context, object).await?;
            Self { info: opened.info.clone(), attributes: Attributes::default(), temporary: Some(opened) }
        } else {
            let (info, attributes) = context.client.stat(&object.path(), false).await?;
            Self { info, attributes, temporary: None }
        };
        let times = if source.temporary.is_some() { Times::None } else { Times::Known };
        check_source(request.headers(), &source.info, times)?;
        Ok(source)
    }

    /// A range of it, as it comes; `fault` has why it breaks off.
    fn read(&self, context: &Context, range: Range<u64>, fault: &Fault) -> S3Result<Pieces> {
        let pieces = match &self.temporary {
            Some(opened) => opened.read(range)?,
            None => {
                let (client, room) = (context.client.clone(), Arc::clone(&context.large_pieces));
                rest(client, room, context.client.operation(), self.info.version.clone(), range, true)
            }
        };
        let fault = fault.clone();
        Ok(pieces.map_err(move |error| fault.set(overwritten(error))).boxed())
    }
}

/// Content type, its like and user metadata go along with the bytes, and nothing of the kind is the request's.
fn take_over(headers: &mut HeaderMap, attributes: &Attributes) {
    let replaced: Vec<HeaderName> = headers.keys().filter(|name| name.as_str().starts_with("x-amz-meta-")).cloned().collect();
    for name in replaced.into_iter().chain(METADATA) {
        headers.remove(name);
    }
    for (name, value) in &attributes.headers {
        if name.starts_with("x-amz-") && !name.starts_with("x-amz-meta-") {
            continue;
        }
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value)) {
            headers.insert(name, value);
        }
    }
}

fn result(root: &str, etag: &str, modified_ms: i64) -> Answer {
    let mut xml = Xml::begin(root, true);
    xml.text("LastModified", &iso_date(modified_ms));
    xml.text("ETag", etag);
    document(xml.end(root))
}
