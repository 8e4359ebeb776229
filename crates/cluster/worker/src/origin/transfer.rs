//! One request to shared storage, from its turn to the tier.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use forebay_block_store::{BlockStore, Fill, SegmentSpec};
use forebay_shared_storage::{Body, Class, Get, GetRange};
use forebay_types::{Error, ErrorKind, Owner, PAGE_BYTES, PageRun, Result};

use super::admission::Permit;
use super::flight::{Flight, Landed, Wanted};
use crate::segment::Segment;
use crate::signals::Signals;
use crate::versions::Versions;

/// Bytes that are put into the store before other tasks of the thread get their turn.
const CHUNK_BYTES: usize = 256 << 10;

/// Where a flight's bytes come from.
pub(crate) enum Source {
    /// One request for exactly its pages.
    Fetch,
    /// An answer that has begun.
    Open {
        /// The answer.
        body: Body,
        /// Bytes before the flight's first.
        skip: u64,
        /// Its place among the mount's requests.
        permit: Permit,
    },
    /// Bytes of the whole run.
    Memory(Bytes),
}

/// What transfers work with.
pub(crate) struct Means {
    pub(crate) store: BlockStore,
    pub(crate) versions: Arc<Versions>,
    pub(crate) signals: Arc<Signals>,
}

/// Carries out one flight.
pub(crate) async fn transfer(means: &Means, flight: &Flight, wanted: &Wanted, source: Source) -> Landed {
    match carry(means, flight, wanted, source).await {
        Ok(landed) => landed,
        Err(error) => {
            if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound) {
                // The version is not the current one any more: the next open must ask.
                means.versions.forget_version(&wanted.segment.version);
            }
            tracing::debug!(mount = %wanted.door.mount.name, key = %wanted.segment.version.key, %error, "fetch failed");
            Landed::Failed(error)
        }
    }
}

async fn carry(means: &Means, flight: &Flight, wanted: &Wanted, source: Source) -> Result<Landed> {
    let segment = &wanted.segment;
    let needed = {
        let bytes = segment.bytes_of(flight.run);
        bytes.end - bytes.start
    };
    // Bytes that nobody waits for are not worth a request when there is no room for them.
    let mut reserved = None;
    let (mut bytes, mut skip, mut permit) = match source {
        Source::Memory(bytes) => (Incoming::Memory(bytes), 0, None),
        Source::Open { body, skip, permit } => (Incoming::Body(check(segment, body)?), skip, Some(permit)),
        Source::Fetch => {
            // Somebody may wait for it by now.
            let priority = if flight.class() == Class::Demand { wanted.priority.of_demand() } else { wanted.priority };
            let mut permit = wanted.door.admission.enter(flight.id, priority, needed).await;
            if flight.class() == Class::Prefetch {
                match Sink::fill(means, wanted, flight.run) {
                    Some(sink) => reserved = Some(sink),
                    None => return Ok(Landed::Gone),
                }
            }
            let range = GetRange::Bounded(segment.object_bytes_of(flight.run));
            let get = Get { key: &segment.version.key, range, if_match: Some(&segment.version.tag), class: permit.class() };
            let storage = wanted.door.storage()?;
            let body = permit.during(storage.get(get)).await?;
            (Incoming::Body(check(segment, body)?), 0, Some(permit))
        }
    };
    let mut sink = match reserved.or_else(|| wanted.cache.then(|| Sink::fill(means, wanted, flight.run)).flatten()) {
        Some(sink) => sink,
        None if flight.class() == Class::Demand => Sink::Pass(BytesMut::with_capacity(needed as usize)),
        None => return Ok(Landed::Gone),
    };
    let mut received = 0;
    while received < needed {
        let next = match &mut permit {
            Some(permit) => permit.during(bytes.next()).await,
            None => bytes.next().await,
        };
        let Some(chunk) = next else { break };
        let mut chunk = chunk?;
        let dropped = skip.min(chunk.len() as u64);
        skip -= dropped;
        bytes::Buf::advance(&mut chunk, dropped as usize);
        chunk.truncate((needed - received).min(chunk.len() as u64) as usize);
        if chunk.is_empty() {
            continue;
        }
        if let Err(error) = sink.write(received, &chunk) {
            tracing::warn!(segment = %segment.id, %error, "the tiers can't take what was fetched");
            return Ok(Landed::Gone);
        }
        received += chunk.len() as u64;
        assert!(received <= needed, "what goes past the run was cut off");
        if let Some(permit) = &mut permit {
            permit.arrived(chunk.len() as u64);
        }
        let pages = if matches!(sink, Sink::Store(_)) { received / PAGE_BYTES } else { 0 };
        flight.arrived(received, pages as u32);
    }
    if received < needed {
        return Err(Error::retry(format!(
            "/{}/{}: shared storage gave {received} of {needed} bytes: try again",
            wanted.door.mount.name, segment.version.key
        )));
    }
    if let Incoming::Body(_) = bytes {
        means.signals.meters.fetched(received);
    }
    Ok(match sink {
        Sink::Pass(bytes) => {
            means.signals.meters.passed(received);
            Landed::Passed(bytes.freeze())
        }
        Sink::Store(fill) => match fill.finish_pinned() {
            Ok(pinned) => Landed::Stored(pinned),
            Err(error) => {
                tracing::warn!(segment = %segment.id, %error, "the tiers can't take what was fetched");
                Landed::Gone
            }
        },
    })
}

/// Not every store obeys `If-Match`: bytes of another version must not pass for this one.
fn check(segment: &Segment, body: Body) -> Result<Body> {
    let (got, wanted) = (&body.info.version, &segment.version);
    if got.tag != wanted.tag || got.size != wanted.size {
        return Err(Error::conflict(format!(
            "{}: version {} of {} bytes was asked for, shared storage has {} of {} bytes now: open it again",
            wanted.key, wanted.tag, wanted.size, got.tag, got.size
        )));
    }
    Ok(body)
}

enum Incoming {
    Body(Body),
    Memory(Bytes),
}

impl Incoming {
    async fn next(&mut self) -> Option<Result<Bytes>> {
        match self {
            Self::Body(body) => body.next().await,
            Self::Memory(bytes) if bytes.is_empty() => None,
            Self::Memory(bytes) => {
                tokio::task::yield_now().await;
                Some(Ok(bytes.split_to(bytes.len().min(CHUNK_BYTES))))
            }
        }
    }
}

/// Where a flight's bytes go.
enum Sink {
    Store(Fill),
    Pass(BytesMut),
}

impl Sink {
    fn fill(means: &Means, wanted: &Wanted, run: PageRun) -> Option<Self> {
        let spec = SegmentSpec { id: wanted.segment.id, bytes: wanted.segment.bytes, owner: Owner::Cache, keep: wanted.keep };
        match means.store.begin_fill(spec, run) {
            Ok(fill) => Some(Self::Store(fill)),
            Err(error) => {
                tracing::debug!(segment = %spec.id, %error, "no room in the tiers");
                None
            }
        }
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Store(fill) => fill.write(at, bytes),
            Self::Pass(all) => {
                all.extend_from_slice(bytes);
                Ok(())
            }
        }
    }
}
