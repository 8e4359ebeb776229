use std::ops::Range;

use bytes::Bytes;
use forebay_protocol::{DataReply, DataRequest, RangeSpec};
use forebay_shared_storage::Storage;
use forebay_types::{Attributes, ForebayPath, Mount, ObjectInfo, OperationId, Result, RouteKey, SEGMENT_BYTES, SegmentId};

use crate::ask::{Failure, Given, ask, ask_bytes, given, misfit};
use crate::attempt::NoAnswer;
use crate::client::Client;
use crate::connections::Link;
use crate::core::Core;
use crate::fallback;
use crate::read_latest::in_segment;

/// A read of an object whose version the reader does not know yet, as a gateway serves it.
#[derive(Clone, Copy, Debug)]
pub struct ObjectRead {
    /// Which bytes are wanted in the end.
    pub range: RangeSpec,
    /// Bytes of the first answer at most; those of a suffix come whole, up to the segment's end.
    pub first: u32,
    /// Checksums of the whole object are wanted too, where the store has any.
    pub complete: bool,
}

/// The first bytes of an object, and all that is known of it. The rest is read with [`Client::read`].
#[derive(Clone, Debug)]
pub struct FirstRead {
    /// The version.
    pub info: ObjectInfo,
    /// What the store says beside.
    pub attributes: Attributes,
    /// Which bytes of the object were wanted: to the object's end at most.
    pub range: Range<u64>,
    /// The first of them.
    pub bytes: Bytes,
    /// They were in a tier.
    pub hit: bool,
}

/// Objects with what the store says of them, and the store itself: what a gateway needs beside reading.
impl Client {
    /// The current version of an object, as fresh as its mount's rule wants it, and what the store says of it beside;
    /// `complete` wants its checksums too.
    pub async fn stat(&self, path: &ForebayPath, complete: bool) -> Result<(ObjectInfo, Attributes)> {
        let core = &self.core;
        let mount = core.mount(path).await?;
        let request = DataRequest::Stat { mount: mount.id, key: path.key().clone(), complete };
        let deadline = core.settings.read_deadline;
        let answer = core.at_home(RouteKey::of(mount.id, path.key(), 0), |link| {
            let request = &request;
            async move {
                match ask(&link, request, Vec::new(), deadline).await? {
                    DataReply::Stat(info, attributes) => Ok((info, attributes)),
                    _ => Err(misfit(&link, "stat")),
                }
            }
        });
        match answer.await {
            Ok(stat) => Ok(stat),
            Err(NoAnswer::Final(error)) => Err(error),
            Err(NoAnswer::Away(error)) => {
                let direct = |storage: Storage| async move { storage.stat(path.key()).await };
                core.fallback.instead(&mount, path.key(), error, direct).await
            }
        }
    }

    /// The first bytes of the current version, and what the store says of it. One request to shared storage for an object
    /// that nobody has read. `Invalid` when the range begins past the object's end.
    pub async fn read_object(&self, operation: OperationId, path: &ForebayPath, read: ObjectRead) -> Result<FirstRead> {
        let core = &self.core;
        let mount = core.mount(path).await?;
        let start = match read.range {
            RangeSpec::Bounded { start, .. } | RangeSpec::From { start } => start,
            RangeSpec::Suffix { .. } => 0,
        };
        // Nothing begins further out; who asks is told the object's size.
        let index = u32::try_from(start / SEGMENT_BYTES).unwrap_or(u32::MAX);
        let ask = |link| core.ask_object(link, operation, &mount, path, read);
        match core.at_holders(RouteKey::of(mount.id, path.key(), index), u64::from(read.first), None, ask).await {
            Ok((info, attributes, range, first, given, (link, hit))) => {
                let bytes = core.taken(given, &link, in_segment(&first));
                Ok(FirstRead { info, attributes, range, bytes, hit })
            }
            Err(NoAnswer::Final(error)) => Err(error),
            Err(NoAnswer::Away(error)) => {
                let first = match read.range {
                    RangeSpec::Bounded { start, len } => RangeSpec::Bounded { start, len: len.min(read.first.into()) },
                    RangeSpec::From { start } => RangeSpec::Bounded { start, len: read.first.into() },
                    suffix => suffix,
                };
                let direct = |storage| fallback::read_object(storage, path.key(), first);
                let (info, attributes, _, bytes) = core.fallback.instead(&mount, path.key(), error, direct).await?;
                core.counters.fallback(bytes.len() as u64);
                let range = read.range.within(info.version.size).map_err(|error| error.context(path))?;
                Ok(FirstRead { info, attributes, range, bytes, hit: false })
            }
        }
    }

    /// Shared storage of a mount, with this process's own credentials, within a share of the bandwidth bound: for what only
    /// the store can do. Who writes there says so with [`Client::changed`] before the writer hears of it.
    pub async fn storage(&self, mount: &Mount) -> Result<Storage> {
        self.core.fallback.storage(mount).await
    }

    /// Shared storage of a mount that is not added yet, with this process's own credentials.
    pub fn open_storage(&self, mount: &Mount) -> Result<Storage> {
        self.core.fallback.open(mount)
    }

    /// An object was written or deleted past the workers: what they know of it is old. Back when none of them can answer from
    /// that any more; `Retry` when this is not certain.
    pub async fn changed(&self, path: &ForebayPath) -> Result<()> {
        let mount = self.core.mount(path).await?;
        let request = DataRequest::Changed { mount: mount.id, key: path.key().clone(), info: None };
        self.core.tell_everyone(mount.id, &request).await.map_err(|error| error.context(path))
    }
}

impl Core {
    async fn ask_object(
        &self,
        link: Link,
        operation: OperationId,
        mount: &Mount,
        path: &ForebayPath,
        read: ObjectRead,
    ) -> Result<(ObjectInfo, Attributes, Range<u64>, Range<u64>, Given, (Link, bool)), Failure> {
        let waiting = self.patience.wait(read.first.into(), self.bound(mount.id));
        let in_place = link.in_place().is_some();
        let ObjectRead { range, first, complete } = read;
        let request =
            DataRequest::ReadObject { operation, mount: mount.id, key: path.key().clone(), range, first, complete, in_place };
        let (reply, payload) = ask_bytes(&link, &request, waiting.deadline()).await?;
        let DataReply::ReadObject { info, attributes, start, len, in_place: pinned, hint, hit } = reply else {
            return Err(misfit(&link, "read object"));
        };
        self.heard(link.worker(), hint);
        let wanted = range.within(info.version.size).map_err(|error| Failure::Answered(error.context(path)))?;
        let first = start..start + u64::from(len);
        if first.start != wanted.start || first.end > wanted.end || (first.is_empty() && !wanted.is_empty()) {
            return Err(misfit(&link, "read object of that range"));
        }
        let segment = SegmentId::of(&info.version, (start / SEGMENT_BYTES) as u32);
        let given = given(&link, pinned, payload, segment, in_segment(&first))?;
        Ok((info, attributes, wanted, first, given, (link, hit)))
    }
}
