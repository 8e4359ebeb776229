//! Loading whole versions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use forebay_protocol::DataRequest;
use forebay_types::{
    Error, ErrorKind, ObjectVersion, OperationId, Result, RouteKey, SEGMENT_BYTES, check_object_bytes, split_range,
};
use futures::stream::{self, StreamExt};
use parking_lot::Mutex;

use super::{Prefetches, fetch};
use crate::connect::Failure;

/// What a load did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Objects that are in the tiers now.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Of these, bytes that were fetched from shared storage for it; the rest was there.
    pub bytes_fetched: u64,
}

/// Bytes of one message: how fine the progress is, and how many requests shared storage sees.
const PART_BYTES: u64 = 16 << 20;
/// Messages under way at once, and their bytes.
const PARTS_AT_ONCE: usize = 64;
const BYTES_AT_ONCE: u32 = 256 << 20;
/// How often a part is tried, and the pause after a worker that could not now.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);

impl Prefetches {
    /// Brings these versions into the tiers, whole; with `keep` they stay there.
    pub(crate) async fn load(
        &self,
        operation: OperationId,
        versions: Vec<ObjectVersion>,
        keep: bool,
        progress: impl Fn(u64) + Send + Sync,
    ) -> Result<Loaded> {
        for version in &versions {
            let path = || self.routes.view.known().path_text(version.mount, &version.key);
            check_object_bytes(version.size).map_err(|error| error.context(path()))?;
        }
        let (done, fetched) = (AtomicU64::new(0), AtomicU64::new(0));
        let failed = Mutex::new((None, 0u64, None::<usize>));
        let room = tokio::sync::Semaphore::new(BYTES_AT_ONCE as usize);
        let parts = (0..versions.len()).flat_map(|ix| parts(versions[ix].size).map(move |part| (ix, part)));
        stream::iter(parts)
            .map(|(ix, (start, len))| {
                let version = &versions[ix];
                let (room, done, fetched, failed, progress) = (&room, &done, &fetched, &failed, &progress);
                async move {
                    // A closed semaphore is the only failure, and nobody closes this one.
                    let _room = room.acquire_many(len).await;
                    match self.load_part(operation, version, (start, len), keep).await {
                        Ok(bytes) => {
                            fetched.fetch_add(bytes, Ordering::Relaxed);
                            progress(done.fetch_add(u64::from(len), Ordering::Relaxed) + u64::from(len));
                        }
                        Err(error) => {
                            let mut failed = failed.lock();
                            // Parts of one object fail together.
                            if failed.2 != Some(ix) {
                                failed.1 += 1;
                                failed.2 = Some(ix);
                            }
                            let path = self.routes.view.known().path_text(version.mount, &version.key);
                            failed.0.get_or_insert_with(|| error.context(path));
                        }
                    }
                }
            })
            .buffer_unordered(PARTS_AT_ONCE)
            .for_each(|()| std::future::ready(()))
            .await;
        match failed.into_inner() {
            (Some(error), failed, _) => {
                Err(error.context(format!("{failed} of {} objects could not be loaded; the first", versions.len())))
            }
            (None, ..) => {
                Ok(Loaded { objects: versions.len() as u64, bytes: done.into_inner(), bytes_fetched: fetched.into_inner() })
            }
        }
    }
}

/// The messages for an object of that size: ranges that lie within one segment.
fn parts(size: u64) -> impl Iterator<Item = (u64, u32)> {
    split_range(0..size).flat_map(|segment| {
        let range = segment.object_range();
        range.clone().step_by(PART_BYTES as usize).map(move |start| (start, (range.end - start).min(PART_BYTES) as u32))
    })
}

impl Prefetches {
    async fn load_part(&self, operation: OperationId, version: &ObjectVersion, range: (u64, u32), keep: bool) -> Result<u64> {
        let route = RouteKey::of(version.mount, &version.key, (range.0 / SEGMENT_BYTES) as u32);
        let request =
            DataRequest::Prefetch { operation, version: version.clone(), ranges: vec![range], keep, urgent: false, hold_ms: 0 };
        let mut last = Error::retry("the cluster has no worker to load into");
        for _ in 0..TRIES {
            // Only at the worker that reads will go to: the next one is asked when the view says so, or when this one is gone.
            let known = self.routes.view.known_arc();
            let Some(worker) = self.routes.main_holder(route, &known) else { break };
            let Some(info) = known.worker(worker) else { break };
            let outcome = match self.routes.connections.link(info).await {
                Ok(link) => fetch(&link, &request).await,
                Err(error) => Err(Failure::Unreached(error)),
            };
            match outcome {
                Ok(bytes) => return Ok(bytes),
                // A worker that is short of room or whose storage is slow says so; nobody waits here but this load.
                Err(Failure::Answered(error)) if error.kind() == ErrorKind::Retry => {
                    last = error;
                    forebay_runtime::time::sleep(PAUSE).await;
                }
                Err(Failure::Answered(error)) => return Err(error),
                Err(Failure::Unreached(error) | Failure::Lost(error)) => {
                    self.routes.lost(worker);
                    last = error;
                }
            }
        }
        Err(last)
    }
}
