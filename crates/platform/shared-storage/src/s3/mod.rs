//! S3 and what speaks it, by requests of our own, since keys must arrive byte for byte.

mod address;
mod answer;
mod call;
mod checked;
mod credentials;
mod forward;
mod get;
mod list;
mod put;
mod refusal;
mod send;
mod sign;
mod upload;
mod xml;

use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use forebay_types::{Attributes, Key, Mount, ObjectInfo, ObjectVersion, Result, VersionTag};
use http::{HeaderValue, Method};

use crate::backend::{Backend, Common, Opened, Parts};
use crate::forward::{Forward, Forwarded, Place};
use crate::location::Bucket;
use crate::request::{Class, Get, ListPage, PutCondition};
use crate::retry::Tries;
use crate::settings::StorageSettings;
use address::Address;
use call::{Call, Kind};
use credentials::Credentials;

/// One bucket, or what is below a prefix in it.
#[derive(Clone)]
pub(crate) struct S3(Arc<Inner>);

pub(crate) struct Inner {
    common: Common,
    bucket: Bucket,
    address: Address,
    region: String,
    credentials: Credentials,
}

impl Deref for S3 {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl S3 {
    /// Finds the endpoint, the region and the credentials. Sends nothing.
    pub(crate) fn open(
        mount: &Mount,
        bucket: Bucket,
        settings: &StorageSettings,
        common: impl FnOnce(bool) -> Result<Common>,
    ) -> Result<Self> {
        let profile = credentials::Profile::find(mount.options.profile.as_deref())?;
        let region = credentials::region(mount, profile.as_ref());
        let address = Address::of(mount, &bucket, &region, profile.as_ref())?;
        let credentials = Credentials::find(mount, settings, profile, &region)?;
        Ok(Self(Arc::new(Inner { common: common(address.is_https())?, bucket, address, region, credentials })))
    }
}

impl Inner {
    /// How the object is called in errors.
    fn path(&self, key: &str) -> String {
        self.common.path(key)
    }

    fn info(&self, key: &Key, tag: VersionTag, size: u64, modified_ms: i64) -> ObjectInfo {
        ObjectInfo { version: ObjectVersion { mount: self.common.mount, key: key.clone(), tag, size }, modified_ms }
    }
}

#[async_trait]
impl Backend for S3 {
    async fn check(&self) -> Result<()> {
        let mut call = Call::bucket(Method::GET, Kind::List, "");
        call.query = vec![("list-type", "2".into()), ("max-keys", "1".into()), ("prefix", self.bucket.prefix.clone())];
        self.call_text(&call).await.map(|_| ())
    }

    async fn get(&self, get: &Get<'_>) -> Result<Opened> {
        self.open_object(get).await
    }

    async fn head(&self, key: &Key) -> Result<(ObjectInfo, Attributes)> {
        let mut call = Call::object(Method::HEAD, Kind::Head, self.bucket.full_key(key.as_str()), key.as_str());
        call.headers.insert(answer::CHECKSUM_MODE, HeaderValue::from_static("ENABLED"));
        let answer = self.call(&call, Class::Demand).await?;
        let info = answer::info_of(self, key, answer.headers(), answer::length(answer.headers()))?;
        Ok((info, answer::attributes(answer.headers(), true)))
    }

    async fn list(&self, prefix: &Key, folders: bool, after: Option<&Key>, limit: usize) -> Result<ListPage> {
        self.list_keys(prefix, folders, after, limit).await
    }

    async fn put(&self, key: &Key, payload: Vec<Bytes>, condition: &PutCondition) -> Result<ObjectInfo> {
        self.put_object(key, payload, condition).await
    }

    async fn begin_upload(&self, key: &Key) -> Result<Box<dyn Parts>> {
        Ok(Box::new(upload::S3Parts::begin(self.clone(), key).await?))
    }

    async fn abort_upload(&self, key: &Key, id: &str) -> Result<()> {
        upload::S3Parts::of(self.clone(), key, id.to_string()).abort().await
    }

    fn s3(&self) -> Option<Place> {
        Some(Place {
            bucket: self.bucket.name.clone(),
            prefix: self.bucket.prefix.clone(),
            endpoint: self.address.endpoint.clone(),
        })
    }

    async fn forward(&self, forward: Forward) -> Result<Forwarded> {
        self.pass_on(forward).await
    }

    async fn delete(&self, key: &Key) -> Result<()> {
        let call = Call::object(Method::DELETE, Kind::Delete, self.bucket.full_key(key.as_str()), key.as_str());
        let mut tries = Tries::new(self.common.policy, &self.common.tally);
        loop {
            match self.attempt(&call, Class::Demand).await {
                Ok(_) => return Ok(()),
                // It is gone, which is all that was wanted.
                Err(failure) if failure.is(404) && failure.answered.as_ref().is_some_and(|said| said.code != "NoSuchBucket") => {
                    return Ok(());
                }
                Err(failure) => tries.pause(failure).await?,
            }
        }
    }
}
