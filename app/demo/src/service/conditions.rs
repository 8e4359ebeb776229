//! Conditional requests as RFC 9110 has them, for reads and for writes.

use std::time::{Duration, UNIX_EPOCH};

use http::HeaderMap;
use s3s::dto::{ETag, ETagCondition, Timestamp};
use s3s::{S3Error, S3Result, s3_error};

use crate::store::{Object, StoreError};

/// The conditions of a GET or HEAD.
pub(super) struct ReadConditions {
    pub(super) if_match: Option<ETagCondition>,
    pub(super) if_none_match: Option<ETagCondition>,
    pub(super) if_modified_since: Option<Timestamp>,
    pub(super) if_unmodified_since: Option<Timestamp>,
}

impl ReadConditions {
    /// Whether the object may be answered, in the order of RFC 9110, section 13.2.2: 412, or 304, or yes.
    pub(super) fn check(&self, object: &Object) -> S3Result<()> {
        let modified = modified(object);
        match (&self.if_match, &self.if_unmodified_since) {
            (Some(condition), _) if !matches(condition, &object.etag) => return Err(precondition_failed()),
            (None, Some(since)) if modified > *since => return Err(precondition_failed()),
            _ => {}
        }
        match (&self.if_none_match, &self.if_modified_since) {
            (Some(condition), _) if matches(condition, &object.etag) => Err(not_modified(object)),
            (None, Some(since)) if modified <= *since => Err(not_modified(object)),
            _ => Ok(()),
        }
    }
}

/// The conditions of a write, against what is there now.
pub(super) fn check_write(
    if_match: Option<&ETagCondition>,
    if_none_match: Option<&ETagCondition>,
    there: Option<&Object>,
) -> Result<(), StoreError> {
    match (if_match, there) {
        (Some(_), None) => return Err(StoreError::NoKey),
        (Some(condition), Some(object)) if !matches(condition, &object.etag) => return Err(StoreError::Precondition),
        _ => {}
    }
    match (if_none_match, there) {
        (Some(condition), Some(object)) if matches(condition, &object.etag) => Err(StoreError::Precondition),
        _ => Ok(()),
    }
}

fn matches(condition: &ETagCondition, etag: &str) -> bool {
    match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(given) => given.as_strong() == Some(etag),
    }
}

/// The time of the last write in whole seconds, which is all that HTTP's dates can say.
pub(super) fn modified(object: &Object) -> Timestamp {
    Timestamp::from(UNIX_EPOCH + Duration::from_secs(object.modified_ms.max(0) as u64 / 1000))
}

fn precondition_failed() -> S3Error {
    s3_error!(PreconditionFailed, "At least one of the pre-conditions you specified did not hold")
}

fn not_modified(object: &Object) -> S3Error {
    let mut error = s3_error!(NotModified);
    error.set_status_code(http::StatusCode::NOT_MODIFIED);
    let mut headers = HeaderMap::new();
    if let Ok(etag) = ETag::Strong(object.etag.clone()).to_http_header() {
        headers.insert(http::header::ETAG, etag);
    }
    error.set_headers(headers);
    error
}
