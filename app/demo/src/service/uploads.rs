//! Requests of multipart uploads: from S3's words to the store and back.

use std::sync::Arc;

use s3s::dto::*;
use s3s::{S3Result, s3_error};

use super::conditions::check_write;
use super::objects::{etag, receive};
use super::refuse;
use crate::store::{Store, StoreError};

pub(super) fn create(store: &Store, input: CreateMultipartUploadInput) -> S3Result<CreateMultipartUploadOutput> {
    let id = store.begin_upload(&input.bucket, &input.key, input.content_type).map_err(refuse)?;
    Ok(CreateMultipartUploadOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(id),
        ..Default::default()
    })
}

pub(super) async fn put_part(store: &Store, input: UploadPartInput) -> S3Result<UploadPartOutput> {
    if !(1..=10_000).contains(&input.part_number) {
        return Err(s3_error!(InvalidArgument, "Part number must be an integer between 1 and 10000, inclusive"));
    }
    let draft = store.draft(&input.bucket).map_err(refuse)?;
    let draft = receive(draft, input.body, input.content_length).await?;
    let etag = store.put_part(&input.upload_id, input.part_number, draft).map_err(refuse)?;
    Ok(UploadPartOutput { e_tag: Some(ETag::Strong(etag)), ..Default::default() })
}

pub(super) fn list_parts(store: &Store, input: ListPartsInput) -> S3Result<ListPartsOutput> {
    let parts = store.with_upload(&input.upload_id, |upload| {
        let parts = upload.parts.iter().map(|(number, part)| s3s::dto::Part {
            part_number: Some(*number),
            e_tag: Some(ETag::Strong(part.etag.clone())),
            size: Some(part.size as i64),
            ..Default::default()
        });
        Ok(parts.collect::<Vec<_>>())
    });
    Ok(ListPartsOutput {
        parts: Some(parts.map_err(refuse)?),
        is_truncated: Some(false),
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(input.upload_id),
        ..Default::default()
    })
}

pub(super) async fn complete(store: &Arc<Store>, input: CompleteMultipartUploadInput) -> S3Result<CompleteMultipartUploadOutput> {
    let mut named = Vec::new();
    for part in input.multipart_upload.and_then(|upload| upload.parts).unwrap_or_default() {
        match (part.part_number, part.e_tag) {
            (Some(number), Some(etag)) => named.push((number, etag.into_value())),
            _ => return Err(s3_error!(MalformedXML)),
        }
    }
    let look = |upload: &_| -> Result<_, StoreError> {
        let upload: &crate::store::Upload = upload;
        let chosen = upload.choose(&named)?;
        Ok((upload.key == input.key && upload.bucket == input.bucket, chosen, upload.content_type.clone()))
    };
    let (fits, chosen, content_type) = store.with_upload(&input.upload_id, look).map_err(refuse)?;
    if !fits {
        return Err(s3_error!(NoSuchUpload));
    }
    let draft = store.draft(&input.bucket).map_err(refuse)?;
    let tag = chosen.etag.clone();
    let joined = forebay_runtime::spawn_blocking(move || chosen.join(draft)).await;
    let draft = joined.map_err(|error| s3_error!(InternalError, "{error}"))?.map_err(refuse)?;
    let object = store
        .commit_as(draft, tag, &input.bucket, &input.key, content_type, |there| {
            check_write(input.if_match.as_ref(), input.if_none_match.as_ref(), there)
        })
        .map_err(refuse)?;
    store.end_upload(&input.upload_id).map_err(refuse)?;
    Ok(CompleteMultipartUploadOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        e_tag: etag(&object),
        ..Default::default()
    })
}
