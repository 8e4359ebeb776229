//! Deleting many objects with one request.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use forebay_shared_storage::PayloadHash;
use futures::StreamExt;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use hyper::body::Incoming;
use ring::digest::{SHA256, digest};

use crate::answer::{Answer, document};
use crate::body::{Upload, body_of};
use crate::context::Context;
use crate::dialect::{S3Error, S3Result, Visit, Xml, key_of, read_xml};
use crate::mounts::is_local;
use crate::objects::{NULL_VERSION, delete, delete_not_checked};
use crate::request::Request;
use crate::rights::{MayWrite, Writable};
use crate::store::{self, Changing, Sending, collect};

/// Objects that one request may delete, as in S3.
const OBJECTS_MAX: usize = 1000;
/// Longest list of them: keys of 1 KiB, escaped.
const DOCUMENT_BYTES_MAX: u64 = 8 << 20;
/// Deletes under way at once where the store has no such request.
const AT_ONCE: usize = 8;

/// Deletes up to 1,000 objects.
pub(crate) async fn delete_many(context: &Arc<Context>, request: Request, may: &MayWrite, body: Incoming) -> S3Result<Answer> {
    let text = Upload::begin(request.headers(), request.hash.clone(), body)?.checked(request.headers())?;
    let text = text.collect(&context.room, DOCUMENT_BYTES_MAX).await?;
    let mut asked = Asked::default();
    read_xml(&text, &mut asked)?;
    if asked.objects.is_empty() || asked.objects.len() > OBJECTS_MAX {
        return Err(S3Error::malformed_xml());
    }
    let mut done = Done { quiet: asked.quiet, deleted: Vec::new(), failed: Vec::new() };
    let mut good = Vec::with_capacity(asked.objects.len());
    for object in asked.objects {
        match key_of(&object.key) {
            Ok(key) if !object.key.is_empty() => good.push((may.object(key), object)),
            Ok(_) => return Err(S3Error::malformed_xml()),
            Err(error) => done.failed.push((object.key, error.code.into(), error.message.clone())),
        }
    }
    if is_local(may.mount()) {
        one_by_one(context, good, &mut done).await;
    } else if !good.is_empty() {
        let changing: Vec<Changing> = good.iter().map(|(object, _)| Changing::begin(&context.client, object.path())).collect();
        let deleted = at_store(context, &request, may, &good, &mut done).await;
        let told = futures::stream::iter(changing).map(Changing::end).buffer_unordered(32);
        let told: Vec<S3Result<()>> = told.collect().await;
        deleted?;
        told.into_iter().collect::<S3Result<()>>()?;
    }
    Ok(document(done.xml()))
}

async fn one_by_one(context: &Arc<Context>, objects: Vec<(Writable, Wanted)>, done: &mut Done) {
    let count = objects.len();
    let deletes = futures::stream::iter(objects).map(|(object, wanted)| async move {
        let deleted = match wanted.etag() {
            Ok(etag) => delete(context, &object, etag).await,
            Err(error) => Err(error),
        };
        (object.key.clone(), deleted)
    });
    let mut deletes = deletes.buffered(AT_ONCE);
    let wanted = done.deleted.len() + done.failed.len() + count;
    while let Some((key, deleted)) = deletes.next().await {
        let key = key.as_str().to_string();
        match deleted {
            Ok(()) => done.deleted.push(Deleted { key, ..Default::default() }),
            Err(error) => {
                done.failed.push((key, error.code.into(), error.message.clone()));
            }
        }
    }
    assert_eq!(done.deleted.len() + done.failed.len(), wanted, "each object that was named is answered for");
}

/// The store deletes them, under its own keys.
async fn at_store(
    context: &Context,
    request: &Request,
    may: &MayWrite,
    objects: &[(Writable, Wanted)],
    done: &mut Done,
) -> S3Result<()> {
    let prefix = store::place(&context.client.storage(may.mount()).await?)?.prefix;
    let mut xml = Xml::begin("Delete", true);
    for (object, wanted) in objects {
        xml.open("Object");
        xml.text("Key", &format!("{prefix}{}", object.key));
        for (name, value) in &wanted.conditions {
            xml.text(name, value);
        }
        xml.close("Object");
    }
    let text = xml.end("Delete");
    let sha256 = digest(&SHA256, &text);
    let hex = forebay_types::hex(sha256.as_ref());
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_LENGTH, text.len().into());
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    // Stores want one checksum or another of this document.
    let checksum = HeaderValue::from_str(&STANDARD.encode(sha256)).map_err(|_| S3Error::internal())?;
    headers.insert("x-amz-checksum-sha256", checksum);
    headers.insert("x-amz-sdk-checksum-algorithm", HeaderValue::from_static("SHA256"));
    for name in ["x-amz-bypass-governance-retention", "x-amz-mfa"] {
        if let Some(value) = request.headers().get(name) {
            headers.insert(name, value.clone());
        }
    }
    let query = vec![("delete".to_string(), String::new())];
    let (hash, body) = (PayloadHash::Sha256(hex), Some(body_of(text)));
    let sending = Sending { key: None, query, headers, hash, body };
    let forwarded = store::write(context, may, Method::POST, sending).await?;
    let (parts, stream) = forwarded.into_parts();
    let text = collect(stream).await?;
    if !parts.status.is_success() {
        tracing::warn!(status = parts.status.as_u16(), "shared storage refuses to delete several objects");
        return Err(refused(parts.status));
    }
    let mut answer = Answered { prefix: &prefix, done, deleted: Deleted::default(), failed: Default::default() };
    read_xml(&text, &mut answer).map_err(|_| S3Error::internal())
}

/// What a store's refusal of all of them is here: what is refused again whenever it is asked is not to be asked again.
fn refused(status: StatusCode) -> S3Error {
    let passing = [StatusCode::REQUEST_TIMEOUT, StatusCode::CONFLICT, StatusCode::TOO_MANY_REQUESTS];
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => S3Error::access_denied(),
        status if status == StatusCode::NOT_IMPLEMENTED || status.is_client_error() && !passing.contains(&status) => {
            S3Error::invalid_request("Shared storage refuses this list of objects to delete: delete them one by one.")
        }
        _ => S3Error::slow_down(),
    }
}

/// What a client wants deleted.
#[derive(Default)]
struct Asked {
    quiet: bool,
    objects: Vec<Wanted>,
    next: Wanted,
}

#[derive(Clone, Default)]
struct Wanted {
    key: String,
    /// Its version, or what must hold for it.
    conditions: Vec<(&'static str, String)>,
}

impl Wanted {
    /// The ETag that it is to have. Other conditions are for stores that know them.
    fn etag(&self) -> S3Result<Option<&str>> {
        let mut etag = None;
        for (name, value) in &self.conditions {
            match *name {
                "ETag" => etag = Some(value.trim()),
                // Objects have this one only.
                "VersionId" if value.trim() == NULL_VERSION => {}
                _ => return Err(delete_not_checked()),
            }
        }
        Ok(etag)
    }
}

impl Visit for Asked {
    fn text(&mut self, path: &[String], text: String) -> S3Result<()> {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        match names[..] {
            ["Delete", "Quiet"] => self.quiet = text.trim() == "true",
            ["Delete", "Object", "Key"] => self.next.key = text,
            ["Delete", "Object", "VersionId"] => self.next.conditions.push(("VersionId", text)),
            ["Delete", "Object", "ETag"] => self.next.conditions.push(("ETag", text)),
            ["Delete", "Object", "LastModifiedTime"] => self.next.conditions.push(("LastModifiedTime", text)),
            ["Delete", "Object", "Size"] => self.next.conditions.push(("Size", text)),
            ["Delete", "Object"] => {
                self.objects.push(std::mem::take(&mut self.next));
                if self.objects.len() > OBJECTS_MAX {
                    return Err(S3Error::malformed_xml());
                }
            }
            ["Delete"] => {}
            [root, ..] if root != "Delete" => return Err(S3Error::malformed_xml()),
            _ => {}
        }
        Ok(())
    }
}

/// What became of it.
struct Done {
    quiet: bool,
    deleted: Vec<Deleted>,
    failed: Vec<(String, String, String)>,
}

#[derive(Default)]
struct Deleted {
    key: String,
    versions: Vec<(&'static str, String)>,
}

impl Done {
    fn xml(&self) -> Bytes {
        let mut xml = Xml::begin("DeleteResult", true);
        for deleted in self.deleted.iter().filter(|_| !self.quiet) {
            xml.open("Deleted");
            xml.text("Key", &deleted.key);
            for (name, value) in &deleted.versions {
                xml.text(name, value);
            }
            xml.close("Deleted");
        }
        for (key, code, message) in &self.failed {
            xml.open("Error");
            xml.text("Key", key);
            xml.text("Code", code);
            xml.text("Message", message);
            xml.close("Error");
        }
        xml.end("DeleteResult")
    }
}

/// The store's answer.
struct Answered<'a> {
    prefix: &'a str,
    done: &'a mut Done,
    deleted: Deleted,
    failed: (String, String, String),
}

impl Visit for Answered<'_> {
    fn text(&mut self, path: &[String], text: String) -> S3Result<()> {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        let own = |text: &str| text.strip_prefix(self.prefix).unwrap_or(text).to_string();
        match names[..] {
            [_, "Deleted", "Key"] => self.deleted.key = own(&text),
            [_, "Deleted", "VersionId"] => self.deleted.versions.push(("VersionId", text)),
            [_, "Deleted", "DeleteMarker"] => self.deleted.versions.push(("DeleteMarker", text)),
            [_, "Deleted", "DeleteMarkerVersionId"] => self.deleted.versions.push(("DeleteMarkerVersionId", text)),
            [_, "Deleted"] => self.done.deleted.push(std::mem::take(&mut self.deleted)),
            [_, "Error", "Key"] => self.failed.0 = own(&text),
            [_, "Error", "Code"] => self.failed.1 = text,
            [_, "Error", "Message"] => self.failed.2 = text,
            [_, "Error"] => self.done.failed.push(std::mem::take(&mut self.failed)),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_for_good_is_not_to_be_asked_again() {
        let said = |status| refused(StatusCode::from_u16(status).unwrap()).code;
        for (status, code) in [
            (400, "InvalidRequest"),
            (401, "AccessDenied"),
            (403, "AccessDenied"),
            (404, "InvalidRequest"),
            (409, "SlowDown"),
            (429, "SlowDown"),
            (500, "SlowDown"),
            (501, "InvalidRequest"),
            (503, "SlowDown"),
        ] {
            assert_eq!(said(status), code, "{status}");
        }
    }
}
