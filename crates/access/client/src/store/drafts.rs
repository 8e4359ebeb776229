//! A store whose writes become drafts, for who writes files of an operation that another process makes visible.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use forebay_placement::holder;
use forebay_types::{Error as Failed, ForebayPath, Key, OperationId, RouteKey, WorkerId};
use futures::FutureExt;
use futures::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use parking_lot::Mutex;

use super::Objects;
use super::errors::to_store_error;
use super::paths::from_store;
use super::upload::send_full;
use crate::write::{Draft, PartBuffer, PartUpload, abandon};

/// Names that are looked at for one whose home is a given worker: so many, divided by the workers of the cluster.
const LOOKS_MAX: usize = 1 << 20;
/// The same for each worker of the cluster.
const LOOKS_A_WORKER: usize = 8;

/// A store whose writes become [`Draft`]s. It reads nothing.
#[derive(Clone)]
pub struct DraftStore {
    shared: Arc<Shared>,
}

struct Shared {
    objects: Objects,
    operation: OperationId,
    /// Workers at which drafts are open.
    open_at: Vec<WorkerId>,
    /// Whose tier is to have what is written, where names may be chosen so.
    near: Option<WorkerId>,
    made: Mutex<Vec<Draft>>,
}

impl DraftStore {
    pub(crate) fn new(objects: Objects, operation: OperationId, open_at: Vec<WorkerId>, near: Option<WorkerId>) -> Self {
        Self { shared: Arc::new(Shared { objects, operation, open_at, near, made: Mutex::default() }) }
    }

    /// What was written whole since it was last taken.
    pub fn take(&self) -> Vec<Draft> {
        std::mem::take(&mut *self.shared.made.lock())
    }

    async fn begin(&self, location: &Path) -> Result<DraftUpload> {
        let path = self.shared.placed(from_store(location)?);
        let Shared { objects, operation, open_at, .. } = self.shared.as_ref();
        let begun = PartUpload::begin_draft(&objects.writes, &path, *operation, open_at).await;
        let upload = begun.map_err(|error| to_store_error(location.as_ref(), error))?;
        let shared = Arc::clone(&self.shared);
        let upload = Some(Arc::new(upload));
        Ok(DraftUpload { shared, location: location.to_string(), upload, buffer: PartBuffer::default(), parts: 0, bytes: 0 })
    }
}

impl Shared {
    /// The path, or one like it whose first segment has its home at the worker that is to have it.
    fn placed(&self, path: ForebayPath) -> ForebayPath {
        let known = self.objects.routes.view.known_arc();
        let near = self.near.filter(|near| known.workers.contains(near) && self.open_at.contains(near));
        let (Some(near), Some(mount)) = (near, known.mount_named(path.mount().as_str())) else { return path };
        let looks = (LOOKS_A_WORKER * known.workers.len()).min(LOOKS_MAX / known.workers.len());
        let is_near = |key: &Key| holder(RouteKey::of(mount.id, key, 0), &known.workers) == Some(near);
        let key = (0..looks).filter_map(|turn| alike(path.key(), turn)).find(is_near);
        if let Some(key) = key { ForebayPath::new(path.mount().clone(), key) } else { path }
    }
}

/// The same folder, ending and beginning of a name.
fn alike(key: &Key, turn: usize) -> Option<Key> {
    let text = key.as_str();
    let (folder, name) = text.split_at(text.rfind('/').map_or(0, |at| at + 1));
    let (stem, ending) = name.split_at(name.find('.').unwrap_or(name.len()));
    match turn {
        0 => Some(key.clone()),
        turn => Key::new(format!("{folder}{stem}-{turn}{ending}")).ok(),
    }
}

/// A draft under way: parts of any size come in, parts of the upload's size go out.
struct DraftUpload {
    shared: Arc<Shared>,
    location: String,
    upload: Option<Arc<PartUpload>>,
    buffer: PartBuffer,
    parts: u32,
    bytes: u64,
}

impl DraftUpload {
    fn upload(&self) -> Result<Arc<PartUpload>> {
        let over = || to_store_error(self.location.clone(), Failed::invalid("the upload is over already"));
        self.upload.clone().ok_or_else(over)
    }
}

#[async_trait]
impl MultipartUpload for DraftUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let upload = match self.upload() {
            Ok(upload) => upload,
            Err(error) => return async { Err(error) }.boxed(),
        };
        self.bytes += data.content_length() as u64;
        let sent = send_full(upload, (&mut self.buffer, &mut self.parts), data, self.location.clone());
        debug_assert!(self.bytes >= self.buffer.len() as u64, "what is held back has come");
        sent
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let upload = self.upload()?;
        assert!(self.buffer.len() < upload.part_bytes, "{} bytes were held back as a part", self.buffer.len());
        if self.buffer.len() > 0 {
            let rest = self.buffer.take(usize::MAX);
            upload.send(self.parts, rest).await.map_err(|error| to_store_error(self.location.clone(), error))?;
            self.parts += 1;
        }
        self.shared.made.lock().push(upload.draft(self.parts, self.bytes));
        // Whose it is from now on: who opened the drafts.
        self.upload = None;
        Ok(PutResult { e_tag: None, version: None })
    }

    async fn abort(&mut self) -> Result<()> {
        match self.upload.take() {
            Some(upload) => upload.abort().await.map_err(|error| to_store_error(self.location.clone(), error)),
            None => Ok(()),
        }
    }
}

impl Drop for DraftUpload {
    fn drop(&mut self) {
        if let Some(upload) = self.upload.take() {
            abandon(upload);
        }
    }
}

forebay_types::shown!(DraftUpload: location, parts);

impl fmt::Display for DraftStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Forebay drafts {:016x}", self.shared.operation.0)
    }
}

impl fmt::Debug for DraftStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DraftStore({self})")
    }
}

/// What a store of drafts is not for.
fn writes_only<T>() -> Result<T> {
    Err(Error::NotSupported { source: "what writes the files of a statement reads nothing".into() })
}

#[async_trait]
impl ObjectStore for DraftStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, _: PutOptions) -> Result<PutResult> {
        let mut upload = self.begin(location).await?;
        upload.put_part(payload).await?;
        upload.complete().await
    }

    async fn put_multipart_opts(&self, location: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Ok(Box::new(self.begin(location).await?))
    }

    async fn get_opts(&self, _: &Path, _: GetOptions) -> Result<GetResult> {
        writes_only()
    }

    fn delete_stream(&self, _: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        stream::once(async { writes_only() }).boxed()
    }

    fn list(&self, _: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        stream::once(async { writes_only() }).boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        writes_only()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        writes_only()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_alike_are_in_one_folder_and_of_one_kind() {
        let of = |key: &str, turn| alike(&Key::new(key).unwrap(), turn).unwrap().to_string();
        assert_eq!((of("a/b.csv.gz", 0), of("a/b.csv.gz", 3)), ("a/b.csv.gz".to_string(), "a/b-3.csv.gz".to_string()));
        assert_eq!((of("b", 1), of("a.b/c=1/x", 2)), ("b-1".to_string(), "a.b/c=1/x-2".to_string()));
    }
}
