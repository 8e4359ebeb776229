//! One store made of several by the first part of a path, which stands for mounts where an engine runs without Forebay.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, OBJECT_STORE_COALESCE_DEFAULT, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, coalesce_ranges,
};

use crate::stores::Seen;

/// Stores under names, as mounts are: the path `lake/x` is `x` in the store that is called `lake`. What Forebay does for a
/// client, this does for an engine that runs without Forebay.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    stores: Vec<(String, Arc<dyn ObjectStore>)>,
    /// Shared storage read without a mount: every read asks for the version that the query has seen first (`If-Match`), so
    /// that bytes of two versions never mix here either.
    pins: Option<Arc<Seen>>,
}

impl Routes {
    /// One store under one name, which is held to what a query has seen.
    pub(crate) fn of(name: &str, store: Arc<dyn ObjectStore>, pins: Option<Arc<Seen>>) -> Self {
        Self { stores: vec![(name.to_string(), store)], pins }
    }

    pub(crate) fn add(&mut self, name: &str, store: Arc<dyn ObjectStore>) {
        self.stores.retain(|(known, _)| known != name);
        self.stores.push((name.to_string(), store));
    }

    fn route(&self, path: &Path) -> Result<(&str, &Arc<dyn ObjectStore>, Path)> {
        let (name, rest) = path.as_ref().split_once('/').unwrap_or((path.as_ref(), ""));
        let (name, store) = self.stores.iter().find(|(known, _)| known == name).ok_or_else(|| Error::NotFound {
            path: path.to_string(),
            source: format!("there is no store called {name:?}").into(),
        })?;
        Ok((name, store, Path::parse(rest)?))
    }
}

fn below(name: &str, path: &Path) -> Path {
    Path::parse(format!("{name}/{path}")).unwrap_or_else(|_| path.clone())
}

fn with_name(name: &str, mut meta: ObjectMeta) -> ObjectMeta {
    meta.location = below(name, &meta.location);
    meta
}

impl fmt::Display for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.stores.iter().map(|(name, _)| name.as_str()).collect();
        write!(f, "Routes({})", names.join(", "))
    }
}

#[async_trait]
impl ObjectStore for Routes {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let (_, store, path) = self.route(location)?;
        store.put_opts(&path, payload, opts).await
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        let (_, store, path) = self.route(location)?;
        store.put_multipart_opts(&path, opts).await
    }

    async fn get_opts(&self, location: &Path, mut options: GetOptions) -> Result<GetResult> {
        if options.if_match.is_none() {
            options.if_match = self.pins.as_ref().and_then(|seen| seen.version(location)).and_then(|meta| meta.e_tag);
        }
        let (name, store, path) = self.route(location)?;
        let mut result = store.get_opts(&path, options).await?;
        result.meta = with_name(name, result.meta);
        Ok(result)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if self.pins.is_some() {
            let fetch = |range: Range<u64>| async move {
                let options = GetOptions { range: Some(range.into()), ..Default::default() };
                self.get_opts(location, options).await?.bytes().await
            };
            return coalesce_ranges(ranges, fetch, OBJECT_STORE_COALESCE_DEFAULT).await;
        }
        let (_, store, path) = self.route(location)?;
        store.get_ranges(&path, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let stores = Self { stores: self.stores.clone(), pins: None };
        locations
            .then(move |location| {
                let target = location.and_then(|location| {
                    let (_, store, path) = stores.route(&location)?;
                    Ok((location, Arc::clone(store), path))
                });
                async move {
                    let (location, store, path) = target?;
                    store.delete(&path).await.map(|()| location)
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let routed = match prefix {
            Some(prefix) if !prefix.as_ref().is_empty() => self.route(prefix),
            _ => Err(Error::NotSupported { source: "name a store: /NAME/...".into() }),
        };
        match routed {
            Ok((name, store, path)) => {
                let name = name.to_string();
                store.list(Some(&path)).map(move |meta| meta.map(|meta| with_name(&name, meta))).boxed()
            }
            Err(error) => futures::stream::once(async { Err(error) }).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let (name, store, path) = self.route(prefix.unwrap_or(&Path::default()))?;
        let listed = store.list_with_delimiter(Some(&path)).await?;
        Ok(ListResult {
            common_prefixes: listed.common_prefixes.iter().map(|prefix| below(name, prefix)).collect(),
            objects: listed.objects.into_iter().map(|meta| with_name(name, meta)).collect(),
        })
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let (from_name, store, from) = self.route(from)?;
        let (to_name, target, to) = self.route(to)?;
        if from_name == to_name {
            return store.copy_opts(&from, &to, options).await;
        }
        if options.mode != CopyMode::Overwrite {
            return Err(Error::NotSupported { source: "copies between stores overwrite".into() });
        }
        let bytes = store.get(&from).await?.bytes().await?;
        target.put(&to, bytes.into()).await.map(|_| ())
    }
}
