//! A directory, NFS among them. Keys are paths below it, byte for byte; nothing outside is ever reached.

mod folder;
mod list;
mod name;
mod read;
mod upload;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use forebay_types::{Attributes, Error, Key, Mount, MountId, MountName, ObjectInfo, Result, VersionTag};

use crate::backend::{Backend, Opened, Parts};
use crate::bandwidth::Limiter;
use crate::counters::{Tally, count, count_by};
use crate::request::{Condition, Get, Listing};

/// A folder as shared storage. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Files(Arc<Inner>);

pub(crate) struct Inner {
    mount: MountId,
    name: MountName,
    folder: PathBuf,
    limiter: Arc<Limiter>,
    tally: Arc<Tally>,
}

impl Files {
    pub(crate) fn new(mount: &Mount, folder: PathBuf, limiter: &Arc<Limiter>, tally: &Arc<Tally>) -> Self {
        let (limiter, tally) = (Arc::clone(limiter), Arc::clone(tally));
        Self(Arc::new(Inner { mount: mount.id, name: mount.name.clone(), folder, limiter, tally }))
    }

    /// Runs what may wait for a disk or a server aside.
    async fn aside<T: Send + 'static>(&self, work: impl FnOnce(&Inner) -> Result<T> + Send + 'static) -> Result<T> {
        let files = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || work(&files)).await;
        done.map_err(|error| Error::internal("a file operation was broken off").with_source(error))?
    }
}

impl Inner {
    /// How an object is called in errors.
    fn path(&self, key: &str) -> String {
        format!("/{}/{key}", self.name)
    }

    fn info(&self, key: &Key, stat: &rustix::fs::Stat) -> ObjectInfo {
        let tag = name::tag(stat);
        let version = forebay_types::ObjectVersion { mount: self.mount, key: key.clone(), tag, size: stat.st_size as u64 };
        ObjectInfo { version, modified_ms: name::modified_ns(stat).div_euclid(1_000_000) as i64 }
    }

    fn conflict(&self, key: &Key, wanted: &VersionTag, there: &VersionTag) -> Error {
        Error::conflict(format!("{}: version {wanted} was asked for, it is {there} now", self.path(key.as_str())))
    }
}

#[async_trait]
impl Backend for Files {
    async fn check(&self) -> Result<()> {
        self.aside(|files| files.check_folder()).await
    }

    async fn get(&self, get: &Get<'_>) -> Result<Opened> {
        count(&self.0.tally.gets);
        read::open(self, get).await
    }

    async fn head(&self, key: &Key) -> Result<(ObjectInfo, Attributes)> {
        count(&self.0.tally.heads);
        let key = key.clone();
        self.aside(move |files| {
            files.open_file(&key).map(|(_, _, info)| (info, Attributes { complete: true, ..Attributes::default() }))
        })
        .await
    }

    async fn list(&self, prefix: &Key, folders: bool, after: Option<&Key>, limit: usize) -> Result<Listing> {
        count(&self.0.tally.lists);
        let (prefix, after) = (prefix.clone(), after.cloned());
        self.aside(move |files| list::list(files, &prefix, folders, after.as_ref(), limit)).await
    }

    async fn put(&self, key: &Key, payload: Vec<Bytes>, condition: &Condition) -> Result<ObjectInfo> {
        count(&self.0.tally.puts);
        count_by(&self.0.tally.bytes_out, payload.iter().map(|piece| piece.len() as u64).sum());
        let (key, condition) = (key.clone(), condition.clone());
        self.aside(move |files| files.write(&key, &payload, &condition)).await
    }

    async fn begin_upload(&self, key: &Key) -> Result<Box<dyn Parts>> {
        count(&self.0.tally.puts);
        let (upload_key, files) = (key.clone(), self.clone());
        let draft = self.aside(move |inner| inner.draft(&upload_key)).await?;
        Ok(Box::new(upload::FileParts::new(files, key.clone(), draft)))
    }

    async fn delete(&self, key: &Key) -> Result<()> {
        count(&self.0.tally.deletes);
        let key = key.clone();
        self.aside(move |files| files.remove(&key)).await
    }
}
