use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::ops::Bound;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_types::Mount;
use futures::{StreamExt, TryStreamExt};
use http::StatusCode;
use http::header::ETAG;
use hyper::body::Incoming;
use parking_lot::Mutex;
use ring::digest::{Context as Hash, SHA256};
use tokio::io::AsyncWriteExt;

use super::get::value;
use super::{etag, iso_date, local};
use crate::body::{Fault, Pieces, Upload, checksum_of};
use crate::context::{Answer, Context, Request, document, plain};
use crate::error::{S3Error, S3Result};
use crate::rights::{Object, Writable};
use crate::target::Query;
use crate::xml::{self, Visit, Xml};

/// Uploads at once.
const UPLOADS_MAX: usize = 1000;
/// After so long without a new part an upload counts as given up when room is needed.
const FORGOTTEN: Duration = Duration::from_secs(24 * 3600);
/// Smallest part that is not the last, as in S3.
const PART_BYTES_MIN: u64 = 5 << 20;
/// Bytes that are read from a part at once.
const READ_BYTES: usize = 1 << 20;

/// Objects that come in parts, on mounts whose store has no such thing. Parts wait in temporary files of this machine, which
/// are gone with the process: an upload that is not completed leaves nothing.
#[derive(Default)]
pub(crate) struct Drafts(Mutex<HashMap<String, Draft>>);

struct Draft {
    object: Object,
    begun_ms: i64,
    used: Instant,
    parts: BTreeMap<u32, Part>,
    /// Somebody is making the object of it.
    completing: bool,
}

#[derive(Clone)]
struct Part {
    file: Arc<File>,
    bytes: u64,
    etag: String,
    modified_ms: i64,
}

impl Drafts {
    pub(crate) fn begin(&self, object: &Writable) -> S3Result<Answer> {
        let mut drafts = self.0.lock();
        if drafts.len() >= UPLOADS_MAX {
            drafts.retain(|_, draft| draft.used.elapsed() < FORGOTTEN);
        }
        if drafts.len() >= UPLOADS_MAX {
            return Err(S3Error::slow_down());
        }
        let id = format!("{:032x}", forebay_runtime::random::<u128>());
        let (begun_ms, used) =
            (chrono::DateTime::<chrono::Utc>::from(forebay_runtime::system_time()).timestamp_millis(), forebay_runtime::now());
        let draft = Draft { object: Object::clone(object), begun_ms, used, parts: BTreeMap::new(), completing: false };
        drafts.insert(id.clone(), draft);
        let mut xml = named("InitiateMultipartUploadResult", object);
        xml.text("UploadId", &id);
        Ok(document(xml.end("InitiateMultipartUploadResult")))
    }

    fn with<T>(&self, object: &Object, id: &str, look: impl FnOnce(&mut Draft) -> T) -> S3Result<T> {
        let mut drafts = self.0.lock();
        let of = |draft: &&mut Draft| draft.object.mount().id == object.mount().id && draft.object.key == object.key;
        let draft = drafts.get_mut(id).filter(of).ok_or_else(S3Error::no_such_upload)?;
        draft.used = forebay_runtime::now();
        Ok(look(draft))
    }

    pub(crate) async fn put_part(&self, object: &Writable, request: Request, body: Incoming) -> S3Result<Answer> {
        let number: u32 = request.query("partNumber").unwrap_or("").parse().unwrap_or(0);
        if !(1..=10_000).contains(&number) {
            return Err(S3Error::invalid_argument("Part number must be an integer between 1 and 10000, inclusive"));
        }
        let id = request.query("uploadId").unwrap_or("").to_string();
        self.with(object, &id, |_| ())?;
        let upload = Upload::begin(request.headers(), request.hash.clone(), body)?.checked(request.headers())?;
        let (fault, bytes, trailer) = (upload.fault.clone(), upload.bytes, upload.trailer.clone());
        let (file, hash) = match spool(upload.pieces).await {
            Ok(spooled) => spooled,
            Err(error) => return Err(fault.take().unwrap_or(error)),
        };
        let part = Part {
            file: Arc::new(file),
            bytes,
            etag: hash,
            modified_ms: chrono::DateTime::<chrono::Utc>::from(forebay_runtime::system_time()).timestamp_millis(),
        };
        let mut answer = plain(StatusCode::OK);
        answer.headers_mut().insert(ETAG, value(&part.etag)?);
        answer.headers_mut().extend(checksum_of(request.headers(), trailer.as_ref()));
        self.with(object, &id, |draft| draft.parts.insert(number, part))?;
        Ok(answer)
    }

    pub(crate) async fn complete(
        &self,
        context: &Arc<Context>,
        object: &Writable,
        request: Request,
        body: Incoming,
    ) -> S3Result<Answer> {
        let id = request.query("uploadId").unwrap_or("").to_string();
        let text = Upload::begin(request.headers(), request.hash.clone(), body)?.collect(&context.room, 2 << 20).await?;
        let mut named_parts = Named::default();
        xml::read(&text, &mut named_parts)?;
        let parts = self.with(object, &id, |draft| {
            if draft.completing {
                return Err(S3Error::operation_aborted());
            }
            let parts = chosen(&named_parts.parts, &draft.parts)?;
            draft.completing = true;
            Ok(parts)
        })??;
        let _completing = Completing { drafts: self, id: &id };
        let (fault, bytes) = (Fault::default(), parts.iter().map(|part| part.bytes).sum());
        let pieces = join(parts, fault.clone());
        let written = local::write(context, object, pieces, bytes, local::condition(&request)?).await;
        let info = match written {
            Ok(info) => info,
            Err(error) => {
                return Err(match fault.take() {
                    Some(fault) => fault,
                    None => local::explain(context, object, error).await,
                });
            }
        };
        self.0.lock().remove(&id);
        let mut xml = Xml::begin("CompleteMultipartUploadResult", true);
        let host = request.header("host").unwrap_or("localhost");
        xml.text("Location", &format!("http://{host}/{}/{}", object.mount().name, object.key));
        xml.text("Bucket", object.mount().name.as_str());
        xml.text("Key", object.key.as_str());
        xml.text("ETag", &etag(&info.version.tag));
        Ok(document(xml.end("CompleteMultipartUploadResult")))
    }

    pub(crate) fn abort(&self, object: &Writable, query: &Query) -> S3Result<Answer> {
        let id = query.get("uploadId").unwrap_or("");
        self.with(object, id, |_| ())?;
        self.0.lock().remove(id);
        Ok(plain(StatusCode::NO_CONTENT))
    }

    pub(crate) fn list_parts(&self, object: &Object, query: &Query) -> S3Result<Answer> {
        let id = query.get("uploadId").unwrap_or("");
        let after: u32 = query.get("part-number-marker").and_then(|text| text.parse().ok()).unwrap_or(0);
        let limit: usize = query.get("max-parts").and_then(|text| text.parse().ok()).unwrap_or(1000).min(1000);
        let (parts, more) = self.with(object, id, |draft| {
            let parts: Vec<_> = draft.parts.range(behind(after)).take(limit).map(|(n, part)| (*n, part.clone())).collect();
            let last = parts.last().map_or(after, |(number, _)| *number);
            let more = draft.parts.range(behind(last)).next().is_some();
            (parts, more)
        })?;
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

    pub(crate) fn list(&self, mount: &Mount, query: &Query) -> S3Result<Answer> {
        let prefix = query.get("prefix").unwrap_or("");
        let drafts = self.0.lock();
        let mut shown: Vec<_> = drafts
            .iter()
            .filter(|(_, draft)| draft.object.mount().id == mount.id && draft.object.key.as_str().starts_with(prefix))
            .collect();
        shown.sort_by(|(_, a), (_, b)| (&a.object.key, a.begun_ms).cmp(&(&b.object.key, b.begun_ms)));
        let mut xml = Xml::begin("ListMultipartUploadsResult", true);
        xml.text("Bucket", mount.name.as_str());
        xml.text("KeyMarker", "");
        xml.text("UploadIdMarker", "");
        xml.text("Prefix", prefix);
        xml.text("MaxUploads", "1000");
        xml.text("IsTruncated", "false");
        for (id, draft) in shown {
            xml.open("Upload");
            xml.text("Key", draft.object.key.as_str());
            xml.text("UploadId", id);
            xml.text("Initiated", &iso_date(draft.begun_ms));
            xml.close("Upload");
        }
        Ok(document(xml.end("ListMultipartUploadsResult")))
    }
}

/// The numbers that come after one.
fn behind(number: u32) -> (Bound<u32>, Bound<u32>) {
    (Bound::Excluded(number), Bound::Unbounded)
}

/// A draft that is being completed, by nobody else until this is dropped.
struct Completing<'a> {
    drafts: &'a Drafts,
    id: &'a str,
}

impl Drop for Completing<'_> {
    fn drop(&mut self) {
        // It is not there any more when it was completed.
        if let Some(draft) = self.drafts.0.lock().get_mut(self.id) {
            draft.completing = false;
        }
    }
}

fn named(root: &str, object: &Object) -> Xml {
    let mut xml = Xml::begin(root, true);
    xml.text("Bucket", object.mount().name.as_str());
    xml.text("Key", object.key.as_str());
    xml
}

async fn spool(mut pieces: Pieces) -> S3Result<(File, String)> {
    let failed = |error: std::io::Error| {
        tracing::warn!(%error, "a part can't be kept");
        S3Error::slow_down()
    };
    let file = tokio::task::spawn_blocking(tempfile::tempfile).await.map_err(|_| S3Error::internal())?.map_err(failed)?;
    let mut file = tokio::fs::File::from_std(file);
    let mut hash = Hash::new(&SHA256);
    while let Some(piece) = pieces.try_next().await.map_err(|_| S3Error::incomplete_body())? {
        hash.update(&piece);
        file.write_all(&piece).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    let hash: String = hash.finish().as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((file.into_std().await, format!("\"{hash}\"")))
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
    Ok(chosen)
}

/// The parts one after the other. Who else reads them does not move what is read here.
fn join(parts: Vec<Part>, fault: Fault) -> Pieces {
    let places = parts.into_iter().flat_map(|part| {
        let starts = (0..part.bytes).step_by(READ_BYTES);
        starts.map(move |start| (Arc::clone(&part.file), start, part.bytes.min(start + READ_BYTES as u64)))
    });
    futures::stream::iter(places)
        .then(move |(file, start, end)| {
            let fault = fault.clone();
            let read = move || -> std::io::Result<Bytes> {
                let mut piece = vec![0; (end - start) as usize];
                file.read_exact_at(&mut piece, start)?;
                Ok(piece.into())
            };
            async move {
                let read = tokio::task::spawn_blocking(read).await.unwrap_or_else(|error| Err(error.into()));
                read.map_err(|error| {
                    tracing::warn!(%error, "a part can't be read");
                    fault.set(S3Error::internal())
                })
            }
        })
        .boxed()
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
                (Some(number), Some(tag)) if self.parts.len() < 10_000 => self.parts.push((number, tag)),
                _ => return Err(S3Error::malformed_xml()),
            },
            _ => {}
        }
        Ok(())
    }
}
