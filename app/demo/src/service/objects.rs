//! Requests for objects, whole, in ranges or several at once: from S3's words to the store and back.

use std::sync::Arc;

use futures::StreamExt;
use s3s::dto::*;
use s3s::{S3Result, s3_error};

use super::conditions::{ReadConditions, check_write, modified};
use super::refuse;
use super::stream::ObjectStream;
use crate::store::{Draft, Object, Store, StoreError};

pub(super) fn etag(object: &Object) -> Option<ETag> {
    Some(ETag::Strong(object.etag.clone()))
}

fn content_type(object: &Object) -> String {
    object.content_type.clone().unwrap_or_else(|| "binary/octet-stream".into())
}

pub(super) fn get(store: &Store, input: GetObjectInput) -> S3Result<GetObjectOutput> {
    let (object, opened) = store.open_object(&input.bucket, &input.key).map_err(refuse)?;
    let conditions = ReadConditions {
        if_match: input.if_match,
        if_none_match: input.if_none_match,
        if_modified_since: input.if_modified_since,
        if_unmodified_since: input.if_unmodified_since,
    };
    conditions.check(&object)?;
    let (range, content_range) = match input.range {
        None => (0..object.size, None),
        Some(range) => {
            // A range of an empty object, or the last 0 bytes, holds nothing.
            let range = range.check(object.size).ok().filter(|range| !range.is_empty());
            let range = range.ok_or_else(|| s3_error!(InvalidRange, "The requested range is not satisfiable"))?;
            let shown = format!("bytes {}-{}/{}", range.start, range.end - 1, object.size);
            (range, Some(shown))
        }
    };
    Ok(GetObjectOutput {
        accept_ranges: Some("bytes".into()),
        content_length: Some((range.end - range.start) as i64),
        content_range,
        content_type: Some(content_type(&object)),
        e_tag: etag(&object),
        last_modified: Some(modified(&object)),
        body: Some(StreamingBlob::new(ObjectStream::new(opened, range))),
        ..Default::default()
    })
}

pub(super) fn head(store: &Store, input: HeadObjectInput) -> S3Result<HeadObjectOutput> {
    let object = store.find(&input.bucket, &input.key).map_err(refuse)?;
    let conditions = ReadConditions {
        if_match: input.if_match,
        if_none_match: input.if_none_match,
        if_modified_since: input.if_modified_since,
        if_unmodified_since: input.if_unmodified_since,
    };
    conditions.check(&object)?;
    Ok(HeadObjectOutput {
        accept_ranges: Some("bytes".into()),
        content_length: Some(object.size as i64),
        content_type: Some(content_type(&object)),
        e_tag: etag(&object),
        last_modified: Some(modified(&object)),
        ..Default::default()
    })
}

/// Writes a request's body as it comes.
pub(super) async fn receive(mut draft: Draft, body: Option<StreamingBlob>, length: Option<i64>) -> S3Result<Draft> {
    if let Some(mut body) = body {
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(|error| s3_error!(IncompleteBody, "{error}"))?;
            draft.write(&piece).map_err(|error| refuse(StoreError::Io(error)))?;
        }
    }
    if length.is_some_and(|length| length as u64 != draft.size) {
        return Err(s3_error!(IncompleteBody));
    }
    Ok(draft)
}

pub(super) async fn put(store: &Store, input: PutObjectInput) -> S3Result<PutObjectOutput> {
    let draft = store.draft(&input.bucket).map_err(refuse)?;
    let draft = receive(draft, input.body, input.content_length).await?;
    let check = |there: Option<&Object>| check_write(input.if_match.as_ref(), input.if_none_match.as_ref(), there);
    let object = store.commit(draft, &input.bucket, &input.key, input.content_type, check).map_err(refuse)?;
    Ok(PutObjectOutput { e_tag: etag(&object), ..Default::default() })
}

pub(super) async fn copy(store: &Arc<Store>, input: CopyObjectInput) -> S3Result<CopyObjectOutput> {
    let CopySource::Bucket { bucket, key, .. } = &input.copy_source else { return Err(s3_error!(NotImplemented)) };
    let (source, opened) = store.open_object(bucket, key).map_err(refuse)?;
    let draft = store.draft(&input.bucket).map_err(refuse)?;
    let size = source.size;
    let copied = forebay_runtime::spawn_blocking(move || {
        let mut draft = draft;
        draft.copy(&opened, size).map(|()| draft)
    });
    let draft = copied.await.map_err(|error| s3_error!(InternalError, "{error}"))?.map_err(|error| refuse(error.into()))?;
    let content_type = input.content_type.or_else(|| source.content_type.clone());
    let object =
        store.commit_as(draft, source.etag.clone(), &input.bucket, &input.key, content_type, |_| Ok(())).map_err(refuse)?;
    let result = CopyObjectResult { e_tag: etag(&object), last_modified: Some(modified(&object)), ..Default::default() };
    Ok(CopyObjectOutput { copy_object_result: Some(result), ..Default::default() })
}

pub(super) fn delete_several(store: &Store, input: DeleteObjectsInput) -> S3Result<DeleteObjectsOutput> {
    let mut deleted = Vec::new();
    for object in input.delete.objects {
        store.delete(&input.bucket, &object.key).map_err(refuse)?;
        deleted.push(DeletedObject { key: Some(object.key), ..Default::default() });
    }
    let quiet = input.delete.quiet.unwrap_or(false);
    Ok(DeleteObjectsOutput { deleted: (!quiet).then_some(deleted), ..Default::default() })
}
