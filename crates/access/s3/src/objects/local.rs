//! Writes to stores that do not speak S3: files, and other clouds through the workers.

use std::sync::Arc;

use forebay_client::PutCondition;
use forebay_types::{ErrorKind, ObjectInfo};
use futures::TryStreamExt;
use http::header::{ETAG, HeaderName, IF_MATCH, IF_NONE_MATCH, LAST_MODIFIED};
use http::{HeaderValue, StatusCode};
use hyper::body::Incoming;

use crate::answer::{Answer, document, plain};
use crate::body::{Pieces, Upload, checksum_of};
use crate::context::Context;
use crate::dialect::{S3Error, S3Result, Xml, etag, header_value, http_date, version_shown};
use crate::request::Request;
use crate::rights::{Object, Writable};
use crate::temporary;

/// The version of objects that have no others.
pub(crate) const NULL_VERSION: &str = "null";

/// The ETag of what is empty, as S3 has it.
const NO_BYTES: &str = "\"d41d8cd98f00b204e9800998ecf8427e\"";

/// The header that says which attributes GetObjectAttributes is asked for, and what it may name.
const ATTRIBUTES_ASKED: &str = "x-amz-object-attributes";
const ATTRIBUTES: [&str; 5] = ["ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"];

/// Conditions of a delete beside `If-Match`: nothing here can be asked for them.
const NOT_CHECKED: [&str; 4] =
    ["if-none-match", "if-unmodified-since", "x-amz-if-match-last-modified-time", "x-amz-if-match-size"];

/// Writes an object; answered when shared storage has it.
pub(crate) async fn put_local(context: &Arc<Context>, request: Request, object: &Writable, body: Incoming) -> S3Result<Answer> {
    let condition = condition(&request)?;
    let upload = Upload::begin(request.headers(), request.hash.clone(), body)?.checked(request.headers())?;
    if upload.bytes == 0 && matches!(condition, PutCondition::Any) && is_folder(object) {
        return folder(&request, upload).await;
    }
    let (fault, trailer) = (upload.fault.clone(), upload.trailer.clone());
    let info = match write(context, object, upload.pieces, upload.bytes, condition).await {
        Ok(info) => info,
        Err(error) => {
            return Err(if let Some(fault) = fault.take() { fault } else { explain(context, &request, object, error).await });
        }
    };
    let mut answer = plain(StatusCode::OK);
    answer.headers_mut().insert(ETAG, header_value(&etag(&info.version.tag))?);
    answer.headers_mut().extend(checksum_of(request.headers(), trailer.as_ref()));
    Ok(answer)
}

/// Whether a key is what clients mark a folder with, on a mount that has nothing to write for it.
pub(super) fn is_folder(object: &Object) -> bool {
    let key = object.key.as_str();
    key.ends_with('/') && !key.starts_with('/') && !key.contains("//") && !object.mount().name.is_temporary()
}

/// Takes the empty object that clients write for a folder before they write into it: folders are there by themselves, as soon as
/// something is in them.
async fn folder(request: &Request, mut upload: Upload) -> S3Result<Answer> {
    let fault = upload.fault.clone();
    while upload.pieces.try_next().await.map_err(|_| fault.take().unwrap_or_else(S3Error::incomplete_body))?.is_some() {}
    let mut answer = plain(StatusCode::OK);
    answer.headers_mut().insert(ETAG, HeaderValue::from_static(NO_BYTES));
    answer.headers_mut().extend(checksum_of(request.headers(), upload.trailer.as_ref()));
    Ok(answer)
}

/// The tags of an object that is there: it can't have any.
pub(crate) async fn no_tags(context: &Context, object: &Object) -> S3Result<Answer> {
    find(context, object).await?;
    let mut xml = Xml::begin("Tagging", true);
    xml.text("TagSet", "");
    Ok(document(xml.end("Tagging")))
}

/// What GetObjectAttributes is asked for, of what HeadObject tells: parts and checksums are left out, as S3 leaves out what there is not.
pub(crate) async fn attributes(context: &Context, request: &Request, object: &Object) -> S3Result<Answer> {
    let names = request.headers().get_all(ATTRIBUTES_ASKED).iter().filter_map(|names| names.to_str().ok());
    let names: Vec<&str> = names.flat_map(|names| names.split(',')).map(str::trim).filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        return Err(S3Error::invalid_argument(
            "The x-amz-object-attributes header specifying the attributes to be retrieved is either missing or empty",
        ));
    }
    if names.iter().any(|name| !ATTRIBUTES.contains(name)) {
        return Err(S3Error::invalid_argument("Invalid attribute name specified."));
    }
    let info = find(context, object).await?;
    let told = [
        ("ETag", etag(&info.version.tag).trim_matches('"').to_string()),
        ("StorageClass", "STANDARD".to_string()),
        ("ObjectSize", info.version.size.to_string()),
    ];
    let mut xml = Xml::begin("GetObjectAttributesResponse", true);
    for (name, text) in told.iter().filter(|(name, _)| names.contains(name)) {
        xml.text(name, text);
    }
    let mut answer = document(xml.end("GetObjectAttributesResponse"));
    answer.headers_mut().insert(LAST_MODIFIED, header_value(&http_date(info.modified_ms))?);
    Ok(answer)
}

/// An object that is there. What clients mark a folder with never is.
async fn find(context: &Context, object: &Object) -> S3Result<ObjectInfo> {
    match object.mount().name.is_temporary() {
        _ if is_folder(object) => Err(S3Error::no_such_key()),
        true => Ok(temporary::open(context, object).await?.info),
        false => Ok(context.client.stat(&object.path(), false).await?.0),
    }
}

/// Deletes an object; one that is not there is no error.
pub(crate) async fn delete_local(context: &Arc<Context>, request: &Request, object: &Writable) -> S3Result<Answer> {
    let headers = request.headers();
    let other_version = request.query("versionId").is_some_and(|version| version != NULL_VERSION);
    if other_version || NOT_CHECKED.iter().any(|name| headers.contains_key(*name)) {
        return Err(delete_not_checked());
    }
    let tag = headers.get(IF_MATCH).map(|tag| tag.to_str().map_err(|_| S3Error::precondition_failed())).transpose()?;
    delete(context, object, tag).await?;
    Ok(plain(StatusCode::NO_CONTENT))
}

/// Deletes what there is under a key; with an ETag only what has it, which only temporary data can be asked for.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub(crate) async fn delete(context: &Context, object: &Writable, etag: Option<&str>) -> S3Result<()> {
    match (object.mount().name.is_temporary(), etag.filter(|tag| *tag != "*")) {
        (true, tag) => temporary::delete(context, object, tag.map(version_shown)).await,
        // None is ever written, and some clouds' clients can't name it.
        (false, None) if is_folder(object) => Ok(()),
        (false, None) => Ok(context.client.delete(&object.path()).await?),
        (false, Some(_)) => Err(delete_not_checked()),
    }
}

/// A condition that nobody looks at: nothing is deleted then.
pub(crate) fn delete_not_checked() -> S3Error {
    S3Error::not_implemented("this condition on a delete")
}

/// Writes `bytes` that come, in bounded memory. What ends early leaves nothing.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub(super) async fn write(
    context: &Context,
    object: &Writable,
    mut pieces: Pieces,
    bytes: u64,
    condition: PutCondition,
) -> S3Result<ObjectInfo> {
    if object.mount().name.is_temporary() {
        return temporary::write(context, object, pieces, bytes, condition).await;
    }
    let mut writer = context.client.writer(&object.path()).await?;
    while let Some(piece) = pieces.try_next().await.map_err(|_| S3Error::incomplete_body())? {
        writer.write(piece).await?;
    }
    Ok(writer.finish_if(condition).await?)
}

/// What must hold for a write.
pub(super) fn condition(request: &Request) -> S3Result<PutCondition> {
    match (request.header(IF_MATCH.as_str()), request.header(IF_NONE_MATCH.as_str())) {
        (None, None) => Ok(PutCondition::Any),
        (None, Some("*")) => Ok(PutCondition::Absent),
        (Some(tag), None) => Ok(PutCondition::Version(version_shown(tag))),
        _ => Err(S3Error::not_implemented("this condition on a write")),
    }
}

/// What a write was refused for that had a condition, with its name, which some clients tell "it is there" by.
pub(super) async fn explain(context: &Context, request: &Request, object: &Object, error: S3Error) -> S3Error {
    let has = |name: HeaderName| request.headers().contains_key(name);
    if error.status != StatusCode::PRECONDITION_FAILED || !(has(IF_MATCH) || has(IF_NONE_MATCH)) {
        return error;
    }
    if has(IF_NONE_MATCH) {
        return error.with("Condition", "If-None-Match");
    }
    if !object.mount().name.is_temporary()
        && let Err(missing) = context.client.stat(&object.path(), false).await
        && missing.kind() == ErrorKind::NotFound
    {
        return S3Error::no_such_key();
    }
    error.with("Condition", "If-Match")
}
