//! The first read of an object whose version is not known yet: one message, whatever comes along with its bytes.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use forebay_protocol::{DataReply, DataRequest, RangeSpec};
use forebay_shared_storage::Storage;
use forebay_trace::{of, within};
use forebay_types::{
    Attributes, ForebayPath, Mount, ObjectInfo, OperationId, Result, RouteKey, SEGMENT_BYTES, SegmentId, split_range,
};

use super::{Reads, fallback, in_segment, start_of};
use crate::connect::{Failure, Link, ask_bytes, given, misfit};

/// What is read first of an object.
#[derive(Clone, Copy)]
pub(super) struct First<'a> {
    pub(super) operation: OperationId,
    pub(super) mount: &'a Arc<Mount>,
    pub(super) path: &'a ForebayPath,
    /// Which bytes are wanted in the end.
    pub(super) range: RangeSpec,
    pub(super) share: Share,
}

/// How much of a range comes first, and what comes along.
#[derive(Clone, Copy)]
pub(super) enum Share {
    /// All of it up to the end of its first segment.
    Segment,
    /// So many bytes at most, with what the store says of the object beside, its checksums too when it is to be `complete`.
    Bytes { first: u32, complete: bool },
}

/// The first bytes of an object, and all that is known of it. The rest is read with [`Client::read`](crate::Client::read).
#[derive(Clone, Debug)]
pub struct FirstRead {
    /// The version.
    pub info: ObjectInfo,
    /// What the store says beside.
    pub attributes: Attributes,
    /// Which bytes of the object were wanted: to the object's end at most.
    pub range: Range<u64>,
    /// Which of them these are, the first.
    pub first: Range<u64>,
    /// These.
    pub bytes: Bytes,
    /// They were in a tier.
    pub hit: bool,
}

impl First<'_> {
    fn route(&self) -> RouteKey {
        // Nothing begins further out; who asks is told the object's size.
        let index = u32::try_from(start_of(self.range) / SEGMENT_BYTES).unwrap_or(u32::MAX);
        RouteKey::of(self.mount.id, self.path.key(), index)
    }

    /// How many bytes the answer may have, as far as can be told.
    fn bytes(&self) -> u64 {
        match (self.share, self.range) {
            (Share::Bytes { first, .. }, _) => first.into(),
            (Share::Segment, RangeSpec::Bounded { len, .. } | RangeSpec::Suffix { len }) => len,
            (Share::Segment, RangeSpec::From { .. }) => SEGMENT_BYTES,
        }
    }

    /// How many of them there are to wait for.
    fn bytes_to_wait_for(&self) -> u64 {
        match self.share {
            Share::Bytes { first, .. } => first.into(),
            Share::Segment => self.bytes().min(SEGMENT_BYTES),
        }
    }

    fn request(&self, in_place: bool) -> DataRequest {
        let (operation, mount, key, range) = (self.operation, self.mount.id, self.path.key().clone(), self.range);
        match self.share {
            Share::Segment => DataRequest::ReadLatest { operation, mount, key, range, in_place },
            Share::Bytes { first, complete } => {
                DataRequest::ReadObject { operation, mount, key, range, first, complete, in_place }
            }
        }
    }

    fn name(&self) -> &'static str {
        match self.share {
            Share::Segment => "read latest",
            Share::Bytes { .. } => "read object",
        }
    }

    /// What is wanted of an object of this size; `Invalid` when it begins past its end.
    fn within(&self, info: &ObjectInfo) -> Result<Range<u64>> {
        self.range.within(info.version.size).map_err(|error| error.context(self.path))
    }
}

impl Share {
    /// Whether these are the first bytes of what is wanted.
    fn fits(self, first: &Range<u64>, wanted: &Range<u64>) -> bool {
        if split_range(first.clone()).count() > 1 {
            return false;
        }
        match self {
            // What was asked for, up to the end of its first segment.
            Self::Segment => {
                let part = split_range(wanted.clone()).next().map(|part| part.object_range());
                let expected = part.unwrap_or(wanted.start..wanted.start);
                *first == expected || (first.is_empty() && expected.is_empty())
            }
            Self::Bytes { .. } => {
                first.start == wanted.start && first.end <= wanted.end && (!first.is_empty() || wanted.is_empty())
            }
        }
    }

    /// What shared storage is asked for.
    fn of_storage(self, range: RangeSpec) -> RangeSpec {
        match (self, range) {
            (Self::Segment, range) | (Self::Bytes { .. }, range @ RangeSpec::Suffix { .. }) => range,
            (Self::Bytes { first, .. }, RangeSpec::Bounded { start, len }) => {
                RangeSpec::Bounded { start, len: len.min(first.into()) }
            }
            (Self::Bytes { first, .. }, RangeSpec::From { start }) => RangeSpec::Bounded { start, len: first.into() },
        }
    }
}

impl Reads {
    /// The first bytes of an object, of whatever version is current under the mount's rule.
    pub(super) async fn first_of(&self, first: First<'_>) -> Result<FirstRead> {
        let answered = self.routes.at_holders(first.route(), first.bytes(), None, |link| self.ask_first(link, first)).await;
        let direct = |storage: Storage| async move {
            let (info, attributes, read, bytes) =
                fallback::read_object(storage, first.path.key(), first.share.of_storage(first.range)).await?;
            self.counters.fallback(bytes.len() as u64);
            let range = first.within(&info)?;
            Ok(FirstRead { info, attributes, range, first: read, bytes, hit: false })
        };
        let storage = self.or_storage(answered, || Ok(Arc::clone(first.mount)), first.path.key(), direct);
        within(of(first.operation), storage).await
    }

    async fn ask_first(&self, link: Link, wanted: First<'_>) -> Result<FirstRead, Failure> {
        let bound = self.routes.view.known().bound(wanted.mount.id);
        let waiting = self.patience.wait(wanted.bytes_to_wait_for(), bound);
        let request = wanted.request(link.in_place().is_some());
        let (reply, payload) = ask_bytes(&link, &request, waiting.deadline()).await?;
        let (info, attributes, start, len, pinned, hint, hit) = match (wanted.share, reply) {
            (Share::Segment, DataReply::ReadLatest { info, start, len, in_place, hint }) => {
                (info, Attributes::default(), start, len, in_place, hint, false)
            }
            (Share::Bytes { .. }, DataReply::ReadObject { info, attributes, start, len, in_place, hint, hit }) => {
                (info, attributes, start, len, in_place, hint, hit)
            }
            _ => return Err(misfit(&link, wanted.name())),
        };
        self.routes.heard(link.worker, hint);
        let range = wanted.within(&info).map_err(Failure::Answered)?;
        let first = start..start.saturating_add(len.into());
        if !wanted.share.fits(&first, &range) {
            return Err(misfit(&link, &format!("{} of that range", wanted.name())));
        }
        let segment = SegmentId::of(&info.version, (start / SEGMENT_BYTES) as u32);
        let given = given(&link, pinned, payload, segment, in_segment(&first))?;
        let bytes = self.taken(given, &link, in_segment(&first));
        Ok(FirstRead { info, attributes, range, first, bytes, hit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: Share = Share::Bytes { first: 100, complete: false };

    #[test]
    fn an_answer_begins_where_the_wanted_bytes_do_and_stays_in_one_segment() {
        let border = SEGMENT_BYTES;
        assert!(Share::Segment.fits(&(5..border), &(5..border + 9)));
        assert!(!Share::Segment.fits(&(5..border - 1), &(5..border + 9)), "all up to the end of the segment");
        assert!(SOME.fits(&(5..50), &(5..border + 9)));
        assert!(!SOME.fits(&(6..50), &(5..border + 9)), "not the first of them");
        assert!(!SOME.fits(&(5..5), &(5..border + 9)), "none, where there are some");
        assert!(!SOME.fits(&(border - 5..border + 5), &(border - 5..border + 9)), "of two segments");
        for share in [Share::Segment, SOME] {
            assert!(share.fits(&(7..7), &(7..7)));
        }
    }

    #[test]
    fn shared_storage_is_asked_for_no_more_than_comes_first() {
        let (bounded, from) = (RangeSpec::Bounded { start: 3, len: 1000 }, RangeSpec::From { start: 3 });
        let suffix = RangeSpec::Suffix { len: 1000 };
        assert_eq!(Share::Segment.of_storage(bounded), bounded);
        let cut = RangeSpec::Bounded { start: 3, len: 100 };
        assert_eq!([bounded, from, suffix].map(|range| SOME.of_storage(range)), [cut, cut, suffix]);
    }
}
