//! What the headers of an answer say of an object.

use std::ops::Range;

use chrono::DateTime;
use forebay_types::{Attributes, Error, Key, ObjectInfo, Result, VersionTag};
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, DATE, ETAG, HeaderName, LAST_MODIFIED};
use http::{HeaderMap, Response, StatusCode};

use super::Inner;
use crate::request::GetRange;

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

pub(super) fn length(headers: &HeaderMap) -> Option<u64> {
    text(headers, CONTENT_LENGTH)?.trim().parse().ok()
}

/// Asks for the checksums of a whole object.
pub(super) const CHECKSUM_MODE: HeaderName = HeaderName::from_static("x-amz-checksum-mode");
/// Headers of an answer that say something of the object, beside all of `x-amz-` but [`NOT_KEPT`].
const KEPT: [&str; 6] =
    ["cache-control", "content-disposition", "content-encoding", "content-language", "content-type", "expires"];
/// What says something of the answer.
const NOT_KEPT: [&str; 5] =
    ["x-amz-bucket-region", "x-amz-delete-marker", "x-amz-id-2", "x-amz-mp-parts-count", "x-amz-request-id"];
/// Bytes of attributes at most; S3 allows 2 KiB of user metadata and as much of others.
const ATTRIBUTES_BYTES_MAX: usize = 16 << 10;

/// What an answer says of the object beside its version. `whole`: it is of all of the object, and was asked for checksums.
pub(super) fn attributes(headers: &HeaderMap, whole: bool) -> Attributes {
    let mut attributes = Attributes { headers: Vec::new(), complete: whole };
    let mut bytes = 0;
    for (name, value) in headers {
        let name = name.as_str();
        let kept = KEPT.contains(&name) || (name.starts_with("x-amz-") && !NOT_KEPT.contains(&name));
        // A checksum that comes with a part may be the part's.
        if !kept || (!whole && name.starts_with("x-amz-checksum-")) {
            continue;
        }
        bytes += name.len() + value.len();
        if bytes > ATTRIBUTES_BYTES_MAX {
            break;
        }
        attributes.headers.push((name.into(), value.as_bytes().to_vec()));
    }
    attributes
}

/// Milliseconds since the Unix epoch.
pub(super) fn modified_ms(headers: &HeaderMap) -> Option<i64> {
    let date = text(headers, LAST_MODIFIED).or_else(|| text(headers, DATE))?;
    Some(DateTime::parse_from_rfc2822(date.trim()).ok()?.timestamp_millis())
}

/// The object's ETag, or, where the store has none, its size and time of modification in whole seconds.
pub(super) fn tag(etag: Option<&str>, size: u64, modified_ms: Option<i64>) -> Option<VersionTag> {
    match etag {
        Some(etag) if !etag.is_empty() => Some(VersionTag::etag(etag)),
        _ => modified_ms.map(|ms| VersionTag::modified(size, i128::from(ms.div_euclid(1000)) * 1_000_000_000)),
    }
}

/// Whether the store gave this tag, so that it can be asked to compare it.
pub(super) fn is_etag(tag: &VersionTag) -> bool {
    !tag.as_str().starts_with('m')
}

/// The object that an answer is about; its size is given by who asked.
pub(super) fn info_of(s3: &Inner, key: &Key, headers: &HeaderMap, size: Option<u64>) -> Result<ObjectInfo> {
    let incomplete = |what: &str| Error::internal(format!("{}: the answer has no {what}", s3.path(key.as_str())));
    let size = size.ok_or_else(|| incomplete("length"))?;
    let modified = modified_ms(headers);
    let tag = tag(text(headers, ETAG), size, modified).ok_or_else(|| incomplete("ETag and no Last-Modified"))?;
    Ok(s3.info(key, tag, size, modified.unwrap_or_default()))
}

/// Which bytes of the object an answer to a GET brings: what was asked for, and how many at its start are too many,
/// because the server sends the whole object whatever is asked.
pub(super) fn range_of<B>(answer: &Response<B>, wanted: &GetRange) -> Result<Sent, &'static str> {
    if answer.status() != StatusCode::PARTIAL_CONTENT {
        let size = length(answer.headers()).ok_or("no length")?;
        let range = wanted.of(size).ok_or("no byte of the range")?;
        return Ok(Sent { size, skip: range.start, range });
    }
    let shown = text(answer.headers(), CONTENT_RANGE).ok_or("no Content-Range")?;
    let (sent, size) = parse_content_range(shown).ok_or("a Content-Range that can't be read")?;
    let range = wanted.of(size).ok_or("no byte of the range")?;
    if sent != range { Err("other bytes than were asked for") } else { Ok(Sent { size, skip: 0, range }) }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// Size of the object.
    pub(super) size: u64,
    /// Which bytes of it were asked for.
    pub(super) range: Range<u64>,
    /// How many bytes come before them.
    pub(super) skip: u64,
}

/// Reads `bytes 0-9/100`.
fn parse_content_range(shown: &str) -> Option<(Range<u64>, u64)> {
    let (range, size) = shown.trim().strip_prefix("bytes")?.trim().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last, size) = (first.trim().parse().ok()?, last.trim().parse::<u64>().ok()?, size.trim().parse().ok()?);
    (first <= last && last < size).then(|| (first..last + 1, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, name: HeaderName, value: &str) -> Response<()> {
        Response::builder().status(status).header(name, value).body(()).unwrap()
    }

    #[test]
    fn ranges_are_what_was_asked_for() {
        let partial = |value| answer(206, CONTENT_RANGE, value);
        let sent = |range, skip| Ok(Sent { size: 100, range, skip });
        assert_eq!(range_of(&partial("bytes 10-19/100"), &GetRange::Bounded(10..20)), sent(10..20, 0));
        assert_eq!(range_of(&partial("bytes 90-99/100"), &GetRange::Bounded(90..200)), sent(90..100, 0));
        assert_eq!(range_of(&partial("bytes 90-99/100"), &GetRange::Suffix(10)), sent(90..100, 0));
        let whole = |wanted| range_of(&answer(200, CONTENT_LENGTH, "100"), &wanted);
        assert_eq!(whole(GetRange::Bounded(10..20)), sent(10..20, 10));
        assert_eq!(whole(GetRange::Suffix(500)), sent(0..100, 0));
    }

    #[test]
    fn answers_that_lie_are_refused() {
        for lie in ["bytes 0-9/100", "bytes 10-20/100", "bytes 19-10/100", "bytes 10-19/*", "bytes 10-19/5", "10-19/100"] {
            assert!(range_of(&answer(206, CONTENT_RANGE, lie), &GetRange::Bounded(10..20)).is_err(), "{lie}");
        }
        assert!(range_of(&answer(200, CONTENT_LENGTH, "10"), &GetRange::From(10)).is_err());
    }
}
