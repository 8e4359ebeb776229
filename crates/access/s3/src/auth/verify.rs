//! Signatures of all requests, in a header or in the URL.

use chrono::{DateTime, TimeDelta, Utc};
use forebay_types::hex;
use http::header::{AUTHORIZATION, DATE};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use ring::digest::{SHA256, digest};
use ring::hmac;

use super::canonical::Canonical;
use super::credential::{ALGORITHM, Signed};
use super::stamp::parse_time;
use super::{Caller, Keys};
use crate::dialect::{Query, S3Error, S3Result};

/// How far a client's clock may be from ours.
pub(super) const SKEW: TimeDelta = TimeDelta::minutes(15);
/// Longest life of a presigned URL.
pub(super) const EXPIRES_MAX_SECS: i64 = 7 * 24 * 3600;

/// What the signature says of the body.
#[derive(Clone, Debug)]
pub(crate) enum BodyHash {
    /// Nothing.
    Unsigned,
    /// Its SHA-256, in hexadecimal digits.
    Sha256(String),
    /// It comes in chunks as `aws-chunked`.
    Chunked {
        /// Each chunk is signed.
        signing: Option<Box<ChunkSigning>>,
        /// Checksums follow behind the last chunk.
        trailer: bool,
    },
}

/// With what the chunks of a body are signed.
#[derive(Clone)]
pub(crate) struct ChunkSigning {
    key: hmac::Key,
    time: String,
    scope: String,
    previous: String,
}

forebay_types::shown!(ChunkSigning);

impl ChunkSigning {
    /// Checks the signature of the next chunk, whose SHA-256 is given.
    pub(crate) fn check_chunk(&mut self, hash: &[u8], signature: &str) -> S3Result<()> {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let (time, scope, previous) = (&self.time, &self.scope, &self.previous);
        let to_sign = format!("AWS4-HMAC-SHA256-PAYLOAD\n{time}\n{scope}\n{previous}\n{empty}\n{}", hex(hash));
        self.check(&to_sign, signature)
    }

    /// Checks the signature of the trailing headers, as they stand in the body.
    pub(crate) fn check_trailer(&mut self, trailer: &[u8], signature: &str) -> S3Result<()> {
        let (time, scope, previous) = (&self.time, &self.scope, &self.previous);
        let hash = hex(digest(&SHA256, trailer).as_ref());
        let to_sign = format!("AWS4-HMAC-SHA256-TRAILER\n{time}\n{scope}\n{previous}\n{hash}");
        self.check(&to_sign, signature)
    }

    fn check(&mut self, to_sign: &str, signature: &str) -> S3Result<()> {
        let given = super::credential::unhex(signature).ok_or_else(S3Error::signature_mismatch)?;
        hmac::verify(&self.key, to_sign.as_bytes(), &given).map_err(|_| S3Error::signature_mismatch())?;
        self.previous = signature.into();
        Ok(())
    }
}

/// Finds out who asks. Every request goes through here, whether its answer is cached or not.
pub(crate) fn authenticate(keys: &Keys, parts: &Parts, query: &Query, now: DateTime<Utc>) -> S3Result<(Caller, BodyHash)> {
    if let Some(authorization) = parts.headers.get(AUTHORIZATION) {
        if query.has("X-Amz-Signature") {
            return Err(S3Error::invalid_argument("Only one auth mechanism allowed"));
        }
        let text = authorization.to_str().map_err(|_| S3Error::invalid_argument("Unsupported Authorization Type"))?;
        return by_header(keys, parts, &Signed::from_header(text)?, now);
    }
    if query.has("X-Amz-Signature") || query.has("X-Amz-Algorithm") {
        return by_query(keys, parts, query, now);
    }
    if query.has("Signature") && query.has("AWSAccessKeyId") {
        return Err(S3Error::invalid_request(
            "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256: this URL was presigned with \
             signature version 2, which boto3 and the AWS CLI make for us-east-1 unless signature_version is s3v4.",
        ));
    }
    Ok((keys.anonymous()?, body_hash(&parts.headers, None)?))
}

fn by_header(keys: &Keys, parts: &Parts, signed: &Signed, now: DateTime<Utc>) -> S3Result<(Caller, BodyHash)> {
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let time = match header("x-amz-date") {
        Some(text) => parse_time(text),
        None => header(DATE.as_str()).and_then(|text| Some(DateTime::parse_from_rfc2822(text).ok()?.to_utc())),
    };
    let denied = |message: &str| S3Error::access_denied().saying(message);
    let time = time.ok_or_else(|| denied("AWS authentication requires a valid Date or x-amz-date header"))?;
    let rule = keys.find(&signed.key_id)?;
    if (now - time).abs() > SKEW {
        return Err(S3Error::time_too_skewed());
    }
    let stamp = time.format("%Y%m%dT%H%M%SZ").to_string();
    if stamp[..8] != *signed.date() {
        return Err(S3Error::signature_mismatch());
    }
    let hash = header("x-amz-content-sha256")
        .ok_or_else(|| S3Error::invalid_request("Missing required header for this request: x-amz-content-sha256"))?;
    all_signed(&parts.headers, signed, &[])?;
    let key = keys.signing_key(&rule, &signed.scope);
    check(&key, parts, signed, &stamp, hash)?;
    let signing = ChunkSigning { key, time: stamp, scope: signed.scope.clone(), previous: hex(&signed.signature) };
    Ok((Caller::Key(rule), body_hash(&parts.headers, Some(Box::new(signing)))?))
}

fn by_query(keys: &Keys, parts: &Parts, query: &Query, now: DateTime<Utc>) -> S3Result<(Caller, BodyHash)> {
    let wrong = |message: &str| S3Error::new(StatusCode::BAD_REQUEST, "AuthorizationQueryParametersError", message);
    let all = "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, X-Amz-Signature, \
               X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters.";
    let field = |name: &str| query.get(name).ok_or_else(|| wrong(all));
    if field("X-Amz-Algorithm")? != ALGORITHM {
        return Err(wrong("X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256\""));
    }
    let signed = Signed::new(field("X-Amz-Credential")?, field("X-Amz-SignedHeaders")?, field("X-Amz-Signature")?);
    let signed = signed.map_err(wrong)?;
    let stamp = field("X-Amz-Date")?;
    let time =
        parse_time(stamp).ok_or_else(|| wrong("X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\""))?;
    let expires: i64 = field("X-Amz-Expires")?.parse().map_err(|_| wrong("X-Amz-Expires should be a number"))?;
    if expires < 0 {
        return Err(wrong("X-Amz-Expires must be non-negative"));
    }
    if expires > EXPIRES_MAX_SECS {
        return Err(wrong(
            "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than 604800 seconds",
        ));
    }
    let rule = keys.find(&signed.key_id)?;
    // Spaces of several bytes are taken for a part of a time too.
    if stamp.get(..8) != Some(signed.date()) {
        return Err(wrong("Invalid credential date. This date is not the same as X-Amz-Date."));
    }
    if time - now > SKEW {
        return Err(S3Error::access_denied().saying("Request is not yet valid"));
    }
    if now > time + TimeDelta::seconds(expires) {
        return Err(S3Error::access_denied().saying("Request has expired").with("X-Amz-Expires", expires.to_string()));
    }
    all_signed(&parts.headers, &signed, &["x-amz-content-sha256"])?;
    let hash = match parts.headers.get("x-amz-content-sha256").and_then(|hash| hash.to_str().ok()) {
        Some(hash) if signed.headers.iter().any(|name| name == "x-amz-content-sha256") => hash,
        _ => "UNSIGNED-PAYLOAD",
    };
    let key = keys.signing_key(&rule, &signed.scope);
    check(&key, parts, &signed, stamp, hash)?;
    let signing = ChunkSigning { key, time: stamp.into(), scope: signed.scope.clone(), previous: hex(&signed.signature) };
    Ok((Caller::Key(rule), body_hash(&parts.headers, Some(Box::new(signing)))?))
}

/// Nobody on the way may add what changes the meaning.
fn all_signed(headers: &HeaderMap, signed: &Signed, but: &[&str]) -> S3Result<()> {
    let unsigned = |name: &str| name.starts_with("x-amz-") && !but.contains(&name) && !signed.headers.iter().any(|s| s == name);
    let names: Vec<&str> = headers.keys().map(|name| name.as_str()).filter(|name| unsigned(name)).collect();
    match names.is_empty() {
        true => Ok(()),
        false => Err(S3Error::access_denied()
            .saying("There were headers present in the request which were not signed")
            .with("HeadersNotSigned", names.join(", "))),
    }
}

fn check(key: &hmac::Key, parts: &Parts, signed: &Signed, stamp: &str, hash: &str) -> S3Result<()> {
    let canonical = Canonical {
        method: parts.method.as_str(),
        path: parts.uri.path(),
        query: parts.uri.query().unwrap_or(""),
        headers: &parts.headers,
        host: parts.uri.authority().map_or("", |authority| authority.as_str()),
        signed: &signed.headers,
        hash,
    };
    let matches = |as_sent| {
        let request = hex(digest(&SHA256, &canonical.bytes(as_sent)).as_ref());
        let to_sign = format!("{ALGORITHM}\n{stamp}\n{}\n{request}", signed.scope);
        hmac::verify(key, to_sign.as_bytes(), &signed.signature).is_ok()
    };
    if matches(false) || matches(true) {
        Ok(())
    } else {
        Err(S3Error::signature_mismatch().with("AWSAccessKeyId", &signed.key_id))
    }
}

fn body_hash(headers: &HeaderMap, signing: Option<Box<ChunkSigning>>) -> S3Result<BodyHash> {
    let Some(hash) = headers.get("x-amz-content-sha256") else { return Ok(BodyHash::Unsigned) };
    match hash.to_str().unwrap_or("") {
        "UNSIGNED-PAYLOAD" => Ok(BodyHash::Unsigned),
        "STREAMING-UNSIGNED-PAYLOAD-TRAILER" => Ok(BodyHash::Chunked { signing: None, trailer: true }),
        "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" if signing.is_some() => Ok(BodyHash::Chunked { signing, trailer: false }),
        "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER" if signing.is_some() => Ok(BodyHash::Chunked { signing, trailer: true }),
        hash if super::credential::unhex(hash).is_some() => Ok(BodyHash::Sha256(hash.to_ascii_lowercase())),
        _ => Err(S3Error::invalid_argument(
            "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER, STREAMING-AWS4-HMAC-SHA256-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER, or a valid sha256 value.",
        )),
    }
}
