//! GCS and Azure, through `object_store`, over this crate's own HTTP client: so the bound and the counters hold here too.
//!
//! `object_store` can't say every key: those that it would change (`a//b`, a trailing `/`) are `Invalid`.

mod connector;
mod get;
mod refusal;
mod upload;

use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use forebay_types::{Attributes, Error, Key, Mount, ObjectInfo, ObjectVersion, Result, VersionTag};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{
    GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, RetryConfig, StaticCredentialProvider,
    UpdateVersion,
};

use crate::backend::{Backend, Common, Opened, Parts};
use crate::location::Bucket;
use crate::request::{Get, ListPage, PutCondition, behind};
use connector::Connector;
use refusal::Service;

/// Most keys that are asked for at once.
const PAGE_MAX: usize = 1000;

/// One bucket or container, or what is below a prefix in it.
#[derive(Clone)]
pub(crate) struct Objects(Arc<Inner>);

pub(crate) struct Inner {
    common: Arc<Common>,
    bucket: Bucket,
    service: Service,
    store: Arc<dyn ObjectStore>,
    pages: Arc<dyn PaginatedListStore>,
    uploads: Arc<dyn MultipartStore>,
}

impl Deref for Objects {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Objects {
    /// A bucket of Google Cloud Storage, with what the environment says (`GOOGLE_*`).
    pub(crate) fn gcs(mount: &Mount, bucket: Bucket, common: Common) -> Result<Self> {
        let common = Arc::new(common);
        let mut builder = GoogleCloudStorageBuilder::from_env()
            .with_bucket_name(&bucket.name)
            .with_http_connector(Connector::new(&common, mount.options.anonymous))
            .with_retry(retry(&common))
            .with_skip_signature(mount.options.anonymous);
        if mount.options.anonymous {
            // Writes would fetch a token all the same; the connector takes this one off again.
            let none = GcpCredential { bearer: String::new() };
            builder = builder.with_credentials(Arc::new(StaticCredentialProvider::new(none)));
        }
        if let Some(endpoint) = &mount.options.endpoint {
            builder = builder.with_base_url(endpoint);
        }
        let store = Arc::new(builder.build().map_err(|error| Service::Gcs.unusable(&error))?);
        Ok(Self::of(common, bucket, Service::Gcs, store))
    }

    /// A container of Azure Blob Storage, with what the environment says (`AZURE_*`).
    pub(crate) fn azure(mount: &Mount, bucket: Bucket, common: Common) -> Result<Self> {
        let common = Arc::new(common);
        let mut builder = MicrosoftAzureBuilder::from_env()
            .with_container_name(&bucket.name)
            .with_http_connector(Connector::new(&common, mount.options.anonymous))
            .with_retry(retry(&common))
            .with_skip_signature(mount.options.anonymous);
        if let Some(endpoint) = &mount.options.endpoint {
            builder = builder.with_endpoint(endpoint.clone()).with_allow_http(endpoint.starts_with("http://"));
        }
        let store = Arc::new(builder.build().map_err(|error| Service::Azure.unusable(&error))?);
        Ok(Self::of(common, bucket, Service::Azure, store))
    }

    fn of<S>(common: Arc<Common>, bucket: Bucket, service: Service, store: Arc<S>) -> Self
    where
        S: ObjectStore + PaginatedListStore + MultipartStore,
    {
        let (pages, uploads) = (Arc::clone(&store) as _, Arc::clone(&store) as _);
        Self(Arc::new(Inner { common, bucket, service, store, pages, uploads }))
    }
}

/// `object_store` retries what it sends; bodies that break are taken up here.
fn retry(common: &Common) -> RetryConfig {
    RetryConfig { max_retries: common.policy.retries_max as usize, retry_timeout: common.policy.deadline, ..Default::default() }
}

impl Inner {
    /// How an object is called in errors.
    fn path(&self, key: &str) -> String {
        self.common.path(key)
    }

    /// The key as `object_store` names it. `Invalid` when it can't, byte for byte.
    fn location(&self, key: &Key) -> Result<Path> {
        let full = self.bucket.full_key(key.as_str());
        Path::parse(&full).ok().filter(|path| path.as_ref() == full).ok_or_else(|| {
            Error::invalid(format!(
                "{}: this key can't be reached on {}: use one without empty parts (\"a//b\", \"a/\") and control characters",
                self.path(key.as_str()),
                self.service
            ))
        })
    }

    fn info(&self, key: &Key, tag: Option<&str>, size: u64, modified_ms: i64) -> ObjectInfo {
        let tag = match tag {
            Some(tag) => VersionTag::etag(tag),
            None => VersionTag::modified(size, i128::from(modified_ms.div_euclid(1000)) * 1_000_000_000),
        };
        ObjectInfo { version: ObjectVersion { mount: self.common.mount, key: key.clone(), tag, size }, modified_ms }
    }

    fn info_of(&self, key: &Key, meta: &ObjectMeta) -> ObjectInfo {
        self.info(key, meta.e_tag.as_deref(), meta.size, meta.last_modified.timestamp_millis())
    }

    fn failed(&self, key: &str, error: object_store::Error) -> Error {
        refusal::refusal(self, key, error)
    }

    /// A listed key as it is below the mount.
    fn key_of(&self, path: &str) -> Option<Key> {
        path.strip_prefix(&self.bucket.prefix).and_then(|key| Key::new(key).ok()).filter(|key| !key.as_str().is_empty())
    }

    /// The condition of a write as the store takes it.
    async fn mode(&self, key: &Key, location: &Path, condition: &PutCondition) -> Result<PutMode> {
        let PutCondition::Version(tag) = condition else {
            return Ok(if *condition == PutCondition::Absent { PutMode::Create } else { PutMode::Overwrite });
        };
        // GCS compares a number of its own, which is looked up by the tag.
        let gone = |error| match error {
            object_store::Error::NotFound { .. } => {
                Error::conflict(format!("{}: version {tag} is gone", self.path(key.as_str())))
            }
            error => self.failed(key.as_str(), error),
        };
        let there = self.store.get_opts(location, GetOptions { head: true, ..Default::default() }).await.map_err(gone)?.meta;
        if there.e_tag.as_deref() != Some(tag.as_str()) {
            return Err(Error::conflict(format!("{}: version {tag} is not the current one", self.path(key.as_str()))));
        }
        Ok(PutMode::Update(UpdateVersion { e_tag: there.e_tag, version: there.version }))
    }
}

#[async_trait]
impl Backend for Objects {
    async fn check(&self) -> Result<()> {
        let options = PaginatedListOptions { max_keys: Some(1), ..Default::default() };
        let prefix = Some(self.bucket.prefix.as_str()).filter(|prefix| !prefix.is_empty());
        match self.pages.list_paginated(prefix, options).await {
            Ok(_) => Ok(()),
            Err(object_store::Error::NotFound { .. }) => Err(Error::not_found(format!(
                "{}: {} has no bucket {:?}: check the mount's URL",
                self.path(""),
                self.service,
                self.bucket.name
            ))),
            Err(error) => Err(self.failed("", error)),
        }
    }

    async fn get(&self, get: &Get<'_>) -> Result<Opened> {
        self.open_object(get).await
    }

    async fn head(&self, key: &Key) -> Result<(ObjectInfo, Attributes)> {
        let meta = self.store.head(&self.location(key)?).await.map_err(|error| self.failed(key.as_str(), error))?;
        Ok((self.info_of(key, &meta), Attributes { complete: true, ..Attributes::default() }))
    }

    async fn list(&self, prefix: &Key, folders: bool, after: Option<&Key>, limit: usize) -> Result<ListPage> {
        let mut listing = ListPage::default();
        let full_prefix = self.bucket.full_key(prefix.as_str());
        let mut token = None;
        loop {
            let have = listing.objects.len() + listing.folders.len();
            if have >= limit {
                let object = listing.objects.last().map(|object| &object.version.key);
                listing.next = object.max(listing.folders.last()).cloned();
                return Ok(listing);
            }
            let options = PaginatedListOptions {
                offset: after.filter(|_| token.is_none()).map(|after| self.bucket.full_key(&behind(prefix, folders, after))),
                delimiter: folders.then_some("/".into()),
                max_keys: Some((limit - have).min(PAGE_MAX)),
                page_token: token.clone(),
                ..Default::default()
            };
            let page = self.pages.list_paginated(Some(full_prefix.as_str()).filter(|prefix| !prefix.is_empty()), options).await;
            let page = page.map_err(|error| self.failed(prefix.as_str(), error))?;
            for meta in &page.result.objects {
                if let Some(key) = self.key_of(meta.location.as_ref()).filter(|key| after.is_none_or(|after| key > after)) {
                    listing.objects.push(self.info_of(&key, meta));
                }
            }
            for folder in &page.result.common_prefixes {
                let folder = self.key_of(&format!("{folder}/"));
                listing.folders.extend(folder.filter(|folder| after.is_none_or(|after| folder > after)));
            }
            let Some(next) = page.page_token else { return Ok(listing) };
            if token.as_ref() == Some(&next) {
                let path = self.path(prefix.as_str());
                return Err(Error::internal(format!("{path}: {}'s listing goes on where it was", self.service)));
            }
            token = Some(next);
        }
    }

    async fn put(&self, key: &Key, payload: Vec<Bytes>, condition: &PutCondition) -> Result<ObjectInfo> {
        let location = self.location(key)?;
        let mode = self.mode(key, &location, condition).await?;
        let payload = PutPayload::from_iter(payload);
        let size = payload.content_length() as u64;
        let options = PutOptions { mode, ..Default::default() };
        let put = self.store.put_opts(&location, payload, options).await;
        let put = put.map_err(|error| self.failed(key.as_str(), error))?;
        match &put.e_tag {
            Some(tag) => Ok(self.info(
                key,
                Some(tag),
                size,
                chrono::DateTime::<chrono::Utc>::from(forebay_runtime::system_time()).timestamp_millis(),
            )),
            None => self.head(key).await.map(|(info, _)| info),
        }
    }

    async fn begin_upload(&self, key: &Key) -> Result<Box<dyn Parts>> {
        Ok(Box::new(upload::ObjectParts::begin(self.clone(), key).await?))
    }

    async fn delete(&self, key: &Key) -> Result<()> {
        match self.store.delete(&self.location(key)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(key.as_str(), error)),
        }
    }
}
