use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use forebay_protocol::{DataReply, DataRequest};
use forebay_types::{Error, ObjectVersion, OperationId, Result, RouteKey, SegmentId, SegmentRange, split_range};
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::ask::{Given, ask_bytes, given, misfit};
use crate::attempt::NoAnswer;
use crate::connections::Link;
use crate::core::Core;
use crate::fallback;

/// Segments of one read under way at once.
const SEGMENTS_AT_ONCE: usize = 8;

impl Core {
    pub(crate) async fn read(&self, operation: OperationId, version: &ObjectVersion, range: Range<u64>) -> Result<Bytes> {
        if range.start > range.end || range.end > version.size {
            return Err(Error::invalid(format!(
                "{}: bytes {}..{} are not within its {} bytes",
                self.path_text(version.mount, &version.key),
                range.start,
                range.end,
                version.size
            )));
        }
        let mut parts = split_range(range.clone());
        let Some(first) = parts.next() else { return Ok(Bytes::new()) };
        self.prefetches.reading(operation, version, &range);
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
        if let Some(pin) = self.pins.find(segment, &range) {
            let bytes = u64::from(part.len);
            pin.session().outbox().count(operation, segment, bytes);
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
        let waiting = self.patience.wait(u64::from(part.len), self.bound(version.mount));
        let answer = self
            .at_holders(route, u64::from(part.len), self.place_of(operation, segment, range.start), |link| {
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
                    self.heard(link.worker(), hint);
                    let given = given(&link, in_place, payload, segment, range)?;
                    Ok((given, link))
                }
            })
            .await;
        match answer {
            Ok((given, link)) => Ok(self.taken(given, &link, range)),
            Err(NoAnswer::Final(error)) => Err(error),
            Err(NoAnswer::Away(error)) => {
                let mount = self.mount_of(version.mount)?;
                let direct = |storage| fallback::read(storage, version, part.object_range());
                let bytes = self.fallback.instead(&mount, &version.key, error, direct).await?;
                self.counters.fallback(bytes.len() as u64);
                Ok(bytes)
            }
        }
    }

    /// Counts what a worker gave for `range` of a segment, and keeps its pin.
    pub(crate) fn taken(&self, given: Given, link: &Link, range: Range<u32>) -> Bytes {
        match given {
            Given::Pinned(pin) => {
                self.counters.in_place(pin.len());
                self.pins.keep(&pin);
                Arc::clone(&pin).bytes(range)
            }
            Given::Copied(bytes) => {
                if link.in_place().is_some_and(|session| session.keeps_much()) {
                    // The worker's room for pins may be used up by pins that are kept here for nobody.
                    self.pins.shed();
                }
                self.counters.socket(bytes.len() as u64);
                bytes
            }
        }
    }
}
