//! One mount's storage as all others see it: every call comes in here, is checked, and goes to its kind of store.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use forebay_protocol::StorageCounters;
use forebay_trace::{Kind, Span};
use forebay_types::{Attributes, Error, Key, Mount, ObjectInfo, Result, check_object_bytes};
use tokio::sync::Notify;

use crate::backend::{Backend, Common};
use crate::bandwidth::{Limiter, Yielding};
use crate::body::Body;
use crate::counters::{Tally, measured};
use crate::files::Files;
use crate::forward::{Forward, Forwarded, Place};
use crate::http::{HttpClient, LinkLocal};
use crate::location::Location;
use crate::objects::Objects;
use crate::request::{Class, Get, ListPage, PutCondition};
use crate::retry::RetryPolicy;
use crate::s3::S3;
use crate::settings::StorageSettings;
use crate::upload::Upload;

/// One mount's door to its shared storage. Cheap to clone.
#[derive(Clone)]
pub struct Storage(Arc<Inner>);

struct Inner {
    mount: Mount,
    backend: Box<dyn Backend>,
    limiter: Arc<Limiter>,
    tally: Arc<Tally>,
}

impl Storage {
    /// Reads the mount's URL and finds credentials: in the environment (`AWS_*`, `GOOGLE_*`, `AZURE_*`) or a profile.
    /// Sends nothing; must be called within tokio. The mount's own bound holds until [`Self::set_share`].
    ///
    /// `Invalid` for a URL or an endpoint that is none, `Denied` for a profile that isn't there.
    pub fn open(mount: &Mount, settings: StorageSettings) -> Result<Self> {
        let bound = mount.options.bandwidth.map(|bound| bound.bytes_per_sec());
        Self::open_as(mount, settings, Limiter::new(bound, mount.options.burst_bytes()), Arc::default())
    }

    /// The same storage, within the same bound and counted with it, for who is patient in another way.
    pub fn again(&self, settings: StorageSettings) -> Result<Self> {
        Self::open_as(&self.0.mount, settings, Arc::clone(&self.0.limiter), Arc::clone(&self.0.tally))
    }

    fn open_as(mount: &Mount, settings: StorageSettings, limiter: Arc<Limiter>, tally: Arc<Tally>) -> Result<Self> {
        let policy = RetryPolicy { retries_max: settings.max_retries, deadline: settings.deadline };
        let location = Location::parse(&mount.url);
        // The credentials of the others' clouds come over the same client, some of them from such addresses.
        let link_local = if matches!(location, Ok(Location::S3(_))) { LinkLocal::Refused } else { LinkLocal::Allowed };
        let common = |https| {
            Ok(Common {
                mount: mount.id,
                name: mount.name.clone(),
                http: HttpClient::new(&limiter, &tally, settings.request_timeout, https, link_local)?,
                policy,
                tally: Arc::clone(&tally),
                yielding: Yielding::new(),
            })
        };
        let opened: Result<Box<dyn Backend>> = match location {
            Ok(Location::S3(bucket)) => S3::open(mount, bucket, &settings, common).map(|s3| Box::new(s3) as _),
            Ok(Location::Gcs(bucket)) => common(true).and_then(|common| Ok(Box::new(Objects::gcs(mount, bucket, common)?) as _)),
            Ok(Location::Azure(bucket)) => {
                common(true).and_then(|common| Ok(Box::new(Objects::azure(mount, bucket, common)?) as _))
            }
            Ok(Location::Files(folder)) => Ok(Box::new(Files::new(mount, folder, settings.request_timeout, &limiter, &tally))),
            Err(error) => Err(error),
        };
        let backend = opened.map_err(|error| error.context(format!("mount {}", mount.name)))?;
        Ok(Self(Arc::new(Inner { mount: mount.clone(), backend, limiter, tally })))
    }

    /// Whether shared storage answers, the bucket or folder is there, and the credentials are good for it.
    pub async fn check(&self) -> Result<()> {
        self.0.backend.check().await
    }

    /// Whether a file of this machine lies in the folder that it is, where it is one.
    pub fn holds(&self, file: &Path) -> bool {
        let Ok(Location::Files(folder)) = Location::parse(&self.0.mount.url) else { return false };
        let real = |path: &Path| std::fs::canonicalize(path);
        matches!((real(&folder), real(file)), (Ok(folder), Ok(file)) if file.starts_with(&folder))
    }

    /// The mount.
    pub fn mount(&self) -> &Mount {
        &self.0.mount
    }

    /// Opens an object for reading: one request gives its version and its bytes.
    ///
    /// `NotFound`; `Conflict` when it is not the version asked for; `Invalid` when the range starts past its end, or the object is
    /// larger than any can be; `Denied`;
    /// `Retry` when shared storage did not answer in time, retries included.
    pub async fn get(&self, get: Get<'_>) -> Result<Body> {
        get.range.check().map_err(|error| error.context(self.path(get.key)))?;
        self.readable(get.key)?;
        let mut span = self.span("storage get", Some(get.key));
        let opened = self.asked("get", self.0.backend.get(&get)).await.inspect_err(|error| span.fail(error))?;
        self.check_bytes(get.key, &opened.info)?;
        let bytes = opened.range.end - opened.range.start;
        span.set("forebay.bytes", || bytes);
        Ok(Body::new(opened, self.0.limiter.outstanding(get.class, bytes), span))
    }

    /// The version that an object has now.
    pub async fn head(&self, key: &Key) -> Result<ObjectInfo> {
        self.stat(key).await.map(|(info, _)| info)
    }

    /// The version that an object has now, and what the store says of it beside.
    pub async fn stat(&self, key: &Key) -> Result<(ObjectInfo, Attributes)> {
        self.readable(key)?;
        let mut span = self.span("storage head", Some(key));
        let (info, attributes) = self.asked("head", self.0.backend.head(key)).await.inspect_err(|error| span.fail(error))?;
        self.check_bytes(key, &info)?;
        Ok((info, attributes))
    }

    /// Where requests of S3's own go, when shared storage speaks S3.
    pub fn s3(&self) -> Option<Place> {
        self.0.backend.s3()
    }

    /// Passes a request of S3's own on and its answer back, whatever it says. `Invalid` when shared storage does not speak
    /// S3, `Denied` for a write to a read-only mount, `Retry` when there was no answer.
    pub async fn forward(&self, forward: Forward) -> Result<Forwarded> {
        if let Some(key) = &forward.key {
            self.readable(key)?;
        }
        if self.0.mount.options.read_only && !forward.reads() {
            return Err(Error::denied(format!("mount {} is read-only", self.0.mount.name)));
        }
        let mut span = self.span(forward.span_name(), forward.key.as_ref());
        let forwarded = self.asked("other", self.0.backend.forward(forward)).await.inspect_err(|error| span.fail(error))?;
        span.set("http.response.status_code", || u64::from(forwarded.status().as_u16()));
        Ok(forwarded)
    }

    /// A page of at most `limit` objects and folders whose keys start with `prefix`, in byte order, from behind `after`.
    /// With `folders`, what shares a prefix up to the next `/` is shown as one folder.
    pub async fn list(&self, prefix: &Key, folders: bool, after: Option<&Key>, limit: usize) -> Result<ListPage> {
        if limit == 0 {
            return Err(Error::invalid(format!("{}: a page of 0 keys is none", self.path(prefix))));
        }
        let mut span = self.span("storage list", Some(prefix));
        let listed = self.asked("list", self.0.backend.list(prefix, folders, after, limit)).await;
        listed.inspect_err(|error| span.fail(error))
    }

    /// Writes an object: all of it or nothing, acknowledged when shared storage has it. The time of modification that
    /// comes back may differ from what a later HEAD tells by a second.
    ///
    /// `Conflict` when the condition does not hold; `Denied` when the mount is read-only.
    pub async fn put(&self, key: &Key, payload: Vec<Bytes>, condition: PutCondition) -> Result<ObjectInfo> {
        self.writable(key)?;
        let mut span = self.span("storage put", Some(key));
        span.set("forebay.bytes", || payload.iter().map(|piece| piece.len() as u64).sum::<u64>());
        self.asked("put", self.0.backend.put(key, payload, &condition)).await.inspect_err(|error| span.fail(error))
    }

    /// Begins an object in parts, for what is too large to be in memory. `Denied` when the mount is read-only.
    pub async fn begin_upload(&self, key: &Key) -> Result<Upload> {
        self.writable(key)?;
        let mut span = self.span("storage begin upload", Some(key));
        let begun = self.asked("put", self.0.backend.begin_upload(key)).await;
        begun.map(Upload::new).inspect_err(|error| span.fail(error))
    }

    /// Gives up an upload that a process has begun which is no more, by its [`Upload::id`]; one that isn't there is given up already.
    /// `Denied` when the mount is read-only, `Invalid` where uploads have no ids.
    pub async fn abort_upload(&self, key: &Key, id: &str) -> Result<()> {
        self.writable(key)?;
        let mut span = self.span("storage abort upload", Some(key));
        self.asked("delete", self.0.backend.abort_upload(key, id)).await.inspect_err(|error| span.fail(error))
    }

    /// Removes an object; one that isn't there is removed already. Of a key that ends with `/` a folder of files removes what no file is in.
    /// `Denied` when the mount is read-only.
    pub async fn delete(&self, key: &Key) -> Result<()> {
        self.writable(key)?;
        let mut span = self.span("storage delete", Some(key));
        self.asked("delete", self.0.backend.delete(key)).await.inspect_err(|error| span.fail(error))
    }

    /// Bounds what is read, in bytes a second and bytes at once, from now on; none is no bound.
    ///
    /// In any second at most a bound and a burst are read, in any five seconds at most 1.02 bounds a second: a burst of
    /// more than a tenth of a second's bytes is cut to that, but not below 64 KiB.
    pub fn set_share(&self, bytes_per_sec: Option<u64>, burst_bytes: u64) {
        self.0.limiter.set(bytes_per_sec, burst_bytes);
    }

    /// Tells `waits`, and nobody who says so later, whenever something begins to be read: when bytes are to come, and when some came after
    /// none had for a while.
    pub fn tell_of_reads(&self, waits: Arc<Notify>) {
        self.0.limiter.tell_of_reads(waits);
    }

    /// Whether nothing is read: what would be read in a second is 0 from then on until somebody is told that something begins to be.
    pub fn is_still(&self) -> bool {
        self.0.limiter.is_still()
    }

    /// What would be read in a second on demand were there no bound: an estimate from what was read in the last one and, when somebody
    /// had to wait for the bound, what is still outstanding.
    pub fn demand_bytes_per_sec(&self) -> u64 {
        self.0.limiter.wanted_bytes_per_sec(Class::Demand)
    }

    /// The same of what is read ahead.
    pub fn ahead_bytes_per_sec(&self) -> u64 {
        self.0.limiter.wanted_bytes_per_sec(Class::Prefetch)
    }

    /// The same of background work.
    pub fn background_bytes_per_sec(&self) -> u64 {
        self.0.limiter.wanted_bytes_per_sec(Class::Background)
    }

    /// Requests and bytes since [`Self::open`].
    pub fn counters(&self) -> StorageCounters {
        self.0.tally.read()
    }

    /// What is wrong with shared storage or the way to it, in words: how the last request or try of one has ended, in the last minutes.
    pub fn trouble(&self) -> Option<String> {
        self.0.tally.trouble()
    }

    async fn asked<T>(&self, method: &'static str, call: impl Future<Output = Result<T>>) -> Result<T> {
        self.0.tally.watched(measured(method, call)).await
    }

    /// A request for what goes on here; of the bucket itself without a key.
    fn span(&self, name: &'static str, key: Option<&Key>) -> Span {
        let mut span = Span::below(forebay_trace::current(), name, Kind::Client);
        span.set("forebay.path", || key.map_or_else(|| format!("/{}", self.0.mount.name), |key| self.path(key)));
        span
    }

    fn path(&self, key: &Key) -> String {
        format!("/{}/{key}", self.0.mount.name)
    }

    fn check_bytes(&self, key: &Key, info: &ObjectInfo) -> Result<()> {
        check_object_bytes(info.version.size).map_err(|error| error.context(self.path(key)))
    }

    fn readable(&self, key: &Key) -> Result<()> {
        if key.as_str().is_empty() {
            return Err(Error::invalid(format!("{} is a mount, not an object: name a key below it", self.path(key))));
        }
        if key.has_dot_segment() {
            return Err(Error::invalid(format!(
                "{}: a key with \".\" or \"..\" between slashes can't be reached: file systems and HTTP resolve them",
                self.path(key)
            )));
        }
        Ok(())
    }

    fn writable(&self, key: &Key) -> Result<()> {
        if self.0.mount.options.read_only {
            return Err(Error::denied(format!("{}: mount {} is read-only", self.path(key), self.0.mount.name)));
        }
        self.readable(key)
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storage").field("mount", &self.0.mount.name).field("url", &self.0.mount.url).finish_non_exhaustive()
    }
}
