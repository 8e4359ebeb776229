//! Objects that are written whole, and deleted.

use std::sync::Arc;

use bytes::Bytes;
use forebay_protocol::{CAME_BYTES_MAX, PutCondition};
use forebay_types::{Key, MountId, ObjectInfo, Result, RouteKey, SEGMENT_BYTES, WorkerId};

use super::Writes;
use super::changes::Write;
use crate::origin::{MountDoor, Priority, Source};
use crate::segment::Segment;

impl Writes {
    /// The mount's door, when it may be written to.
    pub(super) async fn writable(&self, mount: MountId, key: &Key) -> Result<Arc<MountDoor>> {
        let door = self.origin.mount(mount).await?;
        door.check_writable(key)?;
        Ok(door)
    }

    /// Writes an object whole; done when shared storage has it.
    pub(crate) async fn put(
        self: &Arc<Self>,
        mount: MountId,
        key: &Key,
        condition: PutCondition,
        payload: Bytes,
    ) -> Result<ObjectInfo> {
        self.put_and_tell(mount, key, condition, payload, Vec::new()).await
    }

    /// The same of an object of a log, which is not there before; the workers `to` hear what it is with the word of it, where it is small.
    pub(crate) async fn put_in_log(
        self: &Arc<Self>,
        mount: MountId,
        key: &Key,
        payload: Bytes,
        to: Vec<WorkerId>,
    ) -> Result<ObjectInfo> {
        let to = if payload.len() <= CAME_BYTES_MAX { to } else { Vec::new() };
        self.put_and_tell(mount, key, PutCondition::Absent, payload, to).await
    }

    async fn put_and_tell(
        self: &Arc<Self>,
        mount: MountId,
        key: &Key,
        condition: PutCondition,
        payload: Bytes,
        to: Vec<WorkerId>,
    ) -> Result<ObjectInfo> {
        let door = self.writable(mount, key).await?;
        let parts = if payload.is_empty() { Vec::new() } else { vec![payload.clone()] };
        let storage = door.storage()?;
        let write = Write::begin(self, mount, key).await?.with_bytes(to, payload.clone());
        let result = storage.put(key, parts, condition).await;
        let info = write.end(result.map(Some)).await?.expect("a put gives what it put");
        self.fresh.add(&info.version);
        self.signals.meters.written.add(payload.len() as u64);
        self.keep_written(&door, &info, payload);
        Ok(info)
    }

    /// Deletes an object; done when shared storage has it no more.
    pub(crate) async fn delete(self: &Arc<Self>, mount: MountId, key: &Key) -> Result<()> {
        let door = self.writable(mount, key).await?;
        let storage = door.storage()?;
        let write = Write::begin(self, mount, key).await?;
        let result = storage.delete(key).await;
        write.end(result.map(|()| None)).await?;
        Ok(())
    }

    /// Puts what was written into the tiers, where this worker is the one who will be asked for it and the version is
    /// certain: an ETag is given to the very bytes that were sent, a file's times are looked at after the write.
    pub(super) fn keep_written(&self, door: &Arc<MountDoor>, info: &ObjectInfo, payload: Bytes) {
        let version = &info.version;
        let here = self.cluster.routed_here()(RouteKey::of(version.mount, &version.key, 0));
        let certain =
            version.tag.as_str().starts_with('"') && version.size == payload.len() as u64 && version.size <= SEGMENT_BYTES;
        if !here || !certain {
            return;
        }
        let Ok(segment) = Segment::holding(version, 0) else { return };
        let Some(run) = segment.pages_within(0..version.size) else { return };
        // As prefetch: room is not made for it at the cost of a reader's, and nobody needs it passed through.
        let wanted = self.origin.wanted(door, segment, Priority::Prefetch, false);
        let ticket = self.origin.flights.adopt(&wanted, run, Source::Memory(payload));
        if let Some(ticket) = ticket {
            ticket.let_go();
        }
    }
}
