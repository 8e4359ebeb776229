//! Sorts requests by what they ask, each with the proof that its caller may.

use std::sync::Arc;

use forebay_types::Key;
use http::Method;
use hyper::body::Incoming;

use crate::answer::Answer;
use crate::buckets;
use crate::context::Context;
use crate::dialect::{S3Error, S3Result};
use crate::forward::{Passing, forward};
use crate::mounts::{is_local, is_whole};
use crate::objects::{self, uploads};
use crate::request::{Reading, Request, SubResource, check_kept, check_meant};
use crate::rights::{MayRead, MayWrite, Writable};

/// Sorts a request by what it asks, after who asks was found out.
pub(crate) async fn route(context: &Arc<Context>, request: Request, body: Incoming) -> S3Result<Answer> {
    let Some(bucket) = request.target.bucket.clone() else {
        return match request.parts.method {
            Method::GET | Method::HEAD => Ok(buckets::list(context, &request)),
            _ => Err(S3Error::method_not_allowed()),
        };
    };
    let (reading, key) = (Reading::of(&request), request.target.key.clone());
    let caller = &request.caller;
    match (key, reading) {
        (None, Some(reading)) => {
            let may = MayRead::of(context, caller, &bucket).await?;
            read_bucket(context, request, reading, &may, body).await
        }
        (None, None) => change_bucket(context, request, &bucket, body).await,
        (Some(key), Some(reading)) => {
            let may = MayRead::of(context, caller, &bucket).await?;
            read_object(context, request, reading, &may, key, body).await
        }
        (Some(key), None) => {
            let object = MayWrite::of(context, caller, &bucket).await?.object(key);
            change_object(context, request, &object, body).await
        }
    }
}

async fn read_bucket(
    context: &Arc<Context>,
    request: Request,
    reading: Reading,
    may: &MayRead,
    body: Incoming,
) -> S3Result<Answer> {
    let (sub, mount) = (SubResource::of(&request)?, may.mount());
    match (reading, sub.name) {
        (Reading::Head, _) => Ok(buckets::head(context)),
        (_, "location") => Ok(buckets::location(context)),
        (_, "versioning") if is_local(mount) => Ok(buckets::not_versioned()),
        (_, "uploads") if is_local(mount) => uploads::list(context, mount, &request.target.query),
        (_, "") if request.query("list-type") == Some("2") => buckets::list_v2(context, &request, mount).await,
        (_, "") => buckets::list_v1(context, &request, mount).await,
        _ => forward(context, &request, sub, Passing::Read(reading, may, None), body).await,
    }
}

async fn change_bucket(context: &Arc<Context>, request: Request, bucket: &str, body: Incoming) -> S3Result<Answer> {
    let sub = SubResource::of(&request);
    if request.parts.method == Method::PUT && matches!(&sub, Ok(sub) if sub.name.is_empty()) {
        return buckets::create(context, request, bucket, body).await;
    }
    let may = MayWrite::of(context, &request.caller, bucket).await?;
    let sub = sub?;
    check_meant(request.headers())?;
    match (&request.parts.method, sub.name) {
        (_, "delete") => buckets::delete_many(context, request, &may, body).await,
        (_, _) if sub.is_configuration() => match context.settings.bucket_configuration && is_whole(may.mount()) {
            true => forward(context, &request, sub, Passing::Configure(&may), body).await,
            false => Err(S3Error::access_denied().saying(
                "Configuration of this bucket is not changed through the gateway: change it at shared storage, or switch s3-bucket-configuration on, for mounts that are whole buckets.",
            )),
        },
        (&Method::DELETE, "") => buckets::remove(context, &request, &may).await,
        _ => Err(S3Error::method_not_allowed()),
    }
}

async fn read_object(
    context: &Arc<Context>,
    request: Request,
    reading: Reading,
    may: &MayRead,
    key: Key,
    body: Incoming,
) -> S3Result<Answer> {
    let (sub, query) = (SubResource::of(&request)?, &request.target.query);
    let is_local_latest = is_local(may.mount()) && !query.has("versionId");
    match sub.name {
        "tagging" if is_local_latest => objects::no_tags(context, &may.object(key)).await,
        "attributes" if is_local_latest => objects::attributes(context, &request, &may.object(key)).await,
        "uploadId" if is_local(may.mount()) => uploads::list_parts(context, &may.object(key), query),
        "" if !query.has("versionId") && !is_encrypted(&request) => objects::get(context, &request, &may.object(key)).await,
        _ => forward(context, &request, sub, Passing::Read(reading, may, Some(key)), body).await,
    }
}

async fn change_object(context: &Arc<Context>, request: Request, object: &Writable, body: Incoming) -> S3Result<Answer> {
    let sub = SubResource::of(&request)?;
    check_meant(request.headers())?;
    let (local, copies) = (is_local(object.mount()), request.headers().contains_key("x-amz-copy-source"));
    if local {
        check_kept(request.headers())?;
    }
    let (all, part) = (Passing::Object(object), Passing::Upload(object));
    match (&request.parts.method, sub.name) {
        (&Method::PUT, "" | "uploadId") if copies => objects::copy(context, request, object, body).await,
        (&Method::PUT, "") if request.target.query.has("versionId") || request.target.query.has("partNumber") => {
            Err(S3Error::invalid_argument("This operation does not accept a version-id, nor a part number without an upload."))
        }
        (&Method::PUT, "") if local => objects::put_local(context, request, object, body).await,
        (&Method::PUT, "uploadId") if local => uploads::put_part(context, object, request, body).await,
        (&Method::POST, "uploads") if local => uploads::begin(context, object, &request.caller),
        (&Method::POST, "uploadId") if local => uploads::complete(context, object, request, body).await,
        (&Method::DELETE, "uploadId") if local => uploads::abort(context, object, &request.target.query),
        (&Method::DELETE, "") if local => objects::delete_local(context, &request, object).await,
        (_, "uploads") | (&Method::PUT | &Method::DELETE, "uploadId") => forward(context, &request, sub, part, body).await,
        _ => forward(context, &request, sub, all, body).await,
    }
}

/// Objects that only their key opens are never kept.
fn is_encrypted(request: &Request) -> bool {
    request.headers().contains_key("x-amz-server-side-encryption-customer-algorithm")
}
