//! What S3's statuses and codes mean for the caller, with the remedy named.

use std::time::Duration;

use forebay_types::{Error, ErrorKind};
use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};

use super::S3;
use super::call::{Call, Kind};
use super::xml;
use crate::retry::{Answered, Failure};

/// Longest pause that a server may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

/// Said to whom whose clock differs from the server's.
const CLOCK: &str = "RequestTimeTooSkewed";

/// Sorts a refusal by what the caller must do, and says so.
pub(super) fn refusal(s3: &S3, call: &Call, status: StatusCode, headers: &HeaderMap, text: &[u8]) -> Failure {
    let said = xml::Refusal::parse(text);
    let code = said.code.as_deref().unwrap_or("");
    let region = headers.get("x-amz-bucket-region").and_then(|region| region.to_str().ok()).or(said.region.as_deref());
    let (kind, remedy) = judge(s3, call, status, code, region);
    let answered = match (code, said.message.as_deref().unwrap_or("")) {
        ("", _) => format!("{} {}", status.as_u16(), status.canonical_reason().unwrap_or("")),
        (code, "") => format!("{} {code}", status.as_u16()),
        (code, message) => format!("{} {code}: {}", status.as_u16(), message.trim_end_matches('.')),
    };
    let path = s3.path(&call.about);
    let error = Error::new(kind, format!("{path}: {remedy} ({} answered {})", s3.address.endpoint, answered.trim_end()));
    let after = headers.get(RETRY_AFTER).and_then(|after| after.to_str().ok()?.parse().ok()).map(Duration::from_secs);
    Failure {
        error,
        transient: kind == ErrorKind::Retry && code != CLOCK,
        after: after.map(|after| after.min(RETRY_AFTER_MAX)),
        answered: Some(Answered { status: status.as_u16(), code: code.into() }),
    }
}

fn judge(s3: &S3, call: &Call, status: StatusCode, code: &str, region: Option<&str>) -> (ErrorKind, String) {
    let bucket = &s3.bucket.name;
    let denied = |what: &str| {
        let signer = match s3.signer() {
            origin if origin.starts_with("none") => "the request was not signed, since the mount is anonymous".to_string(),
            origin => format!("credentials come from {origin}"),
        };
        let remedy = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile of ~/.aws/credentials";
        (ErrorKind::Denied, format!("{what}; {signer}: check them and what they may do in bucket {bucket:?}, {remedy}"))
    };
    match (status.as_u16(), code) {
        (_, "NoSuchBucket") => {
            let endpoint = &s3.address.endpoint;
            (
                ErrorKind::NotFound,
                format!("there is no bucket {bucket:?} at {endpoint}: check the mount's URL and endpoint, or make it"),
            )
        }
        (301 | 302 | 307 | 308, _) | (400, "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException") => {
            let there = region.map_or("elsewhere".to_string(), |region| format!("in region {region:?}"));
            let remedy = region.map_or("another --region or --endpoint".to_string(), |region| format!("--region {region}"));
            (ErrorKind::Invalid, format!("bucket {bucket:?} is {there}, not in {:?}: mount it with {remedy}", s3.region))
        }
        (_, "InvalidAccessKeyId") => denied("the access key is not known there"),
        (_, "SignatureDoesNotMatch") => denied("the secret key is wrong"),
        (_, "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired") => denied("the session token has expired"),
        // Other machines have other clocks: it may be asked from there.
        (_, CLOCK) => {
            let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
            (ErrorKind::Retry, format!("the clock of machine {:?}, which asked, is wrong: set it", host.trim()))
        }
        (401 | 403, _) => denied("access denied"),
        (404, _) if call.kind == Kind::List => {
            (ErrorKind::NotFound, format!("there is no bucket {bucket:?}: check the mount's URL"))
        }
        (404, "NoSuchUpload") => (ErrorKind::NotFound, "the upload is gone: begin it again".into()),
        // A write that depends on a version of what is gone.
        (404, "NoSuchKey") if call.kind == Kind::Put => (ErrorKind::Conflict, "the object is gone".into()),
        (404, _) => (ErrorKind::NotFound, "there is no such object".into()),
        (412, _) => (ErrorKind::Conflict, "the object has another version now".into()),
        (409, "ConditionalRequestConflict" | "OperationAborted") => (ErrorKind::Retry, "somebody else is writing it".into()),
        (416, _) => (ErrorKind::Invalid, "the range is past the object's end".into()),
        (400, "RequestTimeout") | (429 | 500 | 502 | 503 | 504, _) => {
            (ErrorKind::Retry, "the server is overloaded or unwell: try later".into())
        }
        (501, _) => (ErrorKind::Invalid, "the server can't do that".into()),
        (400..500, _) => (ErrorKind::Invalid, "the server refuses the request".into()),
        (500..600, _) => (ErrorKind::Retry, "the server failed: try later".into()),
        _ => (ErrorKind::Internal, "unexpected answer".into()),
    }
}
