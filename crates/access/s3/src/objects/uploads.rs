//! Uploads in parts to mounts whose store has no such thing, as S3 has them.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_types::{Key, Mount, MountId};
use http::StatusCode;
use http::header::ETAG;
use hyper::body::Incoming;

use super::local;
use crate::answer::{Answer, document, plain};
use crate::auth::Caller;
use crate::body::{Fault, Pieces, Upload, checksum_of};
use crate::context::Context;
use crate::dialect::{Query, S3Error, S3Result, Visit, Xml, etag, header_value, iso_date, read_xml};
use crate::drafts::{Part, join};
use crate::request::Request;
use crate::rights::{Object, Writable};

/// Smallest part that is not the last, as in S3.
const PART_BYTES_MIN: u64 = 5 << 20;
/// Parts of an upload, as in S3.
const PARTS_MAX: u32 = 10_000;
/// Longest list of them.
const DOCUMENT_BYTES_MAX: u64 = 2 << 20;

/// CreateMultipartUpload.
pub(crate) fn begin(context: &Context, object: &Writable, caller: &Caller) -> S3Result<Answer> {
    let id = context.drafts.begin(caller.to_string(), (object.mount().id, object.key.clone()))?;
    let mut xml = named("InitiateMultipartUploadResult", object);
    xml.text("UploadId", &id);
    Ok(document(xml.end("InitiateMultipartUploadResult")))
}

/// UploadPart.
pub(crate) async fn put_part(context: &Context, object: &Writable, request: Request, body: Incoming) -> S3Result<Answer> {
    let (id, _) = named_part(&request)?;
    context.drafts.check(place(object), id)?;
    let upload = Upload::begin(request.headers(), request.hash.clone(), body)?.checked(request.headers())?;
    let (fault, trailer) = (upload.fault.clone(), upload.trailer.clone());
    let part = take_part(context, object, &request, (upload.pieces, upload.bytes), &fault).await?;
    let mut answer = plain(StatusCode::OK);
    answer.headers_mut().insert(ETAG, header_value(&part.etag)?);
    answer.headers_mut().extend(checksum_of(request.headers(), trailer.as_ref()));
    Ok(answer)
}

/// Takes in the part that a request names, of so many bytes that come.
pub(super) async fn take_part(
    context: &Context,
    object: &Writable,
    request: &Request,
    (pieces, bytes): (Pieces, u64),
    fault: &Fault,
) -> S3Result<Part> {
    let (id, number) = named_part(request)?;
    let room = context.drafts.room(place(object), id, number, bytes)?;
    let part = Part::receive(pieces, bytes, room).await.map_err(|error| fault.take().unwrap_or(error))?;
    context.drafts.put(place(object), id, number, part.clone())?;
    Ok(part)
}

/// The upload and the number that a part is named by.
fn named_part(request: &Request) -> S3Result<(&str, u32)> {
    let number: u32 = request.query("partNumber").unwrap_or("").parse().unwrap_or(0);
    match (1..=PARTS_MAX).contains(&number) {
        true => Ok((request.query("uploadId").unwrap_or(""), number)),
        false => Err(S3Error::invalid_argument("Part number must be an integer between 1 and 10000, inclusive")),
    }
}

/// CompleteMultipartUpload.
pub(crate) async fn complete(context: &Arc<Context>, object: &Writable, request: Request, body: Incoming) -> S3Result<Answer> {
    let id = request.query("uploadId").unwrap_or("");
    let text = Upload::begin(request.headers(), request.hash.clone(), body)?;
    let text = text.collect(&context.room, DOCUMENT_BYTES_MAX).await?;
    let mut asked = Named::default();
    read_xml(&text, &mut asked)?;
    let found = context.drafts.complete(place(object), id, |parts| chosen(&asked.parts, parts));
    let (parts, completing) = match found {
        Err(error) if error.status == StatusCode::NOT_FOUND => {
            // It may be done, and the answer was lost.
            let done = context.drafts.completed(place(object), id, &asked.parts);
            return done.map(|etag| completed(&request, object, &etag)).ok_or(error);
        }
        found => found?,
    };
    let (fault, bytes) = (Fault::default(), parts.iter().map(|part| part.bytes).sum());
    let pieces = join(parts, fault.clone());
    let written = local::write(context, object, pieces, bytes, local::condition(&request)?).await;
    let info = match written {
        Ok(info) => info,
        Err(error) => {
            return Err(match fault.take() {
                Some(fault) => fault,
                None => local::explain(context, &request, object, error).await,
            });
        }
    };
    let etag = etag(&info.version.tag);
    completing.done(&asked.parts, &etag);
    Ok(completed(&request, object, &etag))
}

/// What who completes an upload is told.
fn completed(request: &Request, object: &Object, etag: &str) -> Answer {
    let mut xml = Xml::begin("CompleteMultipartUploadResult", true);
    let host = request.header("host").unwrap_or("localhost");
    xml.text("Location", &format!("http://{host}/{}/{}", object.mount().name, object.key));
    xml.text("Bucket", object.mount().name.as_str());
    xml.text("Key", object.key.as_str());
    xml.text("ETag", etag);
    document(xml.end("CompleteMultipartUploadResult"))
}

/// AbortMultipartUpload.
pub(crate) fn abort(context: &Context, object: &Writable, query: &Query) -> S3Result<Answer> {
    context.drafts.abort(place(object), query.get("uploadId").unwrap_or(""))?;
    Ok(plain(StatusCode::NO_CONTENT))
}

/// ListParts.
pub(crate) fn list_parts(context: &Context, object: &Object, query: &Query) -> S3Result<Answer> {
    let id = query.get("uploadId").unwrap_or("");
    let after: u32 = query.get("part-number-marker").and_then(|text| text.parse().ok()).unwrap_or(0);
    let limit: usize = query.get("max-parts").and_then(|text| text.parse().ok()).unwrap_or(1000).min(1000);
    let (parts, more) = context.drafts.parts(place(object), id, after, limit)?;
    let mut xml = named("ListPartsResult", object);
    xml.text("UploadId", id);
    xml.text("PartNumberMarker", &after.to_string());
    xml.text("NextPartNumberMarker", &parts.last().map_or(0, |(number, _)| *number).to_string());
    xml.text("MaxParts", &limit.to_string());
    xml.text("IsTruncated", if more { "true" } else { "false" });
    for (number, part) in parts {
        xml.open("Part");
        xml.text("PartNumber", &number.to_string());
        xml.text("LastModified", &iso_date(part.modified_ms));
        xml.text("ETag", &part.etag);
        xml.text("Size", &part.bytes.to_string());
        xml.close("Part");
    }
    Ok(document(xml.end("ListPartsResult")))
}

/// ListMultipartUploads.
pub(crate) fn list(context: &Context, mount: &Mount, query: &Query) -> S3Result<Answer> {
    let prefix = query.get("prefix").unwrap_or("");
    let mut xml = Xml::begin("ListMultipartUploadsResult", true);
    xml.text("Bucket", mount.name.as_str());
    xml.text("KeyMarker", "");
    xml.text("UploadIdMarker", "");
    xml.text("Prefix", prefix);
    xml.text("MaxUploads", "1000");
    xml.text("IsTruncated", "false");
    for draft in context.drafts.of(mount.id, prefix) {
        xml.open("Upload");
        xml.text("Key", draft.key.as_str());
        xml.text("UploadId", &draft.id);
        xml.text("Initiated", &iso_date(draft.begun_ms));
        xml.close("Upload");
    }
    Ok(document(xml.end("ListMultipartUploadsResult")))
}

/// What a draft is of.
fn place(object: &Object) -> (MountId, &Key) {
    (object.mount().id, &object.key)
}

fn named(root: &str, object: &Object) -> Xml {
    let mut xml = Xml::begin(root, true);
    xml.text("Bucket", object.mount().name.as_str());
    xml.text("Key", object.key.as_str());
    xml
}

/// The parts that the client names, in its order, if they are the ones that are there.
fn chosen(named: &[(u32, String)], parts: &BTreeMap<u32, Part>) -> S3Result<Vec<Part>> {
    if named.is_empty() {
        return Err(S3Error::malformed_xml());
    }
    if named.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
        return Err(S3Error::invalid_part_order());
    }
    let mut chosen = Vec::with_capacity(named.len());
    for (at, (number, tag)) in named.iter().enumerate() {
        let is_it = |part: &&Part| part.etag.trim_matches('"') == tag.trim_matches('"');
        let part = parts.get(number).filter(is_it).ok_or_else(S3Error::invalid_part)?;
        if at + 1 < named.len() && part.bytes < PART_BYTES_MIN {
            return Err(S3Error::entity_too_small());
        }
        chosen.push(part.clone());
    }
    assert_eq!(chosen.len(), named.len(), "each part that was named is there");
    Ok(chosen)
}

/// What a CompleteMultipartUpload names.
#[derive(Default)]
struct Named {
    parts: Vec<(u32, String)>,
    number: Option<u32>,
    tag: Option<String>,
}

impl Visit for Named {
    fn text(&mut self, path: &[String], text: String) -> S3Result<()> {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        match names[..] {
            ["CompleteMultipartUpload", "Part", "PartNumber"] => {
                self.number = Some(text.trim().parse().map_err(|_| S3Error::malformed_xml())?);
            }
            ["CompleteMultipartUpload", "Part", "ETag"] => self.tag = Some(text.trim().into()),
            ["CompleteMultipartUpload", "Part"] => match (self.number.take(), self.tag.take()) {
                (Some(number), Some(tag)) if self.parts.len() < PARTS_MAX as usize => self.parts.push((number, tag)),
                _ => return Err(S3Error::malformed_xml()),
            },
            _ => {}
        }
        Ok(())
    }
}
