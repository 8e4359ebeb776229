//! Which headers of a request a store gets: those of S3's own that say something of the object, never what names another one
//! or belongs to the signature.

use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderValue};

use super::reading::Reading;
use crate::dialect::{S3Error, S3Result};

/// Of reads and of changes.
const OF_ALL: [&str; 11] = [
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "range",
    "x-amz-expected-bucket-owner",
    "x-amz-request-payer",
    "x-amz-server-side-encryption-customer-algorithm",
    "x-amz-server-side-encryption-customer-key",
    "x-amz-server-side-encryption-customer-key-md5",
];
const OF_READS: [&str; 5] = [
    "x-amz-checksum-mode",
    "x-amz-max-parts",
    "x-amz-object-attributes",
    "x-amz-optional-object-attributes",
    "x-amz-part-number-marker",
];
/// Of what has a body.
const OF_BODIES: [&str; 6] =
    ["cache-control", "content-disposition", "content-language", "content-md5", "content-type", "expires"];
const OF_CHANGES: [&str; 28] = [
    "x-amz-acl",
    "x-amz-bucket-object-lock-token",
    "x-amz-bypass-governance-retention",
    "x-amz-confirm-remove-self-bucket-access",
    "x-amz-copy-source-if-match",
    "x-amz-copy-source-if-modified-since",
    "x-amz-copy-source-if-none-match",
    "x-amz-copy-source-if-unmodified-since",
    "x-amz-copy-source-range",
    "x-amz-copy-source-server-side-encryption-customer-algorithm",
    "x-amz-copy-source-server-side-encryption-customer-key",
    "x-amz-copy-source-server-side-encryption-customer-key-md5",
    "x-amz-if-match-last-modified-time",
    "x-amz-if-match-size",
    "x-amz-metadata-directive",
    "x-amz-mfa",
    "x-amz-mp-object-size",
    "x-amz-sdk-checksum-algorithm",
    "x-amz-server-side-encryption",
    "x-amz-server-side-encryption-aws-kms-key-id",
    "x-amz-server-side-encryption-bucket-key-enabled",
    "x-amz-server-side-encryption-context",
    "x-amz-source-expected-bucket-owner",
    "x-amz-storage-class",
    "x-amz-tagging",
    "x-amz-tagging-directive",
    "x-amz-transition-default-minimum-object-size",
    "x-amz-website-redirect-location",
];
const FAMILIES_OF_CHANGES: [&str; 4] = ["x-amz-checksum-", "x-amz-grant-", "x-amz-meta-", "x-amz-object-lock-"];
/// A write with one of these is another one without it: an append, or a move of another object.
const MEANT: [&str; 3] = ["x-amz-rename-source", "x-amz-rename-source-if-match", "x-amz-write-offset-bytes"];
/// What a write may ask of its object that none but S3 stores keep: that only a key opens it, that nobody changes it for a time.
const FAMILIES_OF_S3_ALONE: [&str; 2] = ["x-amz-object-lock-", "x-amz-server-side-encryption-customer-"];

/// The headers that a store is to see of a request that reads, or of one that changes something.
pub(crate) fn passed(headers: &HeaderMap, reading: Option<Reading>) -> HeaderMap {
    let (reads, has_body) = (reading.is_some(), !matches!(reading, Some(Reading::Get | Reading::Head)));
    let of_changes = |name: &str| OF_CHANGES.contains(&name) || FAMILIES_OF_CHANGES.iter().any(|family| name.starts_with(family));
    let is_passed = |name: &str| {
        OF_ALL.contains(&name)
            || (reads && OF_READS.contains(&name))
            || (has_body && OF_BODIES.contains(&name))
            || (!reads && of_changes(name))
    };
    let mut passed = HeaderMap::new();
    for (name, value) in headers.iter().filter(|(name, _)| is_passed(name.as_str())) {
        passed.append(name.clone(), value.clone());
    }
    // How the body came is not how the object is encoded.
    let encodings = headers.get_all(CONTENT_ENCODING).iter().filter_map(|encoding| encoding.to_str().ok());
    let encodings = encodings.flat_map(|encoding| encoding.split(',')).map(str::trim);
    let encodings: Vec<&str> = encodings.filter(|one| has_body && *one != "aws-chunked" && !one.is_empty()).collect();
    if let (false, Ok(rest)) = (encodings.is_empty(), HeaderValue::from_str(&encodings.join(","))) {
        passed.insert(CONTENT_ENCODING, rest);
    }
    passed
}

/// Refuses a change that would be another one here.
pub(crate) fn check_meant(headers: &HeaderMap) -> S3Result<()> {
    match MEANT.iter().find(|name| headers.contains_key(**name)) {
        Some(name) => Err(S3Error::not_implemented(name)),
        None => Ok(()),
    }
}

/// Refuses a change that asks for what would not be kept where no S3 is.
pub(crate) fn check_kept(headers: &HeaderMap) -> S3Result<()> {
    match headers.keys().find(|name| FAMILIES_OF_S3_ALONE.iter().any(|family| name.as_str().starts_with(family))) {
        Some(name) => Err(S3Error::not_implemented(&format!("{name} on this kind of mount"))),
        None => Ok(()),
    }
}
