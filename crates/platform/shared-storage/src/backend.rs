//! What each kind of shared storage must be able to do; all that is common to them is done before it is asked.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use forebay_types::{Attributes, Error, Key, MountId, MountName, ObjectInfo, Result};

use crate::bandwidth::Yielding;
use crate::counters::Tally;
use crate::forward::{Forward, Forwarded, Place};
use crate::http::HttpClient;
use crate::request::{Get, ListPage, PutCondition};
use crate::retry::RetryPolicy;

/// One kind of shared storage. Keys are checked and the mount is writable where it must be before any of these is called.
#[async_trait]
pub(crate) trait Backend: Send + Sync {
    async fn check(&self) -> Result<()>;
    async fn get(&self, get: &Get<'_>) -> Result<Opened>;
    async fn head(&self, key: &Key) -> Result<(ObjectInfo, Attributes)>;
    async fn list(&self, prefix: &Key, folders: bool, after: Option<&Key>, limit: usize) -> Result<ListPage>;
    async fn put(&self, key: &Key, payload: Vec<Bytes>, condition: &PutCondition) -> Result<ObjectInfo>;
    async fn begin_upload(&self, key: &Key) -> Result<Box<dyn Parts>>;
    async fn delete(&self, key: &Key) -> Result<()>;

    /// Gives up an upload by its [`Parts::id`].
    async fn abort_upload(&self, key: &Key, id: &str) -> Result<()> {
        Err(Error::invalid(format!("{key}: uploads to this storage have no id such as {id:?}")))
    }

    /// Where S3's own requests go; none for what does not speak S3.
    fn s3(&self) -> Option<Place> {
        None
    }

    /// Passes a request of S3's own on. Only where [`Self::s3`] says so.
    async fn forward(&self, forward: Forward) -> Result<Forwarded> {
        let _ = forward;
        Err(Error::invalid("this storage does not speak S3"))
    }
}

/// What every back end that speaks HTTP needs.
pub(crate) struct Common {
    pub(crate) mount: MountId,
    pub(crate) name: MountName,
    pub(crate) http: HttpClient,
    pub(crate) policy: RetryPolicy,
    pub(crate) tally: Arc<Tally>,
    pub(crate) yielding: Arc<Yielding>,
}

impl Common {
    /// How an object is called in errors.
    pub(crate) fn path(&self, key: &str) -> String {
        format!("/{}/{key}", self.name)
    }
}

/// An object that is being read.
pub(crate) struct Opened {
    pub(crate) info: ObjectInfo,
    pub(crate) attributes: Attributes,
    pub(crate) range: Range<u64>,
    pub(crate) source: Box<dyn Source>,
}

/// The bytes of a range, in order; ends after the last, or with an error.
#[async_trait]
pub(crate) trait Source: Send {
    async fn next(&mut self) -> Option<Result<Bytes>>;

    /// Whether the last bytes come only where all of them are what the store says of them.
    fn is_checked(&self) -> bool {
        false
    }
}

/// An object that is being written in parts.
#[async_trait]
pub(crate) trait Parts: Send + Sync {
    /// By which any process can give it up; none where there is none.
    fn id(&self) -> Option<&str> {
        None
    }
    fn part_bytes(&self) -> u64;
    async fn put(&self, index: u32, payload: Vec<Bytes>) -> Result<()>;
    async fn commit(&self, parts: u32, condition: &PutCondition) -> Result<ObjectInfo>;
    async fn abort(&self) -> Result<()>;
}
