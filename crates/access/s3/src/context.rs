//! What all requests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use forebay_client::Client;
use forebay_transport::Budget;
use forebay_types::{ErrorKind, Mount, MountName};
use tokio::sync::Semaphore;

use crate::answer::{Date, Heads, LARGE_PIECES, now_ms};
use crate::auth::Keys;
use crate::body::Room;
use crate::dialect::{S3Error, S3Result};
use crate::drafts::Drafts;
use crate::meters::Meters;
use crate::mounts::{TEMPORARY, temporary_mount};
use crate::settings::GatewaySettings;

/// The gateway's own parts, and the client that it reads and writes through.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) keys: Keys,
    pub(crate) settings: GatewaySettings,
    /// Large pieces of answers that may be under way at once.
    pub(crate) large_pieces: Arc<Semaphore>,
    /// For what is held of uploads.
    pub(crate) room: Room,
    pub(crate) drafts: Drafts,
    pub(crate) meters: Meters,
    /// When the gateway began, in milliseconds since the Unix epoch.
    pub(crate) begun_ms: i64,
    /// The time of answers.
    pub(crate) date: Date,
    /// Headers of objects that were read.
    pub(crate) heads: Heads,
    next_id: AtomicU64,
}

/// What is asked for by this path fails by a defect, in tests.
#[cfg(test)]
pub(crate) const FAILS_ON: &str = "/poisoned/key";

impl Context {
    pub(crate) fn new(client: Client, settings: GatewaySettings) -> Arc<Self> {
        Arc::new(Self {
            client,
            keys: Keys::new(&settings.keys, settings.anonymous),
            room: Room::of(Budget::of_process(), settings.upload_bytes_max),
            drafts: Drafts::new(settings.upload_disk_bytes_max),
            settings,
            large_pieces: Arc::new(Semaphore::new(LARGE_PIECES)),
            meters: Meters::new(),
            begun_ms: now_ms(),
            date: Date::default(),
            heads: Heads::default(),
            next_id: AtomicU64::new(forebay_runtime::random()),
        })
    }

    pub(crate) fn request_id(&self) -> String {
        format!("{:016X}", self.next_id())
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed)
    }

    pub(crate) async fn mount(&self, bucket: &str) -> S3Result<Arc<Mount>> {
        if bucket == TEMPORARY {
            // Without a worker there is nothing that could have temporary data.
            return match self.client.view().workers.is_empty() {
                true => Err(S3Error::no_such_bucket().with("BucketName", bucket)),
                false => Ok(Arc::new(temporary_mount())),
            };
        }
        let name: MountName = bucket.parse().map_err(|_| S3Error::no_such_bucket().with("BucketName", bucket))?;
        self.client.mount(&name).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound => S3Error::no_such_bucket().with("BucketName", bucket),
            _ => error.into(),
        })
    }
}
