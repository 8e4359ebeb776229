//! Bytes of one version.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use forebay_protocol::{DataReply, DataRequest};
use forebay_shared_storage::Storage;
use forebay_trace::{of, within};
use forebay_types::{Error, ObjectVersion, OperationId, Result, RouteKey, SegmentId, SegmentRange, split_range};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::{Reads, fallback};
use crate::connect::{ask_bytes, given, misfit};

/// Segments of one read under way at once.
const SEGMENTS_AT_ONCE: usize = 8;

impl Reads {
    pub(crate) async fn read(&self, operation: OperationId, version: &ObjectVersion, range: Range<u64>) -> Result<Bytes> {
        if range.start > range.end || range.end > version.size {
            return Err(Error::invalid(format!(
                "{}: bytes {}..{} are not within its {} bytes",
                self.routes.view.known().path_text(version.mount, &version.key),
                range.start,
                range.end,
                version.size
            )));
        }
        let mut parts = split_range(range.clone());
        let Some(first) = parts.next() else { return Ok(Bytes::new()) };
        self.courses.reading(operation, version, &range);
        if first.object_range() == range {
            return self.read_segment(operation, version, first).await;
        }
        let len = usize::try_from(range.end - range.start).map_err(|_| Error::invalid("range is larger than memory"))?;
        let mut bytes = BytesMut::with_capacity(len);
        let parts = stream::iter(split_range(range)).map(|part| self.read_segment(operation, version, part));
        let mut parts = parts.buffered(SEGMENTS_AT_ONCE);
        while let Some(part) = parts.try_next().await? {
            bytes.extend_from_slice(&part);
        }
        Ok(bytes.freeze())
    }

    /// Bytes within one segment: under a pin that is kept, else from a worker, else from shared storage.
    async fn read_segment(&self, operation: OperationId, version: &ObjectVersion, part: SegmentRange) -> Result<Bytes> {
        let segment = SegmentId::of(version, part.index);
        let range = part.start..part.start + part.len;
        if let Some(pin) = self.routes.connections.pins.find(segment, &range) {
            let bytes = u64::from(part.len);
            pin.session.outbox.count(operation, segment, bytes);
            self.counters.cached(bytes);
            // Nothing is waited for: who reads on and on must leave the other tasks their turn all the same.
            tokio::task::consume_budget().await;
            return Ok(pin.bytes(range));
        }
        self.ask_segment(operation, version, part, segment, range).await
    }

    async fn ask_segment(
        &self,
        operation: OperationId,
        version: &ObjectVersion,
        part: SegmentRange,
        segment: SegmentId,
        range: Range<u32>,
    ) -> Result<Bytes> {
        let route = RouteKey::of(version.mount, &version.key, part.index);
        let bound = self.routes.view.known().bound(version.mount);
        let waiting = self.patience.wait(u64::from(part.len), bound);
        let brought = || self.courses.place_of(operation, segment).filter(|place| !self.routes.failures.is_shunned(*place));
        let place = self.routes.place_of(operation, segment, range.start).or_else(brought);
        let answered = self
            .routes
            .at_holders(route, u64::from(part.len), place, |link| {
                let (range, deadline) = (range.clone(), waiting.deadline());
                async move {
                    let request = DataRequest::Read {
                        operation,
                        version: version.clone(),
                        start: part.object_range().start,
                        len: part.len,
                        in_place: link.in_place().is_some(),
                    };
                    let (reply, payload) = ask_bytes(&link, &request, deadline).await?;
                    let DataReply::Read { in_place, hint } = reply else { return Err(misfit(&link, "read")) };
                    self.routes.heard(link.worker, hint);
                    let given = given(&link, in_place, payload, segment, range.clone())?;
                    Ok(self.taken(given, &link, range))
                }
            })
            .await;
        let mount = || self.routes.view.known().mount_of(version.mount);
        let direct = |storage: Storage| async move {
            let bytes = fallback::read(storage, version, part.object_range()).await?;
            self.counters.fallback(bytes.len() as u64);
            Ok(bytes)
        };
        within(of(operation), self.or_storage(answered, mount, &version.key, direct)).await
    }
}
