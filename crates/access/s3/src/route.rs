use std::sync::Arc;

use forebay_types::{Key, Mount};
use http::Method;
use hyper::body::Incoming;

use crate::buckets;
use crate::context::{Answer, Context, Request};
use crate::error::{S3Error, S3Result};
use crate::forward::{Passing, forward};
use crate::objects;
use crate::rights::{MayRead, MayWrite, Writable};
use crate::store::Reading;

/// What of a bucket is its configuration.
const CONFIGURATION: [&str; 24] = [
    "accelerate",
    "acl",
    "analytics",
    "cors",
    "encryption",
    "intelligent-tiering",
    "inventory",
    "lifecycle",
    "logging",
    "metadataConfiguration",
    "metadataTable",
    "metrics",
    "notification",
    "object-lock",
    "ownershipControls",
    "policy",
    "policyStatus",
    "publicAccessBlock",
    "replication",
    "requestPayment",
    "tagging",
    "versioning",
    "website",
    "abac",
];
/// What of an object is not its bytes.
const ASIDE: [&str; 9] =
    ["acl", "attributes", "legal-hold", "renameObject", "restore", "retention", "select", "tagging", "torrent"];

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
    let (has, mount) = (|name: &str| request.target.query.has(name), may.mount());
    match reading {
        Reading::Head => Ok(buckets::head(context)),
        _ if has("location") => Ok(buckets::location(context)),
        _ if has("uploads") && objects::is_local(mount) => context.drafts.list(mount, &request.target.query),
        _ if is_configuration(&request) || has("uploads") || has("versions") => {
            forward(context, &request, Passing::Read(reading, may, None), body).await
        }
        _ if request.query("list-type") == Some("2") => buckets::list_v2(context, &request, mount).await,
        _ => buckets::list_v1(context, &request, mount).await,
    }
}

async fn change_bucket(context: &Arc<Context>, request: Request, bucket: &str, body: Incoming) -> S3Result<Answer> {
    if request.parts.method == Method::PUT && !is_configuration(&request) {
        return buckets::create(context, request, bucket, body).await;
    }
    let may = MayWrite::of(context, &request.caller, bucket).await?;
    match request.parts.method {
        Method::POST if request.target.query.has("delete") => buckets::delete_many(context, request, &may, body).await,
        Method::PUT | Method::DELETE if is_configuration(&request) => {
            match context.settings.bucket_configuration && is_whole(may.mount()) {
                true => forward(context, &request, Passing::Configure(&may), body).await,
                false => Err(S3Error::access_denied().saying(
                    "Configuration of this bucket is not changed through the gateway: change it at shared storage, or switch s3-bucket-configuration on, for mounts that are whole buckets.",
                )),
            }
        }
        Method::DELETE => buckets::remove(context, &request, &may).await,
        Method::POST => Err(S3Error::not_implemented("forms")),
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
    let query = &request.target.query;
    let uploads = query.has("uploadId");
    if uploads && objects::is_local(may.mount()) {
        return context.drafts.list_parts(&may.object(key), query);
    }
    let passed = uploads || is_aside(&request) || query.has("versionId") || is_encrypted(&request);
    match passed || reading == Reading::Select {
        true => forward(context, &request, Passing::Read(reading, may, Some(key)), body).await,
        false => objects::get(context, &request, &may.object(key)).await,
    }
}

async fn change_object(context: &Arc<Context>, request: Request, object: &Writable, body: Incoming) -> S3Result<Answer> {
    let has = |name: &str| request.target.query.has(name);
    let (local, aside) = (objects::is_local(object.mount()), is_aside(&request));
    let (all, part) = (Passing::Object(object), Passing::Upload(object));
    match request.parts.method {
        Method::PUT if aside => forward(context, &request, all, body).await,
        Method::PUT if request.headers().contains_key("x-amz-copy-source") => objects::copy(context, request, object, body).await,
        Method::PUT if has("uploadId") || has("partNumber") => match local {
            true => context.drafts.put_part(object, request, body).await,
            false => forward(context, &request, part, body).await,
        },
        Method::PUT => match local {
            true => objects::put_local(context, request, object, body).await,
            false => forward(context, &request, all, body).await,
        },
        Method::POST if local && has("uploads") => context.drafts.begin(object),
        Method::POST if local && has("uploadId") => context.drafts.complete(context, object, request, body).await,
        Method::POST if has("uploads") => forward(context, &request, part, body).await,
        Method::POST if has("uploadId") || aside => forward(context, &request, all, body).await,
        Method::DELETE if has("uploadId") => match local {
            true => context.drafts.abort(object, &request.target.query),
            false => forward(context, &request, part, body).await,
        },
        Method::DELETE if !aside && local => objects::delete_local(context, &request, object).await,
        Method::DELETE => forward(context, &request, all, body).await,
        _ => Err(S3Error::method_not_allowed()),
    }
}

fn is_configuration(request: &Request) -> bool {
    CONFIGURATION.iter().any(|name| request.target.query.has(name))
}

fn is_aside(request: &Request) -> bool {
    ASIDE.iter().any(|name| request.target.query.has(name))
}

/// Whether a mount is all of a bucket, whose configuration is then nobody else's.
fn is_whole(mount: &Mount) -> bool {
    let bucket = mount.url.strip_prefix("s3://").or_else(|| mount.url.strip_prefix("s3a://"));
    bucket.is_some_and(|bucket| !bucket.trim_end_matches('/').contains('/'))
}

/// Objects that only their key opens are never kept.
fn is_encrypted(request: &Request) -> bool {
    request.headers().contains_key("x-amz-server-side-encryption-customer-algorithm")
}
