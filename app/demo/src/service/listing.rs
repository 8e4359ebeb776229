//! Listings in both of S3's versions, with keys encoded where the client asks for it.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use s3s::dto::*;
use s3s::{S3Result, s3_error};

use super::conditions::modified;
use super::objects::etag;
use super::refuse;
use crate::store::{Page, PageRequest, Store};

const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'*').remove(b'/');
/// As S3 does: what comes of a request with more is cut to this.
const PAGE_MAX: i32 = 1000;

/// A key as S3 shows it: as it is, or, on request, encoded as in a form, which XML can carry whatever the key.
fn show(text: &str, encoded: bool) -> String {
    if encoded { utf8_percent_encode(text, KEPT).to_string().replace("%20", "+") } else { text.into() }
}

fn limit(max_keys: Option<i32>) -> S3Result<usize> {
    match max_keys.unwrap_or(PAGE_MAX) {
        limit @ 0.. => Ok(limit.min(PAGE_MAX) as usize),
        limit => Err(s3_error!(InvalidArgument, "max-keys is {limit}")),
    }
}

fn objects(page: &Page, encoded: bool) -> Vec<Object> {
    let shown = page.objects.iter().map(|(key, object)| Object {
        key: Some(show(key, encoded)),
        e_tag: etag(object),
        size: Some(object.size as i64),
        last_modified: Some(modified(object)),
        storage_class: Some(ObjectStorageClass::from_static(ObjectStorageClass::STANDARD)),
        ..Default::default()
    });
    shown.collect()
}

fn folders(page: &Page, encoded: bool) -> Vec<CommonPrefix> {
    page.folders.iter().map(|folder| CommonPrefix { prefix: Some(show(folder, encoded)) }).collect()
}

pub(super) fn list_v2(store: &Store, input: ListObjectsV2Input) -> S3Result<ListObjectsV2Output> {
    let encoded = input.encoding_type.as_ref().is_some_and(|encoding| encoding.as_str() == EncodingType::URL);
    let after = match &input.continuation_token {
        Some(token) => Some(percent_decode_str(token).decode_utf8().map_err(|_| s3_error!(InvalidArgument))?.into_owned()),
        None => input.start_after.clone(),
    };
    let prefix = input.prefix.clone().unwrap_or_default();
    let limit = limit(input.max_keys)?;
    let request = PageRequest { prefix: prefix.clone(), delimiter: input.delimiter.clone(), after, limit };
    let page = store.list(&input.bucket, &request).map_err(refuse)?;
    Ok(ListObjectsV2Output {
        key_count: Some((page.objects.len() + page.folders.len()) as i32),
        contents: Some(objects(&page, encoded)),
        common_prefixes: Some(folders(&page, encoded)),
        is_truncated: Some(page.next.is_some()),
        next_continuation_token: page.next.map(|next| utf8_percent_encode(&next, NON_ALPHANUMERIC).to_string()),
        continuation_token: input.continuation_token,
        delimiter: input.delimiter.map(|delimiter| show(&delimiter, encoded)),
        encoding_type: input.encoding_type,
        max_keys: Some(limit as i32),
        name: Some(input.bucket),
        prefix: Some(show(&prefix, encoded)),
        start_after: input.start_after.map(|after| show(&after, encoded)),
        ..Default::default()
    })
}

pub(super) fn list_v1(store: &Store, input: ListObjectsInput) -> S3Result<ListObjectsOutput> {
    let encoded = input.encoding_type.as_ref().is_some_and(|encoding| encoding.as_str() == EncodingType::URL);
    let prefix = input.prefix.clone().unwrap_or_default();
    let limit = limit(input.max_keys)?;
    let request = PageRequest { prefix: prefix.clone(), delimiter: input.delimiter.clone(), after: input.marker.clone(), limit };
    let page = store.list(&input.bucket, &request).map_err(refuse)?;
    Ok(ListObjectsOutput {
        contents: Some(objects(&page, encoded)),
        common_prefixes: Some(folders(&page, encoded)),
        is_truncated: Some(page.next.is_some()),
        next_marker: page.next.as_deref().map(|next| show(next, encoded)),
        delimiter: input.delimiter.map(|delimiter| show(&delimiter, encoded)),
        encoding_type: input.encoding_type,
        marker: Some(show(&input.marker.unwrap_or_default(), encoded)),
        max_keys: Some(limit as i32),
        name: Some(input.bucket),
        prefix: Some(show(&prefix, encoded)),
        ..Default::default()
    })
}
