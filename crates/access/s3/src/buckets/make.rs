//! Making and removing buckets, which are mounts.

use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use forebay_client::AdminRequest;
use forebay_shared_storage::{PayloadHash, Storage};
use forebay_types::{ErrorKind, ForebayPath, Key, Mount, MountName};
use http::header::{CONTENT_LENGTH, LOCATION};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use hyper::body::Incoming;

use crate::answer::{Answer, document, plain};
use crate::body::{Upload, body_of};
use crate::context::Context;
use crate::dialect::{S3Error, S3Result, Visit, Xml, read_xml, rewrite_xml};
use crate::request::Request;
use crate::rights::{MayMake, MayWrite};
use crate::settings::NewBuckets;
use crate::store::{self, Sending, collect};

/// Longest configuration of a new bucket.
const DOCUMENT_BYTES_MAX: u64 = 64 << 10;

/// Makes a bucket where new ones are made, and a mount of its name. Without such a place buckets are mounts, which are made
/// elsewhere.
pub(crate) async fn create(context: &Arc<Context>, request: Request, bucket: &str, body: Incoming) -> S3Result<Answer> {
    match MayWrite::of(context, &request.caller, bucket).await {
        Ok(_) => return Err(S3Error::bucket_owned().with("BucketName", bucket)),
        Err(error) if error.code == "NoSuchBucket" => {}
        Err(error) => return Err(error),
    }
    let Ok(name) = bucket.parse::<MountName>() else {
        return Err(S3Error::new(StatusCode::BAD_REQUEST, "InvalidBucketName", "The specified bucket is not valid."));
    };
    let upload = Upload::begin(request.headers(), request.hash.clone(), body)?.checked(request.headers())?;
    location_is_here(context, &upload.collect(&context.room, DOCUMENT_BYTES_MAX).await?)?;
    let Some(place) = context.settings.new_buckets.as_ref() else {
        return Err(
            S3Error::access_denied().saying(format!("A bucket is a mount: make it with `forebay mount add {bucket} URL`."))
        );
    };
    let may = MayMake::of(&request.caller)?;
    let mount = place.mount(name);
    let storage = context.client.open_storage(&mount)?;
    make(&may, &storage, &mount, place, &context.settings.region, &request).await?;
    let add = AdminRequest::MountAdd { name: mount.name.clone(), url: mount.url.clone(), options: mount.options.clone() };
    if let Err(error) = control(context, &may, add).await {
        unmake(&may, &storage, &mount, place).await;
        return Err(match error.kind() {
            ErrorKind::Conflict => S3Error::bucket_owned().with("BucketName", bucket),
            _ => error.into(),
        });
    }
    let mut answer = plain(StatusCode::OK);
    let path = HeaderValue::from_str(&format!("/{bucket}")).map_err(|_| S3Error::internal())?;
    answer.headers_mut().insert(LOCATION, path);
    Ok(answer)
}

/// Removes an empty bucket that was made here, and its mount.
pub(crate) async fn remove(context: &Arc<Context>, request: &Request, may: &MayWrite) -> S3Result<Answer> {
    let mount = may.mount();
    if mount.name.is_temporary() {
        return Err(S3Error::access_denied().saying("The bucket of temporary data is always there."));
    }
    let here = context.settings.new_buckets.as_ref();
    let Some(place) = here.filter(|place| place.mount(mount.name.clone()).url == mount.url) else {
        let message = format!("A bucket is a mount: remove it with `forebay mount rm {}`.", mount.name);
        return Err(S3Error::access_denied().saying(message));
    };
    let making = MayMake::of(&request.caller)?;
    let root = ForebayPath::new(mount.name.clone(), Key::new("").map_err(|_| S3Error::internal())?);
    context.client.refresh(&root).await?;
    let page = context.client.list_page(&root, false, None, 1).await?;
    if !page.objects.is_empty() {
        let message = "The bucket you tried to delete is not empty";
        return Err(S3Error::new(StatusCode::CONFLICT, "BucketNotEmpty", message).with("BucketName", mount.name.as_str()));
    }
    let storage = context.client.open_storage(mount)?;
    if place.is_whole_buckets() {
        let (status, text) = at_bucket(&making, &storage, Method::DELETE, HeaderMap::new(), None).await?;
        if !status.is_success() && status != StatusCode::NOT_FOUND {
            return Ok(as_said(status, &text, mount.name.as_str()));
        }
    } else {
        unmake(&making, &storage, mount, place).await;
    }
    control(context, &making, AdminRequest::MountRemove { name: mount.name.clone() }).await?;
    Ok(plain(StatusCode::NO_CONTENT))
}

#[expect(clippy::disallowed_methods, reason = "this is the door")]
async fn control(context: &Context, _may: &MayMake, request: AdminRequest) -> forebay_types::Result<()> {
    context.client.control(request).await.map(drop)
}

/// Makes what the mount needs to be there. What is there already was not meant for who asks now.
async fn make(
    may: &MayMake,
    storage: &Storage,
    mount: &Mount,
    place: &NewBuckets,
    region: &str,
    request: &Request,
) -> S3Result<()> {
    let exists = || {
        let message = "The requested bucket name is not available.";
        S3Error::new(StatusCode::CONFLICT, "BucketAlreadyExists", message).with("BucketName", mount.name.as_str())
    };
    if let Some(folder) = mount.url.strip_prefix("file://") {
        let (folder, path) = (folder.to_string(), mount.url.clone());
        let made = tokio::task::spawn_blocking(move || std::fs::create_dir(folder)).await.map_err(|_| S3Error::internal())?;
        return match made {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists()),
            Err(error) => {
                tracing::warn!(path, %error, "a bucket's folder can't be made");
                Err(S3Error::internal())
            }
        };
    }
    if !place.is_whole_buckets() {
        return Ok(());
    }
    if at_bucket(may, storage, Method::HEAD, HeaderMap::new(), None).await?.0 != StatusCode::NOT_FOUND {
        return Err(exists());
    }
    let mut headers = HeaderMap::new();
    for (name, value) in request.headers() {
        let of_the_bucket = name.as_str().starts_with("x-amz-bucket-") || name.as_str().starts_with("x-amz-grant-");
        if of_the_bucket || ["x-amz-acl", "x-amz-object-ownership"].contains(&name.as_str()) {
            headers.insert(name.clone(), value.clone());
        }
    }
    let body = (region != "us-east-1").then(|| {
        let mut xml = Xml::begin("CreateBucketConfiguration", true);
        xml.text("LocationConstraint", region);
        xml.end("CreateBucketConfiguration")
    });
    let (status, text) = at_bucket(may, storage, Method::PUT, headers, body).await?;
    match status {
        _ if status.is_success() => Ok(()),
        StatusCode::CONFLICT => Err(exists()),
        _ => {
            let refused = Refused::of(&text);
            tracing::warn!(mount = %mount.name, status = status.as_u16(), code = refused.code, "no bucket was made");
            Err(match refused.code.as_str() {
                "InvalidBucketName" => {
                    S3Error::new(StatusCode::BAD_REQUEST, "InvalidBucketName", "The specified bucket is not valid.")
                }
                _ if status == StatusCode::BAD_REQUEST => S3Error::invalid_argument(refused.message),
                _ => S3Error::access_denied().saying("Shared storage makes no such bucket."),
            })
        }
    }
}

/// Takes back what was made for a mount that came to nothing, or is gone: only what is empty goes.
async fn unmake(may: &MayMake, storage: &Storage, mount: &Mount, place: &NewBuckets) {
    let failed = if let Some(folder) = mount.url.strip_prefix("file://") {
        let folder = folder.to_string();
        let removed = tokio::task::spawn_blocking(move || remove_empty(Path::new(&folder))).await;
        removed.ok().and_then(Result::err).map(|error| error.to_string())
    } else if place.is_whole_buckets() {
        let removed = at_bucket(may, storage, Method::DELETE, HeaderMap::new(), None).await;
        removed.err().map(|error| error.message.clone())
    } else {
        None
    };
    if let Some(error) = failed {
        tracing::warn!(mount = %mount.name, error, "what a bucket was made of stays");
    }
}

/// Removes a folder with the empty ones in it. What files are in stays as it is: it may be a data folder, of which listings show nothing.
fn remove_empty(folder: &Path) -> io::Result<()> {
    let mut below = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        below.push(entry.path());
    }
    for folder in below {
        remove_empty(&folder)?;
    }
    std::fs::remove_dir(folder)
}

async fn at_bucket(
    may: &MayMake,
    storage: &Storage,
    method: Method,
    mut headers: HeaderMap,
    body: Option<Bytes>,
) -> S3Result<(StatusCode, Bytes)> {
    headers.insert(CONTENT_LENGTH, body.as_ref().map_or(0, Bytes::len).into());
    let hash = if body.is_some() { PayloadHash::Unsigned } else { PayloadHash::Empty };
    let sending = Sending { key: None, query: Vec::new(), headers, hash, body: body.map(body_of) };
    let (parts, stream) = store::make(may, storage, method, sending).await?.into_parts();
    Ok((parts.status, collect(stream).await?))
}

fn as_said(status: StatusCode, text: &Bytes, bucket: &str) -> Answer {
    let renamed = rewrite_xml(text, |path, text| match path {
        [_, name] if name == "Resource" => format!("/{bucket}"),
        _ => text,
    });
    let mut answer = document(renamed.unwrap_or_default());
    *answer.status_mut() = status;
    answer
}

/// A bucket is where the gateway is, wherever its store may be.
fn location_is_here(context: &Context, text: &Bytes) -> S3Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let mut asked = Asked::default();
    read_xml(text, &mut asked)?;
    match asked.0.as_deref().map(str::trim) {
        None | Some("") => Ok(()),
        Some(region) if region == context.settings.region => Ok(()),
        Some(_) => Err(S3Error::new(
            StatusCode::BAD_REQUEST,
            "InvalidLocationConstraint",
            "The specified location-constraint is not valid",
        )),
    }
}

/// The region that a client names.
#[derive(Default)]
struct Asked(Option<String>);

impl Visit for Asked {
    fn text(&mut self, path: &[String], text: String) -> S3Result<()> {
        match path {
            [root, ..] if root != "CreateBucketConfiguration" => return Err(S3Error::malformed_xml()),
            [_, name] if name == "LocationConstraint" => self.0 = Some(text),
            _ => {}
        }
        Ok(())
    }
}

/// What a store says when it refuses.
#[derive(Default)]
struct Refused {
    code: String,
    message: String,
}

impl Refused {
    fn of(text: &Bytes) -> Self {
        let mut refused = Self::default();
        if let Ok(()) = read_xml(text, &mut refused) { refused } else { Self::default() }
    }
}

impl Visit for Refused {
    fn text(&mut self, path: &[String], text: String) -> S3Result<()> {
        match path {
            [_, name] if name == "Code" => self.code = text,
            [_, name] if name == "Message" => self.message = text,
            _ => {}
        }
        Ok(())
    }
}
