//! Where a part of an object lies that was made of parts.

use std::ops::Range;

use forebay_shared_storage::PayloadHash;
use forebay_types::ObjectInfo;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, HeaderName, IF_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::context::Context;
use crate::dialect::{S3Error, S3Result, etag};
use crate::mounts::is_local;
use crate::request::{Reading, Request};
use crate::rights::Object;
use crate::store::{self, Sending};

/// Where a part lies, and what the store says of parts.
pub(super) struct PartRange {
    /// None when the object has no parts and is its own first.
    pub(super) range: Option<Range<u64>>,
    pub(super) headers: HeaderMap,
}

/// Asks the store where a part of this version lies.
pub(super) async fn part_range(context: &Context, request: &Request, object: &Object, info: &ObjectInfo) -> S3Result<PartRange> {
    let invalid = || S3Error::invalid_argument("Part number must be an integer between 1 and 10000, inclusive");
    let number: u32 = request.query("partNumber").unwrap_or("").parse().map_err(|_| invalid())?;
    if !(1..=10_000).contains(&number) {
        return Err(invalid());
    }
    let none_such = || {
        let message = "The requested partnumber is not satisfiable";
        S3Error::new(StatusCode::RANGE_NOT_SATISFIABLE, "InvalidPartNumber", message)
    };
    if is_local(object.mount()) {
        return if number == 1 { Ok(PartRange { range: None, headers: HeaderMap::new() }) } else { Err(none_such()) };
    }
    let mut headers = HeaderMap::new();
    if let Ok(tag) = HeaderValue::from_str(&etag(&info.version.tag)) {
        headers.insert(IF_MATCH, tag);
    }
    let query = vec![("partNumber".to_string(), number.to_string())];
    let (hash, key) = (PayloadHash::Empty, Some(object.key.clone()));
    let sending = Sending { key, query, headers, hash, body: None };
    let answer = store::read(context, object.may_read(), Reading::Head, sending).await?;
    match answer.status() {
        StatusCode::OK | StatusCode::PARTIAL_CONTENT => {}
        StatusCode::NOT_FOUND => return Err(S3Error::no_such_key()),
        StatusCode::PRECONDITION_FAILED => return Err(S3Error::precondition_failed()),
        StatusCode::RANGE_NOT_SATISFIABLE => return Err(none_such()),
        StatusCode::BAD_REQUEST => return Err(invalid()),
        _ => return Err(S3Error::slow_down()),
    }
    let text = |name: HeaderName| answer.headers().get(name).and_then(|value| value.to_str().ok());
    let range = text(CONTENT_RANGE).and_then(parse);
    let length: Option<u64> = text(CONTENT_LENGTH).and_then(|length| length.parse().ok());
    let range = match (range, length) {
        (Some(range), _) if range.end <= info.version.size => Some(range),
        // Only the last part may be empty, and no range says so.
        (None, Some(0)) => Some(info.version.size..info.version.size).filter(|range| range.end > 0),
        // Not every store tells where a part lies; of an only part it needs not.
        (None, Some(length)) if length == info.version.size => None,
        _ => return Err(S3Error::not_implemented("the store does not tell where the part lies")),
    };
    let mut headers = HeaderMap::new();
    let count = HeaderName::from_static("x-amz-mp-parts-count");
    if let Some(value) = answer.headers().get(&count) {
        headers.insert(count, value.clone());
    }
    Ok(PartRange { range, headers })
}

/// Reads `bytes 0-9/100`.
fn parse(shown: &str) -> Option<Range<u64>> {
    let (range, _) = shown.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let end = last.checked_add(1)?;
    (first <= last).then_some(first..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_part_lies_is_what_can_be() {
        assert_eq!(parse("bytes 5-9/100"), Some(5..10));
        for lie in ["bytes 0-18446744073709551615/100", "bytes 9-5/100", "bytes 5-9", "5-9/100", "bytes */100"] {
            assert_eq!(parse(lie), None, "{lie}");
        }
    }
}
