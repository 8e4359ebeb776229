use std::ops::Range;

use bytes::{Bytes, BytesMut};
use forebay_protocol::{DataReply, DataRequest, RangeSpec};
use forebay_types::{
    Error, ErrorKind, ForebayPath, Mount, ObjectInfo, OperationId, Result, RouteKey, SEGMENT_BYTES, SegmentId, split_range,
};

use crate::ask::{Failure, Given, ask_bytes, given, misfit};
use crate::attempt::NoAnswer;
use crate::connections::Link;
use crate::core::Core;
use crate::fallback;

/// How often an object that is overwritten while its second segment is read is begun anew.
const TRIES: usize = 3;

impl Core {
    pub(crate) async fn read_latest(
        &self,
        operation: OperationId,
        path: &ForebayPath,
        range: RangeSpec,
    ) -> Result<(ObjectInfo, Range<u64>, Bytes)> {
        let mount = self.mount(path).await?;
        if let RangeSpec::Bounded { start, len: 0 } = range {
            let info = self.open(path).await?;
            let wanted = range.within(info.version.size).map_err(|error| error.context(path))?;
            return Ok((info, start..wanted.end, Bytes::new()));
        }
        for attempt in 1.. {
            let (info, first, bytes) = self.read_first(operation, &mount, path, range).await?;
            let wanted = range.within(info.version.size).map_err(|error| error.context(path))?;
            if first.end == wanted.end {
                return Ok((info, first, bytes));
            }
            match self.read(operation, &info.version, first.end..wanted.end).await {
                Ok(rest) => {
                    let mut all = BytesMut::with_capacity(bytes.len() + rest.len());
                    all.extend_from_slice(&bytes);
                    all.extend_from_slice(&rest);
                    return Ok((info, wanted, all.freeze()));
                }
                Err(error) if error.kind() == ErrorKind::Conflict && attempt < TRIES => {}
                Err(error) => return Err(error),
            }
        }
        unreachable!("the last attempt returns")
    }

    /// The range up to the end of its first segment.
    async fn read_first(
        &self,
        operation: OperationId,
        mount: &Mount,
        path: &ForebayPath,
        range: RangeSpec,
    ) -> Result<(ObjectInfo, Range<u64>, Bytes)> {
        let (start, bytes) = match range {
            RangeSpec::Bounded { start, len } => (start, len),
            RangeSpec::From { start } => (start, SEGMENT_BYTES),
            RangeSpec::Suffix { len } => (0, len),
        };
        let index = u32::try_from(start / SEGMENT_BYTES)
            .map_err(|_| Error::invalid(format!("{path}: no object reaches byte {start}")))?;
        let route = RouteKey::of(mount.id, path.key(), index);
        let ask = |link| self.ask_latest(link, operation, mount, path, range);
        match self.at_holders(route, bytes, None, ask).await {
            Ok((info, first, given, link)) => {
                let in_segment = in_segment(&first);
                Ok((info, first, self.taken(given, &link, in_segment)))
            }
            Err(NoAnswer::Final(error)) => Err(error),
            Err(NoAnswer::Away(error)) => {
                let direct = |storage| fallback::read_latest(storage, path.key(), range);
                let read = self.fallback.instead(mount, path.key(), error, direct).await?;
                self.counters.fallback(read.2.len() as u64);
                Ok(read)
            }
        }
    }

    async fn ask_latest(
        &self,
        link: Link,
        operation: OperationId,
        mount: &Mount,
        path: &ForebayPath,
        range: RangeSpec,
    ) -> Result<(ObjectInfo, Range<u64>, Given, Link), Failure> {
        let len = match range {
            RangeSpec::Bounded { len, .. } | RangeSpec::Suffix { len } => len.min(SEGMENT_BYTES),
            RangeSpec::From { .. } => SEGMENT_BYTES,
        };
        let waiting = self.patience.wait(len, self.bound(mount.id));
        let in_place = link.in_place().is_some();
        let request = DataRequest::ReadLatest { operation, mount: mount.id, key: path.key().clone(), range, in_place };
        let (reply, payload) = ask_bytes(&link, &request, waiting.deadline()).await?;
        let DataReply::ReadLatest { info, start, len, in_place: pinned, hint } = reply else {
            return Err(misfit(&link, "read latest"));
        };
        self.heard(link.worker(), hint);
        // What was asked for, up to the end of its first segment.
        let wanted = range.within(info.version.size).map_err(|error| Failure::Answered(error.context(path)))?;
        let expected = split_range(wanted.clone()).next().map_or(wanted.start..wanted.start, |part| part.object_range());
        let first = start..start + u64::from(len);
        if first != expected && !(first.is_empty() && expected.is_empty()) {
            return Err(misfit(&link, "read latest of that range"));
        }
        let segment = SegmentId::of(&info.version, (start / SEGMENT_BYTES) as u32);
        let given = given(&link, pinned, payload, segment, in_segment(&first))?;
        Ok((info, first, given, link))
    }
}

pub(crate) fn in_segment(range: &Range<u64>) -> Range<u32> {
    let start = (range.start % SEGMENT_BYTES) as u32;
    start..start + (range.end - range.start) as u32
}
