use std::ops::Range;
use std::sync::Arc;

use forebay_client::{FirstRead, ObjectRead, RangeSpec};
use forebay_types::{Attributes, ErrorKind, ObjectInfo};
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, ETAG, EXPIRES, HeaderName, LAST_MODIFIED, RANGE,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::conditions::{check, may_be_known};
use super::parts::part_range;
use super::pieces::rest;
use super::{etag, http_date, range};
use crate::auth::Caller;
use crate::context::{Answer, AnswerBody, Context, Request};
use crate::error::{S3Error, S3Result};
use crate::rights::Object;
use crate::target::Query;
use crate::temporary;

/// Bytes of an answer that come before its head is sent.
pub(crate) const FIRST_BYTES: u32 = 1 << 20;
/// Bytes that an object of which nothing is known is asked for at once: what is larger comes in several requests.
const UNKNOWN_BYTES: u64 = 16 << 20;
/// Headers that a signed request may set on its answer.
const OVERRIDES: [(&str, HeaderName); 6] = [
    ("response-cache-control", CACHE_CONTROL),
    ("response-content-disposition", CONTENT_DISPOSITION),
    ("response-content-encoding", CONTENT_ENCODING),
    ("response-content-language", CONTENT_LANGUAGE),
    ("response-content-type", CONTENT_TYPE),
    ("response-expires", EXPIRES),
];

/// Answers GET and HEAD of an object, out of the tiers where it is there.
pub(crate) async fn get(context: &Arc<Context>, request: &Request, object: &Object) -> S3Result<Answer> {
    let is_head = request.parts.method == Method::HEAD;
    if matches!(request.caller, Caller::Anonymous(_)) && OVERRIDES.iter().any(|(name, _)| request.target.query.has(name)) {
        return Err(S3Error::invalid_request("Request specific response headers cannot be used for anonymous GET requests."));
    }
    let checksums = request.header("x-amz-checksum-mode").is_some_and(|mode| mode.eq_ignore_ascii_case("enabled"));
    if temporary::is_it(object.mount()) {
        return temporary::get(context, request, object).await;
    }
    if request.target.query.has("partNumber") {
        return part(context, request, object, is_head).await;
    }
    let wanted = range::parse(request.header(RANGE.as_str()))?;
    if is_head || may_be_known(request.headers()) {
        let (info, attributes) = context.client.stat(&object.path(), checksums && wanted.is_none()).await?;
        check(request.headers(), &info)?;
        let range = wanted.map(|wanted| range::resolve(wanted, info.version.size)).transpose()?;
        let query = &request.target.query;
        let head = Head { query, info: &info, attributes: &attributes, range: range.clone(), checksums };
        if is_head {
            return head.answer(AnswerBody::empty());
        }
        let body = read_version(context, &info, range.unwrap_or(0..info.version.size)).await?;
        return head.answer(body);
    }
    let operation = context.client.operation();
    let read = ObjectRead { range: first_range(wanted, checksums), first: FIRST_BYTES, complete: checksums && wanted.is_none() };
    let first = match context.client.read_object(operation, &object.path(), read).await {
        Ok(first) => first,
        // The object may end before the range.
        Err(error) if error.kind() == ErrorKind::Invalid && wanted.is_some() => {
            let (info, _) = context.client.stat(&object.path(), false).await?;
            check(request.headers(), &info)?;
            range::resolve(wanted.unwrap_or(RangeSpec::From { start: 0 }), info.version.size)?;
            return Err(error.into());
        }
        Err(error) => return Err(error.into()),
    };
    let FirstRead { info, attributes, bytes, hit, .. } = first;
    context.meters.read(hit);
    check(request.headers(), &info)?;
    let range = wanted.map(|wanted| range::resolve(wanted, info.version.size)).transpose()?;
    let all = range.clone().unwrap_or(0..info.version.size);
    let sent = all.start + bytes.len() as u64;
    let body = match sent >= all.end {
        true => AnswerBody::of(bytes),
        false => {
            let rest =
                rest(context.client.clone(), Arc::clone(&context.large_pieces), operation, info.version.clone(), sent..all.end);
            AnswerBody::stream(bytes, rest, Some(all.end - all.start))
        }
    };
    Head { query: &request.target.query, info: &info, attributes: &attributes, range, checksums }.answer(body)
}

/// What the worker asks an object for that nothing is known of: as much as is wanted, but not without end.
fn first_range(wanted: Option<RangeSpec>, checksums: bool) -> RangeSpec {
    match wanted {
        None if checksums => RangeSpec::From { start: 0 },
        None => RangeSpec::Bounded { start: 0, len: UNKNOWN_BYTES },
        Some(RangeSpec::From { start }) => RangeSpec::Bounded { start, len: UNKNOWN_BYTES },
        Some(RangeSpec::Bounded { start, len }) => RangeSpec::Bounded { start, len: len.min(UNKNOWN_BYTES) },
        Some(suffix) => suffix,
    }
}

/// A part of an object that was made of parts: the store knows where it lies, the tiers have its bytes.
async fn part(context: &Arc<Context>, request: &Request, object: &Object, is_head: bool) -> S3Result<Answer> {
    if request.headers().contains_key(RANGE) {
        return Err(S3Error::invalid_request("Cannot specify both Range header and partNumber query parameter"));
    }
    let (info, attributes) = context.client.stat(&object.path(), false).await?;
    check(request.headers(), &info)?;
    let part = part_range(context, request, object, &info).await?;
    let query = &request.target.query;
    let head = Head { query, info: &info, attributes: &attributes, range: part.range.clone(), checksums: false };
    let body = match (is_head, part.range.clone()) {
        (true, _) => AnswerBody::empty(),
        (false, range) => read_version(context, &info, range.unwrap_or(0..info.version.size)).await?,
    };
    let mut answer = head.answer(body)?;
    answer.headers_mut().extend(part.headers);
    Ok(answer)
}

/// Bytes of a version that is known, as they come.
async fn read_version(context: &Arc<Context>, info: &ObjectInfo, range: Range<u64>) -> S3Result<AnswerBody> {
    let operation = context.client.operation();
    let first_end = range.end.min(range.start + u64::from(FIRST_BYTES));
    let first = context.client.read(operation, &info.version, range.start..first_end).await?;
    if first_end == range.end {
        return Ok(AnswerBody::of(first));
    }
    let room = Arc::clone(&context.large_pieces);
    let rest = rest(context.client.clone(), room, operation, info.version.clone(), first_end..range.end);
    Ok(AnswerBody::stream(first, rest, Some(range.end - range.start)))
}

/// The head of an answer.
pub(crate) struct Head<'a> {
    pub(crate) query: &'a Query,
    pub(crate) info: &'a ObjectInfo,
    pub(crate) attributes: &'a Attributes,
    pub(crate) range: Option<Range<u64>>,
    pub(crate) checksums: bool,
}

impl Head<'_> {
    pub(crate) fn answer(&self, body: AnswerBody) -> S3Result<Answer> {
        let size = self.info.version.size;
        let mut headers = HeaderMap::with_capacity(16);
        for (name, value) in &self.attributes.headers {
            // A checksum of the whole beside a part of it would be believed to be the part's.
            if name.starts_with("x-amz-checksum-") && (!self.checksums || self.range.is_some()) {
                continue;
            }
            // How an upload came, which some stores take for what the object is.
            if name == "content-encoding" && value == b"aws-chunked" {
                continue;
            }
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value)) {
                headers.append(name, value);
            }
        }
        headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("binary/octet-stream"));
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers.insert(ETAG, value(&etag(&self.info.version.tag))?);
        headers.insert(LAST_MODIFIED, value(&http_date(self.info.modified_ms))?);
        for (query, name) in OVERRIDES {
            if let Some(text) = self.query.get(query) {
                headers.insert(name, value(text)?);
            }
        }
        let mut answer = Answer::new(body);
        match &self.range {
            Some(range) => {
                headers.insert(CONTENT_LENGTH, (range.end - range.start).into());
                headers.insert(CONTENT_RANGE, value(&format!("bytes {}-{}/{size}", range.start, range.end - 1))?);
                *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
            }
            None => {
                headers.insert(CONTENT_LENGTH, size.into());
            }
        }
        *answer.headers_mut() = headers;
        Ok(answer)
    }
}

pub(super) fn value(text: &str) -> S3Result<HeaderValue> {
    HeaderValue::from_str(text).map_err(|_| S3Error::invalid_argument("A header of the answer can't have this value."))
}
