//! Datasets that stay open between requests.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use forebay_client::Client;
use forebay_shards::{Shards, latest_manifest};
use forebay_types::{Error, ErrorKind, ForebayPath, Result};
use lru::LruCache;
use parking_lot::Mutex;

use super::visit::MayRead;

/// Datasets that are open at a time.
const OPENED_MAX: usize = 64;
/// How long a dataset is taken as it is without another look for a later manifest.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// Datasets that were asked before: what is known of their workers' queues is of use to the next request.
pub(super) struct Opened {
    client: Client,
    known: Mutex<LruCache<ForebayPath, Known>>,
}

#[derive(Clone)]
struct Known {
    shards: Shards,
    looked: Instant,
}

impl Opened {
    pub(super) fn new(client: Client) -> Self {
        Self { client, known: Mutex::new(LruCache::new(NonZeroUsize::new(OPENED_MAX).expect("not 0"))) }
    }

    /// The dataset that a caller may read, at its latest manifest as the mount's rule has it, at most a second ago. `NotFound` when
    /// there is none.
    pub(super) async fn open(&self, may: &MayRead) -> Result<Shards> {
        let path = may.dataset();
        let known = self.known.lock().get(path).cloned();
        if let Some(known) = known {
            if known.looked.elapsed() < LOOK_AFTER {
                return Ok(known.shards);
            }
            if self.is_current(&known.shards, path).await? {
                return Ok(self.keep(path, known.shards));
            }
        }
        let opened = Shards::open(&self.client, path).await;
        if opened.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            self.known.lock().pop(path);
        }
        Ok(self.keep(path, opened?))
    }

    /// Whether nobody has put another one in its place, nor another mount under its name.
    async fn is_current(&self, shards: &Shards, path: &ForebayPath) -> Result<bool> {
        let mount = self.client.mount(path.mount()).await?;
        Ok(mount.id == shards.id().mount && latest_manifest(&self.client, path).await? == Some(shards.manifest()))
    }

    fn keep(&self, path: &ForebayPath, shards: Shards) -> Shards {
        let known = Known { shards: shards.clone(), looked: forebay_runtime::now() };
        self.known.lock().put(path.clone(), known);
        shards
    }

    /// What a question has failed with says whether the dataset is to be looked at anew: what its manifest names may be gone.
    pub(super) fn failed(&self, may: &MayRead, error: &Error) {
        if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Conflict) {
            self.known.lock().pop(may.dataset());
        }
    }
}
