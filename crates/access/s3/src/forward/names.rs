//! A store's answer in this side's names.

use std::cell::Cell;

use bytes::Bytes;
use forebay_shared_storage::{Forwarded, Place};
use forebay_types::{Key, Mount};
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, DATE, SERVER, TRANSFER_ENCODING};
use http::{Method, StatusCode};

use crate::answer::{Answer, AnswerBody};
use crate::dialect::{S3Error, S3Result, rewrite_xml, show_key};
use crate::request::{Request, SubResource};
use crate::store::collect;

/// The names of both sides.
pub(super) struct Names<'a> {
    pub(super) request: &'a Request,
    pub(super) sub: &'a SubResource,
    pub(super) mount: &'a Mount,
    pub(super) place: Place,
}

impl Names<'_> {
    pub(super) async fn answer(&self, forwarded: Forwarded) -> S3Result<Answer> {
        let (parts, stream) = forwarded.into_parts();
        let mut headers = parts.headers;
        for name in [CONNECTION, DATE, SERVER, TRANSFER_ENCODING] {
            headers.remove(name);
        }
        let is_xml = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).is_some_and(|kind| kind.contains("xml"));
        // Bytes of an object, which may be XML as well.
        let is_object = self.request.parts.method == Method::GET && self.request.target.key.is_some() && self.sub.name.is_empty();
        let is_head = self.request.parts.method == Method::HEAD;
        let body = if is_head || parts.status == StatusCode::NO_CONTENT || parts.status == StatusCode::NOT_MODIFIED {
            AnswerBody::empty()
        } else if parts.status.is_success() && (!is_xml || is_object) {
            let bytes = headers.get(CONTENT_LENGTH).and_then(|bytes| bytes.to_str().ok()?.parse().ok());
            AnswerBody::stream(Bytes::new(), stream, bytes)
        } else {
            headers.remove(CONTENT_LENGTH);
            let document = collect(stream).await?;
            if matches!(parts.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) && !is_plain_denial(&document) {
                // It is about this side's credentials, which are nobody else's business.
                tracing::warn!(mount = %self.mount.name, "shared storage does not take the mount's credentials");
                return Err(S3Error::access_denied());
            }
            AnswerBody::of(self.renamed(&document)?)
        };
        let mut answer = Answer::new(body);
        *answer.status_mut() = parts.status;
        *answer.headers_mut() = headers;
        Ok(answer)
    }

    /// A store's document with this side's names. One that is about other keys than the mount's, or can't be read, stays here.
    fn renamed(&self, document: &Bytes) -> S3Result<Bytes> {
        if document.is_empty() {
            return Ok(Bytes::new());
        }
        let host = self.request.header("host").unwrap_or("localhost");
        let encoded = show_key(&self.place.prefix, true);
        let strange = Cell::new(false);
        let own = |key: &str| match key.strip_prefix(&self.place.prefix).or_else(|| key.strip_prefix(&encoded)) {
            Some(own) => own.to_string(),
            None => {
                strange.set(strange.get() || !key.is_empty());
                String::new()
            }
        };
        let has_keys = ["uploadId", "uploads", "versions"].contains(&self.sub.name);
        let renamed = rewrite_xml(document, |path, text| {
            let names: Vec<&str> = path.iter().map(String::as_str).collect();
            match names[..] {
                // What a store answers that does not know what it was asked for.
                ["ListBucketResult", ..] => {
                    strange.set(true);
                    text
                }
                ["Error", "Key"] => text.strip_prefix(&self.place.prefix).unwrap_or_default().into(),
                ["Error", "Resource"] => self.request.parts.uri.path().into(),
                [.., "Bucket" | "BucketName" | "Name"] if text == self.place.bucket => self.mount.name.as_str().into(),
                [.., "Key" | "Prefix" | "KeyMarker" | "NextKeyMarker"] if has_keys => own(&text),
                [_, "Location"] if text.contains("://") => {
                    let key = self.request.target.key.as_ref().map_or("", Key::as_str);
                    format!("http://{host}/{}/{key}", self.mount.name)
                }
                _ => text,
            }
        });
        match renamed {
            Some(renamed) if !strange.get() => Ok(renamed),
            _ => {
                tracing::warn!(mount = %self.mount.name, asked = self.sub.name, "shared storage answers something else");
                Err(S3Error::not_implemented(&format!("{} at this mount's shared storage", self.sub.name)))
            }
        }
    }
}

/// Whether a refusal says no more than that the object may not be reached.
fn is_plain_denial(document: &[u8]) -> bool {
    let text = String::from_utf8_lossy(document);
    ["AccessDenied", "InvalidObjectState"].iter().any(|code| text.contains(&format!("<Code>{code}</Code>")))
}
