//! The head of an answer with an object, or a part of one.

use std::ops::Range;

use forebay_types::{Attributes, ObjectInfo};
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, ETAG, EXPIRES, HeaderName, LAST_MODIFIED,
};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::Answer;
use super::body::AnswerBody;
use crate::dialect::{Query, S3Result, etag, header_value, http_date};

/// Headers that a signed request may set on its answer.
const OVERRIDES: [(&str, HeaderName); 6] = [
    ("response-cache-control", CACHE_CONTROL),
    ("response-content-disposition", CONTENT_DISPOSITION),
    ("response-content-encoding", CONTENT_ENCODING),
    ("response-content-language", CONTENT_LANGUAGE),
    ("response-content-type", CONTENT_TYPE),
    ("response-expires", EXPIRES),
];

pub(crate) struct Head<'a> {
    pub(crate) query: &'a Query,
    pub(crate) info: &'a ObjectInfo,
    pub(crate) attributes: &'a Attributes,
    pub(crate) range: Option<Range<u64>>,
    pub(crate) checksums: bool,
}

impl Head<'_> {
    /// Whether a query sets headers of its answer.
    pub(crate) fn is_set_by(query: &Query) -> bool {
        OVERRIDES.iter().any(|(name, _)| query.has(name))
    }

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
        headers.insert(ETAG, header_value(&etag(&self.info.version.tag))?);
        headers.insert(LAST_MODIFIED, header_value(&http_date(self.info.modified_ms))?);
        for (query, name) in OVERRIDES {
            if let Some(text) = self.query.get(query) {
                headers.insert(name, header_value(text)?);
            }
        }
        let mut answer = Answer::new(body);
        match &self.range {
            Some(range) => {
                headers.insert(CONTENT_LENGTH, (range.end - range.start).into());
                // Of a last part that is empty there is none.
                if !range.is_empty() {
                    headers.insert(CONTENT_RANGE, header_value(&format!("bytes {}-{}/{size}", range.start, range.end - 1))?);
                }
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
