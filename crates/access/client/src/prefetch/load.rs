//! Loading versions, whole or in parts: background work, which gets what all others leave over.

use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use forebay_protocol::DataRequest;
use forebay_types::{
    Error, ErrorKind, ObjectVersion, OperationId, Result, RouteKey, SEGMENT_BYTES, Standing, check_object_bytes, split_range,
};
use futures::stream::{self, StreamExt};
use parking_lot::Mutex;

use super::{Prefetches, fetch};
use crate::connect::Failure;
use crate::read::Planned;

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
/// Ranges of one message.
const PART_RANGES: usize = 256;
/// Messages under way at once, and their bytes.
const PARTS_AT_ONCE: usize = 64;
const BYTES_AT_ONCE: u32 = 256 << 20;
/// How often a part is tried, and the pause after a worker that could not now.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);
/// How long a worker may let background work wait for all others: as long as it is there, which it is asked this often. After so many
/// questions in a row without an answer it is lost.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);
const LOOK_EVERY: Duration = Duration::from_secs(10);
const SILENT_LOOKS: u32 = 3;

impl Prefetches {
    /// Brings these versions into the tiers, whole; with `keep` they stay there.
    pub(crate) async fn load(
        &self,
        operation: OperationId,
        versions: Vec<ObjectVersion>,
        keep: bool,
        progress: impl Fn(u64) + Send + Sync,
    ) -> Result<Loaded> {
        let plan = versions.into_iter().map(|version| {
            let all = 0..version.size;
            (version, vec![all])
        });
        self.load_ranges(operation, plan.collect(), keep, progress).await
    }

    /// Brings these ranges of versions, in order and none twice, into the tiers; with `keep` their segments stay there.
    pub(crate) async fn load_ranges(
        &self,
        operation: OperationId,
        plan: Planned,
        keep: bool,
        progress: impl Fn(u64) + Send + Sync,
    ) -> Result<Loaded> {
        for (version, _) in &plan {
            let path = || self.routes.view.known().path_text(version.mount, &version.key);
            check_object_bytes(version.size).map_err(|error| error.context(path()))?;
        }
        let (done, fetched) = (AtomicU64::new(0), AtomicU64::new(0));
        let failed = Mutex::new((None, 0u64, None::<usize>));
        let load = (operation, Standing { priority: 0, began_ms: forebay_runtime::unix_ms() });
        let room = tokio::sync::Semaphore::new(BYTES_AT_ONCE as usize);
        let (versions, ranges): (Vec<_>, Vec<_>) = plan.into_iter().unzip();
        let parts = ranges.into_iter().enumerate().flat_map(|(ix, ranges)| parts(ranges).map(move |part| (ix, part)));
        stream::iter(parts)
            .map(|(ix, part)| {
                let version = &versions[ix];
                let len: u32 = part.iter().map(|(_, len)| *len).sum();
                assert!(len <= BYTES_AT_ONCE, "{len} bytes of a part would wait for ever");
                let (room, done, fetched, failed, progress) = (&room, &done, &fetched, &failed, &progress);
                async move {
                    // A closed semaphore is the only failure, and nobody closes this one.
                    let _room = room.acquire_many(len).await;
                    match self.load_part(load, version, part, keep).await {
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

/// The messages for ranges of an object, one by one, since an object that has nothing in it may have millions: each has some that lie within
/// one segment.
fn parts(ranges: Vec<Range<u64>>) -> impl Iterator<Item = Vec<(u64, u32)>> {
    let segments = ranges.into_iter().flat_map(split_range).map(|segment| segment.object_range());
    let pieces = segments.flat_map(|range| {
        let end = range.end;
        range.step_by(PART_BYTES as usize).map(move |start| (start, (end - start).min(PART_BYTES) as u32))
    });
    let mut pieces = pieces.peekable();
    std::iter::from_fn(move || {
        let (first, len) = pieces.next()?;
        let (mut part, mut bytes) = (vec![(first, len)], u64::from(len));
        while let Some((start, len)) = pieces.next_if(|(start, len)| {
            let is_same = first / SEGMENT_BYTES == start / SEGMENT_BYTES;
            is_same && part.len() < PART_RANGES && bytes + u64::from(*len) <= PART_BYTES
        }) {
            part.push((start, len));
            bytes += u64::from(len);
        }
        debug_assert!((1..=PART_RANGES).contains(&part.len()), "a part has ranges, and not too many");
        Some(part)
    })
}

impl Prefetches {
    /// Brings ranges of one segment.
    async fn load_part(
        &self,
        (operation, standing): (OperationId, Standing),
        version: &ObjectVersion,
        ranges: Vec<(u64, u32)>,
        keep: bool,
    ) -> Result<u64> {
        let index = ranges.first().map_or(0, |(start, _)| start / SEGMENT_BYTES) as u32;
        let route = RouteKey::of(version.mount, &version.key, index);
        let version = version.clone();
        let request = DataRequest::Prefetch { operation, version, ranges, keep, urgent: false, hold_ms: 0, standing };
        let mut last = Error::retry("the cluster has no worker to load into");
        let (began, mut tries) = (forebay_runtime::now(), 0);
        while tries < TRIES && began.elapsed() < PATIENCE {
            tries += 1;
            // Only at the worker that reads will go to: the next one is asked when the view says so, or when this one is gone.
            let known = self.routes.view.known_arc();
            let Some(worker) = self.routes.main_holder(route, &known) else { break };
            let Some(info) = known.worker(worker) else { break };
            let outcome = match self.routes.connections.link(info).await {
                Ok(link) => {
                    let fetched = fetch(&link, &request, PATIENCE);
                    while_there(fetched, LOOK_EVERY, || self.routes.is_there(&link)).await
                }
                Err(error) => Err(Failure::Unreached(error)),
            };
            match outcome {
                Ok(bytes) => return Ok(bytes),
                // Others go first: that is no failure.
                Err(Failure::Answered(error)) if error.retry_after().is_some() => {
                    tries -= 1;
                    forebay_runtime::time::sleep(error.retry_after().unwrap_or(PAUSE)).await;
                    last = error;
                }
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

/// Waits for an answer for as long as the worker says that it is there.
async fn while_there<T, There: Future<Output = Result<(), Failure>>>(
    answer: impl Future<Output = Result<T, Failure>>,
    look_every: Duration,
    is_there: impl Fn() -> There,
) -> Result<T, Failure> {
    let mut answer = pin!(answer);
    let mut silent = 0;
    loop {
        if let Ok(answer) = forebay_runtime::time::timeout(look_every, &mut answer).await {
            return answer;
        }
        match is_there().await {
            Ok(()) => silent = 0,
            Err(_) if silent + 1 < SILENT_LOOKS => silent += 1,
            Err(failure) => return Err(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use forebay_types::OBJECT_BYTES_MAX;

    use super::*;

    #[tokio::test]
    async fn background_work_waits_as_long_as_its_worker_is_there() {
        let (look, looks) = (Duration::from_millis(5), AtomicU32::new(0));
        let silent = || Failure::Unreached(Error::retry("silent"));
        // It says nothing every third time that it is asked.
        let often = || {
            let nth = looks.fetch_add(1, Ordering::Relaxed);
            std::future::ready(if nth % 3 == 2 { Err(silent()) } else { Ok(()) })
        };
        let late = async {
            while looks.load(Ordering::Relaxed) < 10 {
                forebay_runtime::time::sleep(look).await;
            }
            Ok(7)
        };
        assert_eq!(while_there(late, look, often).await.unwrap(), 7);
        let never = std::future::pending::<Result<u64, Failure>>();
        let gone = while_there(never, look, || std::future::ready(Err(silent()))).await;
        assert!(matches!(gone, Err(Failure::Unreached(_))));
        let broken = std::future::ready(Err::<u64, _>(Failure::Lost(Error::retry("the connection ended"))));
        assert!(matches!(while_there(broken, look, || std::future::ready(Ok(()))).await, Err(Failure::Lost(_))));
    }

    #[test]
    fn messages_have_ranges_of_one_segment_and_are_bounded() {
        const MIB: u64 = 1 << 20;
        let all = |ranges: &[Range<u64>]| parts(ranges.to_vec()).collect::<Vec<_>>();
        let whole = all(std::slice::from_ref(&(0..70 * MIB)));
        let starts: Vec<_> = whole.iter().map(|part| (part.len(), part[0].0 / MIB, u64::from(part[0].1) / MIB)).collect();
        assert_eq!(starts, [(1, 0, 16), (1, 16, 16), (1, 32, 16), (1, 48, 16), (1, 64, 6)]);
        let chunks = all(&[0..MIB, 5 * MIB..6 * MIB, 20 * MIB..35 * MIB, 60 * MIB..66 * MIB]);
        let chunks: Vec<Vec<_>> =
            chunks.iter().map(|part| part.iter().map(|(start, len)| (start / MIB, u64::from(*len) / MIB)).collect()).collect();
        assert_eq!(chunks, [vec![(0, 1), (5, 1)], vec![(20, 15)], vec![(60, 4)], vec![(64, 2)]]);
        assert_eq!(all(&(0..1000_u64).map(|at| at * 8192..at * 8192 + 4096).collect::<Vec<_>>()).len(), 4);
        assert!(all(&[]).is_empty());
        let largest = 0..OBJECT_BYTES_MAX;
        assert_eq!(parts(vec![largest.clone()]).nth(1), Some(vec![(PART_BYTES, PART_BYTES as u32)]), "made one by one");
    }
}
