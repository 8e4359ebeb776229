//! Bytes that stay where they are.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use forebay_protocol::Span;
use forebay_types::{Error, Result, SegmentId};

use super::Session;

/// Bytes of one segment in a worker's DRAM tier that stay where they are until this is dropped.
pub(crate) struct Pin {
    pub(crate) session: Arc<Session>,
    id: u64,
    pub(crate) segment: SegmentId,
    /// Within the segment.
    pub(crate) range: Range<u32>,
    /// In the tier.
    offset: u64,
}

impl Pin {
    /// What an answer gave for `range` of a segment. The pin is given back when the answer makes no sense.
    pub(crate) fn new(session: &Arc<Session>, id: u64, span: Span, segment: SegmentId, range: Range<u32>) -> Result<Arc<Self>> {
        let pin = Self { session: Arc::clone(session), id, segment, range, offset: span.offset };
        let end = span.offset.checked_add(span.len);
        let fits = end.is_some_and(|end| session.mapping.as_ref().is_some_and(|mapping| mapping.holds(&(span.offset..end))));
        if !fits || span.len != u64::from(pin.range.end - pin.range.start) {
            return Err(Error::internal(format!(
                "worker {} answered {span:?} to a read of {} bytes: run one version of forebay",
                session.worker,
                pin.range.end - pin.range.start
            )));
        }
        Ok(Arc::new(pin))
    }

    pub(crate) fn len(&self) -> u64 {
        u64::from(self.range.end - self.range.start)
    }

    /// The bytes `range` of the segment, which this pin covers. They hold the pin.
    pub(crate) fn bytes(self: Arc<Self>, range: Range<u32>) -> Bytes {
        assert!(self.range.start <= range.start && range.end <= self.range.end, "{range:?} is not in {:?}", self.range);
        Bytes::from_owner(Pinned { pin: self, range })
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.session.outbox.unpin(self.id);
    }
}

/// A part of a pin's bytes.
struct Pinned {
    pin: Arc<Pin>,
    range: Range<u32>,
}

impl AsRef<[u8]> for Pinned {
    fn as_ref(&self) -> &[u8] {
        let start = self.pin.offset + u64::from(self.range.start - self.pin.range.start);
        let span = start..start + u64::from(self.range.end - self.range.start);
        self.pin.session.mapping.as_ref().map_or(&[], |mapping| mapping.pinned(span))
    }
}
