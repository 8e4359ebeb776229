//! Multipart uploads to S3, whose last request may say 200 and fail all the same.

use std::collections::BTreeMap;

use async_trait::async_trait;
use bytes::Bytes;
use forebay_types::{Error, ErrorKind, Key, ObjectInfo, Result};
use http::header::{CONTENT_TYPE, ETAG, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use parking_lot::Mutex;

use super::S3;
use super::call::{Call, Kind};
use super::refusal::refusal;
use super::xml;
use crate::backend::{Backend, Parts};
use crate::request::{Class, PutCondition};
use crate::retry::{Failure, Tries};
use crate::upload::Upload;

/// Of every part but the last: 10,000 of them make 160 GB.
const PART_BYTES: u64 = 16 << 20;

/// A multipart upload.
pub(super) struct S3Parts {
    s3: S3,
    key: Key,
    id: String,
    done: Mutex<BTreeMap<u32, (String, u64)>>,
}

impl S3Parts {
    pub(super) async fn begin(s3: S3, key: &Key) -> Result<Self> {
        let mut call = Call::object(Method::POST, Kind::Put, s3.bucket.full_key(key.as_str()), key.as_str());
        call.query = vec![("uploads", String::new())];
        let text = s3.call_text(&call).await?;
        let id = xml::field(&text, "UploadId").filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| Error::internal(format!("{}: the server gave the upload no id", s3.path(key.as_str()))))?;
        Ok(Self::of(s3, key, id))
    }

    /// One that is there already, of whose parts nothing is known.
    pub(super) fn of(s3: S3, key: &Key, id: String) -> Self {
        Self { s3, key: key.clone(), id, done: Mutex::new(BTreeMap::new()) }
    }

    fn call(&self, method: Method, kind: Kind) -> Call {
        let mut call = Call::object(method, kind, self.s3.bucket.full_key(self.key.as_str()), self.key.as_str());
        call.query = vec![("uploadId", self.id.clone())];
        call
    }

    /// The list of parts that the server wants, and the size that they make.
    fn manifest(&self, parts: u32) -> Result<(String, u64)> {
        let done = self.done.lock();
        let (mut list, mut size) = (String::from("<CompleteMultipartUpload>"), 0);
        for index in 0..parts {
            let Some((etag, bytes)) = done.get(&index) else {
                return Err(Error::invalid(format!(
                    "{}: part {index} of {parts} was not written",
                    self.s3.path(self.key.as_str())
                )));
            };
            let etag = etag.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
            list.push_str(&format!("<Part><PartNumber>{}</PartNumber><ETag>{etag}</ETag></Part>", index + 1));
            size += bytes;
        }
        list.push_str("</CompleteMultipartUpload>");
        Ok((list, size))
    }

    /// One try; a server that began its answer with 200 may still say that it failed.
    async fn attempt_commit(&self, call: &Call) -> Result<(Vec<u8>, HeaderMap), Failure> {
        let (text, headers) = self.s3.attempt_text(call).await?;
        if let Some(code) = xml::Refusal::parse(&text).code {
            let status = match code.as_str() {
                "PreconditionFailed" => StatusCode::PRECONDITION_FAILED,
                "NoSuchUpload" => StatusCode::NOT_FOUND,
                "AccessDenied" => StatusCode::FORBIDDEN,
                "InternalError" | "SlowDown" | "ServiceUnavailable" => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::BAD_REQUEST,
            };
            return Err(refusal(&self.s3, call, status, &headers, &text));
        }
        Ok((text, headers))
    }
}

#[async_trait]
impl Parts for S3Parts {
    fn id(&self) -> Option<&str> {
        Some(&self.id)
    }

    fn part_bytes(&self) -> u64 {
        PART_BYTES
    }

    async fn put(&self, index: u32, payload: Vec<Bytes>) -> Result<()> {
        let path = self.s3.path(self.key.as_str());
        if index >= Upload::PARTS_MAX {
            let bytes_max = forebay_types::format_bytes(PART_BYTES * u64::from(Upload::PARTS_MAX));
            return Err(Error::invalid(format!("{path}: an object of more than {bytes_max} can't be written: split it")));
        }
        let mut call = self.call(Method::PUT, Kind::Put);
        call.query.insert(0, ("partNumber", (index + 1).to_string()));
        call.payload = payload;
        let bytes = call.payload_bytes();
        let answer = self.s3.call(&call, Class::Demand).await?;
        let etag = answer.headers().get(ETAG).and_then(|etag| etag.to_str().ok());
        let etag = etag.ok_or_else(|| Error::internal(format!("{path}: the server gave part {index} no ETag")))?;
        self.done.lock().insert(index, (etag.into(), bytes));
        Ok(())
    }

    async fn commit(&self, parts: u32, condition: &PutCondition) -> Result<ObjectInfo> {
        if parts == 0 {
            // S3 makes no object of no parts.
            let info = self.s3.put_object(&self.key, Vec::new(), condition).await?;
            self.abort().await?;
            return Ok(info);
        }
        let (list, size) = self.manifest(parts)?;
        let mut call = self.call(Method::POST, Kind::Put);
        call.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
        call.payload = vec![list.into()];
        self.s3.condition(&mut call, condition)?;
        let mut tries = Tries::new(self.s3.common.policy, &self.s3.common.tally);
        loop {
            match self.attempt_commit(&call).await {
                Ok((text, mut headers)) => {
                    if let Some(etag) = xml::field(&text, "ETag").and_then(|etag| HeaderValue::from_str(&quoted(&etag)).ok()) {
                        headers.insert(ETAG, etag);
                    }
                    return self.s3.written(&self.key, &headers, size).await;
                }
                // An earlier try whose answer was lost may have done it: then the upload is gone and the object is there.
                Err(failure) if tries.is_again() && failure.error.kind() == ErrorKind::NotFound => {
                    return match self.s3.head(&self.key).await.map(|(info, _)| info) {
                        Ok(info) if info.version.size == size => Ok(info),
                        // Nobody knows whether it is.
                        Err(error) if error.kind() == ErrorKind::Retry => Err(error),
                        _ => Err(failure.error.in_vain()),
                    };
                }
                Err(failure) => tries.pause(failure).await?,
            }
        }
    }

    async fn abort(&self) -> Result<()> {
        match self.s3.call(&self.call(Method::DELETE, Kind::Delete), Class::Demand).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            other => other.map(|_| ()),
        }
    }
}

/// Some servers leave the quotes out in XML that they send in headers.
fn quoted(etag: &str) -> String {
    if etag.ends_with('"') { etag.into() } else { format!("\"{etag}\"") }
}
