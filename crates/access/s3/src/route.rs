use std::sync::Arc;

use forebay_types::Mount;
use http::Method;
use hyper::body::Incoming;

use crate::buckets;
use crate::context::{Answer, Context, Object, Request};
use crate::error::{S3Error, S3Result};
use crate::forward::{Write, forward};
use crate::objects;

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
    let reads = matches!(request.parts.method, Method::GET | Method::HEAD) || request.query("select").is_some();
    request.caller.check(&bucket, !reads)?;
    match request.target.key.clone() {
        None => bucket_level(context, request, &bucket, body).await,
        Some(key) => {
            let mount = context.mount(&bucket).await?;
            if !reads && mount.options.read_only {
                return Err(S3Error::access_denied().saying("The mount is read-only."));
            }
            object_level(context, request, Object { mount, key }, body).await
        }
    }
}

async fn bucket_level(context: &Arc<Context>, request: Request, bucket: &str, body: Incoming) -> S3Result<Answer> {
    let has = |name: &str| request.target.query.has(name);
    let configuration = CONFIGURATION.iter().any(|name| has(name));
    if request.parts.method == Method::PUT && !configuration {
        return buckets::create(context, request, bucket, body).await;
    }
    let mount = context.mount(bucket).await?;
    match request.parts.method {
        Method::HEAD => Ok(buckets::head(context)),
        Method::GET if has("location") => Ok(buckets::location(context)),
        Method::GET if has("uploads") && objects::is_local(&mount) => context.drafts.list(&mount, &request.target.query),
        Method::GET if configuration || has("uploads") || has("versions") => {
            forward(context, &request, &mount, None, body, Write::None).await
        }
        Method::GET if request.query("list-type") == Some("2") => buckets::list_v2(context, &request, &mount).await,
        Method::GET => buckets::list_v1(context, &request, &mount).await,
        Method::POST if has("delete") => buckets::delete_many(context, request, &mount, body).await,
        Method::PUT | Method::DELETE if configuration && context.settings.bucket_configuration && is_whole(&mount) => {
            forward(context, &request, &mount, None, body, Write::None).await
        }
        Method::PUT | Method::DELETE if configuration => Err(S3Error::access_denied().saying(
            "Configuration of this bucket is not changed through the gateway: change it at shared storage, or switch s3-bucket-configuration on, for mounts that are whole buckets.",
        )),
        Method::DELETE => buckets::remove(context, &request, &mount).await,
        Method::POST => Err(S3Error::not_implemented("forms")),
        _ => Err(S3Error::method_not_allowed()),
    }
}

async fn object_level(context: &Arc<Context>, request: Request, object: Object, body: Incoming) -> S3Result<Answer> {
    let has = |name: &str| request.target.query.has(name);
    let aside = ASIDE.iter().any(|name| has(name));
    let (mount, key) = (object.mount.clone(), object.key.clone());
    let local = objects::is_local(&mount);
    match request.parts.method {
        Method::GET | Method::HEAD if has("uploadId") => match local {
            true => context.drafts.list_parts(&object, &request.target.query),
            false => forward(context, &request, &mount, Some(key), body, Write::None).await,
        },
        Method::GET | Method::HEAD if aside || has("versionId") || is_encrypted(&request) => {
            forward(context, &request, &mount, Some(key), body, Write::None).await
        }
        Method::GET | Method::HEAD => objects::get(context, &request, &object).await,
        Method::PUT if aside => forward(context, &request, &mount, Some(key), body, Write::Object).await,
        Method::PUT if request.headers().contains_key("x-amz-copy-source") => {
            objects::copy(context, request, &object, body).await
        }
        Method::PUT if has("uploadId") || has("partNumber") => match local {
            true => context.drafts.put_part(&object, request, body).await,
            false => forward(context, &request, &mount, Some(key), body, Write::None).await,
        },
        Method::PUT => match local {
            true => objects::put_local(context, request, &object, body).await,
            false => forward(context, &request, &mount, Some(key), body, Write::Object).await,
        },
        Method::POST if local && has("uploads") => context.drafts.begin(&object),
        Method::POST if local && has("uploadId") => context.drafts.complete(context, &object, request, body).await,
        Method::POST if has("uploads") => forward(context, &request, &mount, Some(key), body, Write::None).await,
        Method::POST if has("uploadId") || aside => forward(context, &request, &mount, Some(key), body, Write::Object).await,
        Method::DELETE if has("uploadId") => match local {
            true => context.drafts.abort(&object, &request.target.query),
            false => forward(context, &request, &mount, Some(key), body, Write::None).await,
        },
        Method::DELETE if !aside && local => objects::delete_local(context, &request, &object).await,
        Method::DELETE => forward(context, &request, &mount, Some(key), body, Write::Object).await,
        _ => Err(S3Error::method_not_allowed()),
    }
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
