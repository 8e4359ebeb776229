use std::collections::BTreeMap;

use forebay_protocol::{DataReply, DataRequest, Held, SEGMENTS_MAX};
use forebay_types::{Error, ObjectVersion, Result, SegmentId, check_object_bytes, segment_count};
use futures::stream::{self, StreamExt};

use crate::ask::ask;
use crate::client::Client;
use crate::core::Core;

/// Segments gone through by one call: 2 PiB, whose ids take half a gigabyte.
const IDS_MAX: u64 = 1 << 25;
/// Workers asked at once.
const WORKERS_AT_ONCE: usize = 32;

/// Who is asked, after a membership change too: a segment may lie where it is not routed to any more, so what is
/// freed, kept or counted is so at every worker.
impl Client {
    /// Drops these versions from the tiers of all workers, kept ones too; gives the bytes that were given back.
    pub async fn free(&self, versions: impl AsRef<[ObjectVersion]>) -> Result<u64> {
        let ids = self.core.segments(versions.as_ref())?;
        // This client's own pins would hold the pages. Which decoded columns there are only the workers know: all go.
        self.core.pins.clear();
        let mut freed = 0;
        for replies in self.core.at_all_workers(&messages(&ids, |segments| DataRequest::Free { segments })).await? {
            for reply in replies {
                let DataReply::Freed { bytes } = reply else { return Err(crate::control::unexpected("a worker", "free")) };
                freed += bytes;
            }
        }
        Ok(freed)
    }

    /// Sets or clears the administrator's pin on what is held of these versions.
    pub async fn keep(&self, versions: impl AsRef<[ObjectVersion]>, keep: bool) -> Result<()> {
        let requests = messages(&self.core.segments(versions.as_ref())?, |segments| DataRequest::Keep { segments, keep });
        self.core.at_all_workers(&requests).await.map(|_| ())
    }

    /// What the cluster holds of each version, summed over its segments and all workers, in the same order. A version is
    /// kept when all that is held of it is.
    pub async fn held(&self, versions: impl AsRef<[ObjectVersion]>) -> Result<Vec<Held>> {
        let ids = self.core.segments(versions.as_ref())?;
        let mut by_segment = vec![Held::default(); ids.len()];
        for replies in self.core.at_all_workers(&messages(&ids, |segments| DataRequest::Held { segments })).await? {
            let mut at = 0;
            for reply in replies {
                let DataReply::Held(held) = reply else { return Err(crate::control::unexpected("a worker", "held")) };
                for (sum, held) in by_segment[at..].iter_mut().zip(&held) {
                    sum.dram_bytes += held.dram_bytes;
                    sum.disk_bytes += held.disk_bytes;
                    sum.bytes += held.bytes;
                    sum.keep |= held.keep;
                }
                at += held.len();
            }
            if at != ids.len() {
                return Err(crate::control::unexpected("a worker", "held"));
            }
        }
        let mut by_segment = by_segment.into_iter();
        let sum = |version: &ObjectVersion| {
            let segments = by_segment.by_ref().take(segment_count(version.size) as usize);
            let mut kept = None;
            let mut all = segments.fold(Held::default(), |sum, held| {
                if held.bytes > 0 {
                    kept = Some(kept.unwrap_or(true) && held.keep);
                }
                Held {
                    dram_bytes: sum.dram_bytes + held.dram_bytes,
                    disk_bytes: sum.disk_bytes + held.disk_bytes,
                    bytes: sum.bytes + held.bytes,
                    keep: false,
                }
            });
            all.keep = kept.unwrap_or(false);
            all
        };
        Ok(versions.as_ref().iter().map(sum).collect())
    }
}

impl Core {
    /// The segments of versions, version by version. `Invalid` when they are more than can be gone through.
    fn segments(&self, versions: &[ObjectVersion]) -> Result<Vec<SegmentId>> {
        let mut count = 0;
        for version in versions {
            let path = || self.path_text(version.mount, &version.key);
            check_object_bytes(version.size).map_err(|error| error.context(path()))?;
            count += u64::from(segment_count(version.size));
            if count > IDS_MAX {
                return Err(Error::invalid(format!("{}: more than {IDS_MAX} segments at once: name a smaller part", path())));
            }
        }
        Ok(versions.iter().flat_map(of_version).collect())
    }

    /// Asks every worker of the view, each in order; the replies by worker. What one could not be asked is `Retry`,
    /// after all others were.
    pub(crate) async fn at_all_workers(&self, requests: &[DataRequest]) -> Result<Vec<Vec<DataReply>>> {
        let known = self.view.known_arc();
        let deadline = self.settings.read_deadline;
        let mut workers = Vec::with_capacity(known.workers.len());
        for id in &known.workers {
            workers.extend(known.worker(*id).cloned());
        }
        let asked = stream::iter(workers).map(|info| async move {
            let info = &info;
            let link = self.connections.link(info).await.inspect_err(|_| self.failures.failed(info.id))?;
            let mut replies = Vec::with_capacity(requests.len());
            for request in requests {
                replies.push(ask(&link, request, Vec::new(), deadline).await.map_err(crate::ask::Failure::into_error)?);
            }
            Ok::<_, Error>((info.id, replies))
        });
        let mut asked = asked.buffer_unordered(WORKERS_AT_ONCE);
        let mut by_worker = BTreeMap::new();
        let mut failed = None;
        while let Some(answer) = asked.next().await {
            match answer {
                Ok((worker, replies)) => {
                    by_worker.insert(worker, replies);
                }
                Err(error) => {
                    self.view.surprised();
                    failed = Some(error);
                }
            }
        }
        match failed {
            Some(error) => Err(error.context("not done at every worker")),
            None => Ok(by_worker.into_values().collect()),
        }
    }
}

fn of_version(version: &ObjectVersion) -> impl Iterator<Item = SegmentId> {
    (0..segment_count(version.size)).map(|index| SegmentId::of(version, index))
}

fn messages(ids: &[SegmentId], message: impl Fn(Vec<SegmentId>) -> DataRequest) -> Vec<DataRequest> {
    ids.chunks(SEGMENTS_MAX).map(|ids| message(ids.to_vec())).collect()
}
