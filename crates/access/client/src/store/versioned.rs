//! The trait itself, over whichever version of an object counts.

use std::fmt;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use forebay_protocol::PutCondition;
use forebay_types::{ErrorKind, VersionTag};
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    Attributes, CopyMode, CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::errors::{STORE, to_store_error};
use super::get::Getter;
use super::listing;
use super::paths::from_store;
use super::temporary::TemporaryUpload;
use super::upload::StoreUpload;
use super::versions::{Versions, put_result};

/// The cluster as an [`ObjectStore`].
#[derive(Clone)]
pub struct Store<V> {
    pub(super) versions: V,
}

impl<V: Versions> Store<V> {
    pub(super) fn new(versions: V) -> Self {
        Self { versions }
    }

    fn getter(&self, location: &Path) -> Result<Getter<V>> {
        Getter::new(self.versions.clone(), location.clone())
    }
}

impl<V: Versions> fmt::Display for Store<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.versions, f)
    }
}

impl<V: Versions> fmt::Debug for Store<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.versions)
    }
}

/// Deletes under way at once.
const DELETES_AT_ONCE: usize = 10;
/// Bytes copied at once.
const COPY_BYTES: u64 = 8 << 20;

/// Attributes would be lost silently.
fn refuse_attributes(attributes: &Attributes) -> Result<()> {
    match attributes.is_empty() {
        true => Ok(()),
        false => Err(Error::NotImplemented { operation: "put with attributes".to_string(), implementer: STORE.to_string() }),
    }
}

#[async_trait]
impl<V: Versions> ObjectStore for Store<V> {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        refuse_attributes(&opts.attributes)?;
        let path = from_store(location)?;
        let condition = match &opts.mode {
            PutMode::Overwrite => PutCondition::Any,
            PutMode::Create => PutCondition::Absent,
            PutMode::Update(version) => match &version.e_tag {
                Some(e_tag) => PutCondition::Version(VersionTag::etag(e_tag)),
                None => {
                    return Err(Error::Generic { store: STORE, source: "an update needs the ETag of what it updates".into() });
                }
            },
        };
        let written = async {
            if path.mount().is_temporary() {
                return self.versions.objects().temporary.put(&path, payload.into(), condition).await;
            }
            let mut writer = self.versions.objects().writes.writer(&path).await?;
            for piece in payload {
                writer.write(piece).await?;
            }
            writer.finish_if(condition).await
        };
        match written.await {
            Ok(info) => {
                self.versions.written(&path, Some(&info));
                Ok(put_result(&info))
            }
            Err(error) if error.kind() == ErrorKind::Conflict && opts.mode == PutMode::Create => {
                Err(Error::AlreadyExists { path: location.to_string(), source: error.into() })
            }
            Err(error) => Err(to_store_error(location.as_ref(), error)),
        }
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        refuse_attributes(&opts.attributes)?;
        let (versions, path) = (self.versions.clone(), from_store(location)?);
        let error = |error| to_store_error(location.as_ref(), error);
        match path.mount().is_temporary() {
            true => Ok(Box::new(TemporaryUpload::begin(versions, path).await.map_err(error)?)),
            false => Ok(Box::new(StoreUpload::begin(versions, path).await.map_err(error)?)),
        }
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.getter(location)?.get(options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.getter(location)?.ranges(ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let versions = self.versions.clone();
        let delete = move |location: Result<Path>| {
            let versions = versions.clone();
            async move {
                let location = location?;
                let path = from_store(&location)?;
                let objects = versions.objects();
                let deleted = match path.mount().is_temporary() {
                    true => objects.temporary.delete(&path).await,
                    false => objects.writes.delete(&path).await,
                };
                deleted.map_err(|error| to_store_error(location.as_ref(), error))?;
                versions.written(&path, None);
                Ok(location)
            }
        };
        locations.map(delete).buffered(DELETES_AT_ONCE).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        listing::list(self.versions.clone(), prefix.cloned(), None)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        listing::list(self.versions.clone(), prefix.cloned(), Some(offset.clone()))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        listing::folder(&self.versions, prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let target = from_store(to)?;
        let condition = match options.mode {
            CopyMode::Overwrite => PutCondition::Any,
            CopyMode::Create => PutCondition::Absent,
        };
        let mut pieces = self.getter(from)?.stream(COPY_BYTES).await?;
        let objects = self.versions.objects();
        let error = |error| to_store_error(to.as_ref(), error);
        let copied = if target.mount().is_temporary() {
            let mut draft = objects.temporary.file(&target).await.map_err(error)?;
            while let Some(piece) = pieces.try_next().await? {
                objects.temporary.add(&target, &mut draft, piece).await.map_err(error)?;
            }
            objects.temporary.place(&target, draft, condition).await
        } else {
            let mut writer = objects.writes.writer(&target).await.map_err(error)?;
            while let Some(piece) = pieces.try_next().await? {
                writer.write(piece).await.map_err(error)?;
            }
            writer.finish_if(condition).await
        };
        match copied {
            Ok(info) => {
                self.versions.written(&target, Some(&info));
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Conflict && options.mode == CopyMode::Create => {
                Err(Error::AlreadyExists { path: to.to_string(), source: error.into() })
            }
            Err(failed) => Err(error(failed)),
        }
    }
}
