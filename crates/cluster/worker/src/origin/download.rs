//! Objects, or parts of them, that are read for the worker itself: to a file of their own, into memory, or through the tiers.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use forebay_protocol::AccessWay;
use forebay_shared_storage::{Get, GetRange};
use forebay_types::{Error, ErrorKind, Key, ObjectInfo, ObjectVersion, OperationId, PageRun, Result, SEGMENT_BYTES};

use super::Origin;
use super::admission::Priority;
use super::mounts::MountDoor;
use super::piece::Missed;
use crate::landing::Landing;
use crate::segment::Segment;
use crate::signals::Made;

/// Bytes of one request: several in a row leave room for readers between them.
const PIECE_BYTES: u64 = 16 << 20;
/// Bytes that are written at once.
const WRITE_BYTES: usize = 1 << 20;

/// Bytes of an object that is read whole into memory, at most.
const WHOLE_BYTES_MAX: u64 = 16 << 20;

impl Origin {
    /// All bytes of a small object, past the tiers. `Invalid` when it is not small. `Retry` when they are not what shared storage says of them:
    /// nothing is decided by what was not written.
    pub(crate) async fn read_whole(&self, door: &MountDoor, key: &Key) -> Result<Vec<u8>> {
        match self.read_whole_once(door, key).await {
            Err(error) if error.kind() == ErrorKind::Corrupt => {}
            read => return read,
        }
        // Of two versions that the store has mixed, one may be whole by now.
        self.read_whole_once(door, key).await.map_err(|error| match error.kind() {
            ErrorKind::Corrupt => Error::retry(error.message()),
            _ => error,
        })
    }

    async fn read_whole_once(&self, door: &MountDoor, key: &Key) -> Result<Vec<u8>> {
        let storage = door.storage()?;
        let mut permit = door.admission.enter(u64::MAX, Priority::Demand, 0).await;
        let get = Get { key, range: GetRange::All, if_match: None, class: permit.class() };
        let mut body = permit.during(storage.get(get)).await?;
        let bytes = body.info.version.size;
        if bytes > WHOLE_BYTES_MAX {
            return Err(Error::invalid(format!("{key}: it has {bytes} bytes, more than is read whole")));
        }
        let mut all = Vec::with_capacity(bytes as usize);
        while let Some(chunk) = permit.during(body.next()).await {
            all.extend_from_slice(&chunk?);
            if all.len() as u64 > bytes {
                return Err(Error::corrupt(format!("{key}: shared storage gave more than its {bytes} bytes")));
            }
        }
        self.signals.meters.fetched.add(all.len() as u64);
        Ok(all)
    }

    /// Some bytes of an object whose version is not known yet, past the tiers, with that version. `Invalid` when they are many.
    pub(crate) async fn read_range(&self, door: &MountDoor, key: &Key, range: Range<u64>) -> Result<(ObjectInfo, Vec<u8>)> {
        let bytes = range.end - range.start;
        if bytes > WHOLE_BYTES_MAX {
            return Err(Error::invalid(format!("{key}: {bytes} bytes are more than is read at once")));
        }
        let storage = door.storage()?;
        let mut permit = door.admission.enter(u64::MAX, Priority::Demand, bytes).await;
        let get = Get { key, range: GetRange::Bounded(range), if_match: None, class: permit.class() };
        let mut body = permit.during(storage.get(get)).await?;
        let mut all = Vec::with_capacity(bytes as usize);
        while let Some(chunk) = permit.during(body.next()).await {
            let chunk = chunk?;
            permit.arrived(chunk.len() as u64);
            all.extend_from_slice(&chunk);
        }
        if all.len() as u64 != bytes {
            return Err(Error::corrupt(format!("{key}: shared storage gave {} of {bytes} bytes", all.len())));
        }
        self.signals.meters.fetched.add(bytes);
        Ok((body.info.clone(), all))
    }

    /// Some bytes of an object's version, through the tiers, counted as what an operation reads.
    pub(crate) async fn read_version(
        &self,
        door: &Arc<MountDoor>,
        operation: OperationId,
        version: &ObjectVersion,
        range: Range<u64>,
    ) -> Result<(Vec<u8>, Missed)> {
        let mut all = Vec::with_capacity((range.end - range.start) as usize);
        let mut missed = Missed::default();
        while range.start + (all.len() as u64) < range.end {
            let at = range.start + all.len() as u64;
            let segment = Segment::holding(version, at)?;
            let within = at - segment.start..range.end.min(segment.end()) - segment.start;
            let run = PageRun::covering(within.clone()).expect("the range is not empty");
            let (began, id, index) = (forebay_runtime::now(), segment.id, (segment.start / SEGMENT_BYTES) as u32);
            let _under_way = self.signals.popularity.enter(id);
            let wanted = self.wanted(door, segment, Priority::Demand, false);
            let (slices, of_part) = if self.is_wide(run) {
                self.obtain_wide(&wanted, run, within).await?
            } else {
                let (obtained, missed) = self.obtain(&wanted, run).await?;
                (obtained.slices(run, within), missed)
            };
            slices.iter().for_each(|slice| all.extend_from_slice(slice));
            missed = missed.and(of_part);
            let bytes = range.start + all.len() as u64 - at;
            assert!(bytes > 0, "the next part begins behind this one");
            self.signals.popularity.learn_own(id, version, index);
            self.signals.popularity.read(operation, id, 1, bytes, began.elapsed());
            let (operation, object) = (Some(operation), (version.mount, &version.key));
            self.signals.accessed.made(&Made { operation, object, start: at, bytes, times: 1, way: AccessWay::Answered });
        }
        Ok((all, missed))
    }

    /// Writes an object of `bytes` bytes to a file, inside the mount's bound, and gives its checksum. `Corrupt` when the object
    /// has another length. What there is when it fails is the caller's to remove.
    pub(crate) async fn download(&self, door: &MountDoor, key: &Key, bytes: u64, path: &Path) -> Result<u32> {
        let mut landing = Landing::begin(path).await?;
        let mut at = 0;
        let storage = door.storage()?;
        while at < bytes {
            let end = (at + PIECE_BYTES).min(bytes);
            let mut permit = door.admission.enter(u64::MAX, Priority::Demand, end - at).await;
            let get = Get { key, range: GetRange::Bounded(at..end), if_match: None, class: permit.class() };
            let mut body = permit.during(storage.get(get)).await?;
            if body.info.version.size != bytes {
                return Err(Error::corrupt(format!("{key}: it has {} bytes, not {bytes}", body.info.version.size)));
            }
            let mut gathered = Vec::with_capacity(WRITE_BYTES);
            while let Some(chunk) = permit.during(body.next()).await {
                let chunk: Bytes = chunk?;
                permit.arrived(chunk.len() as u64);
                at += chunk.len() as u64;
                if at > end {
                    return Err(Error::corrupt(format!("{key}: shared storage gave more than was asked for")));
                }
                gathered.extend_from_slice(&chunk);
                if gathered.len() >= WRITE_BYTES {
                    let part = std::mem::replace(&mut gathered, Vec::with_capacity(WRITE_BYTES));
                    landing = landing.with(part.into()).await?;
                }
            }
            landing = landing.with(gathered.into()).await?;
            if at != end {
                return Err(Error::retry(format!("{key}: shared storage gave {at} of {bytes} bytes: try again")));
            }
        }
        let crc32c = landing.finish().await?;
        self.signals.meters.fetched.add(bytes);
        Ok(crc32c)
    }
}
