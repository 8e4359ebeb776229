//! What a request is refused with, in S3's words.

use std::ops::Deref;

use bytes::Bytes;
use forebay_types::{Error, ErrorKind};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::xml::Xml;

/// What a request is refused with, as S3 says it.
#[derive(Clone, Debug)]
pub(crate) struct S3Error(Box<Refusal>);

#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) headers: HeaderMap,
    extra: Vec<(&'static str, String)>,
}

impl Deref for S3Error {
    type Target = Refusal;

    fn deref(&self) -> &Refusal {
        &self.0
    }
}

pub(crate) type S3Result<T> = Result<T, S3Error>;

macro_rules! codes {
    ($($name:ident $status:literal $code:literal $message:literal),* $(,)?) => {$(
        pub(crate) fn $name() -> Self {
            Self::new(StatusCode::from_u16($status).expect("a status"), $code, $message)
        }
    )*};
}

impl S3Error {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Refusal { status, code, message: message.into(), headers: HeaderMap::new(), extra: Vec::new() }))
    }

    codes! {
        access_denied 403 "AccessDenied" "Access Denied",
        bucket_owned 409 "BucketAlreadyOwnedByYou" "Your previous request to create the named bucket succeeded and you already own it.",
        content_sha256_mismatch 400 "XAmzContentSHA256Mismatch" "The provided 'x-amz-content-sha256' header does not match what was computed.",
        entity_too_large 400 "EntityTooLarge" "Your proposed upload exceeds the maximum allowed object size.",
        entity_too_small 400 "EntityTooSmall" "Your proposed upload is smaller than the minimum allowed object size.",
        incomplete_body 400 "IncompleteBody" "You did not provide the number of bytes specified by the Content-Length HTTP header.",
        internal 500 "InternalError" "We encountered an internal error. Please try again.",
        invalid_access_key 403 "InvalidAccessKeyId" "The AWS Access Key Id you provided does not exist in our records.",
        invalid_part 400 "InvalidPart" "One or more of the specified parts could not be found. The part may not have been uploaded, or the specified entity tag may not match the part's entity tag.",
        invalid_part_order 400 "InvalidPartOrder" "The list of parts was not in ascending order. The parts list must be specified in order by part number.",
        invalid_range 416 "InvalidRange" "The requested range is not satisfiable",
        invalid_uri 400 "InvalidURI" "Couldn't parse the specified URI.",
        key_too_long 400 "KeyTooLongError" "Your key is too long",
        malformed_xml 400 "MalformedXML" "The XML you provided was not well-formed or did not validate against our published schema",
        method_not_allowed 405 "MethodNotAllowed" "The specified method is not allowed against this resource.",
        missing_length 411 "MissingContentLength" "You must provide the Content-Length HTTP header.",
        no_such_bucket 404 "NoSuchBucket" "The specified bucket does not exist",
        no_such_key 404 "NoSuchKey" "The specified key does not exist.",
        no_such_upload 404 "NoSuchUpload" "The specified multipart upload does not exist. The upload ID might be invalid, or the multipart upload might have been aborted or completed.",
        not_modified 304 "NotModified" "Not Modified",
        operation_aborted 409 "OperationAborted" "A conflicting operation is currently in progress against this resource. Please try again.",
        precondition_failed 412 "PreconditionFailed" "At least one of the pre-conditions you specified did not hold",
        request_timeout 400 "RequestTimeout" "Your socket connection to the server was not read from or written to within the timeout period.",
        signature_mismatch 403 "SignatureDoesNotMatch" "The request signature we calculated does not match the signature you provided. Check your key and signing method.",
        slow_down 503 "SlowDown" "Please reduce your request rate.",
        time_too_skewed 403 "RequestTimeTooSkewed" "The difference between the request time and the server's time is too large.",
    }

    pub(crate) fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "InvalidArgument", message)
    }

    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "InvalidRequest", message)
    }

    pub(crate) fn not_implemented(what: &str) -> Self {
        let message = format!("A header or query you provided implies functionality that is not implemented: {what}");
        Self::new(StatusCode::NOT_IMPLEMENTED, "NotImplemented", message)
    }

    /// The same refusal, in other words.
    pub(crate) fn saying(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.extra.push((name, value.into()));
        self
    }

    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.insert(name, value);
        self
    }

    /// Whether the answer may have a body at all.
    pub(crate) fn has_body(&self) -> bool {
        self.status != StatusCode::NOT_MODIFIED
    }

    pub(crate) fn body(&self, resource: &str, request_id: &str) -> Bytes {
        let mut xml = Xml::begin("Error", false);
        xml.text("Code", self.code);
        xml.text("Message", &self.message);
        for (name, value) in &self.extra {
            xml.text(name, value);
        }
        xml.text("Resource", resource);
        xml.text("RequestId", request_id);
        xml.end("Error")
    }
}

/// What the client's errors are in S3's words. Messages of the inside stay inside, unless they tell the caller what to do.
impl From<Error> for S3Error {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound => Self::no_such_key(),
            ErrorKind::Denied => Self::access_denied(),
            ErrorKind::Conflict => Self::precondition_failed(),
            ErrorKind::Invalid => Self::invalid_request(error.message()),
            ErrorKind::Retry | ErrorKind::Closed | ErrorKind::DataLost => {
                tracing::warn!(%error, "request not served");
                Self::slow_down()
            }
            ErrorKind::Corrupt | ErrorKind::Internal => {
                tracing::error!(%error, "request failed");
                Self::internal()
            }
        }
    }
}
