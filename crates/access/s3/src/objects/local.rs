//! Writes to stores that do not speak S3: files, and other clouds through the workers.

use std::sync::Arc;

use forebay_client::PutCondition;
use forebay_types::{ErrorKind, ObjectInfo, VersionTag};
use futures::TryStreamExt;
use http::StatusCode;
use http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use hyper::body::Incoming;

use crate::answer::{Answer, plain};
use crate::body::{Pieces, Upload, checksum_of};
use crate::context::Context;
use crate::dialect::{S3Error, S3Result, etag, header_value};
use crate::mounts::is_temporary;
use crate::request::Request;
use crate::rights::{Object, Writable};
use crate::temporary;

/// The version of objects that have no others.
pub(crate) const NULL_VERSION: &str = "null";

/// Conditions of a delete beside `If-Match`: nothing here can be asked for them.
const NOT_CHECKED: [&str; 4] =
    ["if-none-match", "if-unmodified-since", "x-amz-if-match-last-modified-time", "x-amz-if-match-size"];

/// Writes an object; answered when shared storage has it.
pub(crate) async fn put_local(context: &Arc<Context>, request: Request, object: &Writable, body: Incoming) -> S3Result<Answer> {
    let condition = condition(&request)?;
    let upload = Upload::begin(request.headers(), request.hash.clone(), body)?.checked(request.headers())?;
    let (fault, trailer) = (upload.fault.clone(), upload.trailer.clone());
    let info = match write(context, object, upload.pieces, upload.bytes, condition).await {
        Ok(info) => info,
        Err(error) => {
            return Err(match fault.take() {
                Some(fault) => fault,
                None => explain(context, object, error).await,
            });
        }
    };
    let mut answer = plain(StatusCode::OK);
    answer.headers_mut().insert(ETAG, header_value(&etag(&info.version.tag))?);
    answer.headers_mut().extend(checksum_of(request.headers(), trailer.as_ref()));
    Ok(answer)
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
    match (is_temporary(object.mount()), etag.filter(|tag| *tag != "*")) {
        (true, tag) => temporary::delete(context, object, tag.map(etag_named)).await,
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
    if is_temporary(object.mount()) {
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
        (Some(tag), None) => Ok(PutCondition::Version(etag_named(tag))),
        _ => Err(S3Error::not_implemented("this condition on a write")),
    }
}

fn etag_named(tag: &str) -> VersionTag {
    let bare = tag.trim_matches('"');
    VersionTag::etag(&if bare.starts_with('m') { bare.to_string() } else { format!("\"{bare}\"") })
}

/// Whether a write that was refused for its version was so because there is none.
pub(super) async fn explain(context: &Context, object: &Object, error: S3Error) -> S3Error {
    if is_temporary(object.mount()) {
        return error;
    }
    match context.client.stat(&object.path(), false).await {
        Err(missing) if missing.kind() == ErrorKind::NotFound && error.status == StatusCode::PRECONDITION_FAILED => {
            S3Error::no_such_key()
        }
        _ => error,
    }
}
