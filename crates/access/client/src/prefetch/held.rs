//! What all workers hold of versions.

use std::collections::BTreeMap;

use forebay_protocol::{DataReply, DataRequest, Held, SEGMENTS_MAX, TierDeed, TierOrder};
use forebay_types::{Error, ObjectVersion, Result, SegmentId, WorkerId, check_object_bytes, segment_count};

use super::Prefetches;
use crate::connect::unexpected;

/// Segments gone through by one call: 2 PiB, whose ids take half a gigabyte.
const IDS_MAX: u64 = 1 << 25;

/// Who is asked, after a membership change too: a segment may lie where it is not routed to any more, so what is
/// freed, kept or counted is so at every worker.
impl Prefetches {
    /// Drops these versions from the tiers of all workers, kept ones too; gives the bytes that were given back.
    pub(crate) async fn free(&self, versions: &[ObjectVersion]) -> Result<u64> {
        // This client's own pins would hold the pages. Which decoded columns there are only the workers know: all go.
        self.routes.connections.pins.clear();
        let mut freed = 0;
        for replies in self.order(versions, TierDeed::Free).await?.into_values() {
            for reply in replies {
                let DataReply::Freed { bytes } = reply else { return Err(unexpected("a worker", "free")) };
                freed += bytes;
            }
        }
        Ok(freed)
    }

    /// Sets or clears the administrator's pin on what is held of these versions.
    pub(crate) async fn keep(&self, versions: &[ObjectVersion], keep: bool) -> Result<()> {
        let what = if keep { TierDeed::Keep } else { TierDeed::LetGo };
        self.order(versions, what).await.map(|_| ())
    }

    /// Takes the right to administer the mounts of these versions; at workers of the release before, which know segments by their ids
    /// alone, that to administer everything.
    async fn order(&self, versions: &[ObjectVersion], what: TierDeed) -> Result<BTreeMap<WorkerId, Vec<DataReply>>> {
        let by_ids = messages(&self.segments(versions)?, |segments| match what {
            TierDeed::Free => DataRequest::Free { segments },
            TierDeed::Keep => DataRequest::Keep { segments, keep: true },
            TierDeed::LetGo => DataRequest::Keep { segments, keep: false },
        });
        let orders: Vec<_> = TierOrder::of_all(versions, what).into_iter().map(DataRequest::TierOrder).collect();
        self.routes.at_all_workers(&orders, &by_ids).await
    }

    /// What the cluster holds of each version, summed over its segments and all workers, in the same order. A version is
    /// kept when all that is held of it is.
    pub(crate) async fn held(&self, versions: &[ObjectVersion]) -> Result<Vec<Held>> {
        let ids = self.segments(versions)?;
        let mut by_segment = vec![Held::default(); ids.len()];
        for (_, held_there) in self.held_at_each(&ids).await? {
            for (sum, held) in by_segment.iter_mut().zip(held_there) {
                *sum = sum.and(held);
            }
        }
        let mut by_segment = by_segment.into_iter();
        let sum = |version: &ObjectVersion| {
            let segments = by_segment.by_ref().take(segment_count(version.size) as usize);
            let mut kept = None;
            let all = segments.fold(Held::default(), |sum, held| {
                if held.bytes > 0 {
                    kept = Some(kept.unwrap_or(true) && held.keep);
                }
                sum.and(held)
            });
            Held { keep: kept.unwrap_or(false), ..all }
        };
        let held = versions.iter().map(sum).collect();
        assert!(by_segment.next().is_none(), "each segment is of a version");
        Ok(held)
    }

    /// What each worker holds of each of these segments, in their order.
    pub(super) async fn held_at_each(&self, ids: &[SegmentId]) -> Result<Vec<(WorkerId, Vec<Held>)>> {
        let asking = messages(ids, |segments| DataRequest::Held { segments });
        let mut by_worker = Vec::new();
        for (worker, replies) in self.routes.at_all_workers(&asking, &[]).await? {
            let mut held_there = Vec::with_capacity(ids.len());
            for reply in replies {
                let DataReply::Held(held) = reply else { return Err(unexpected("a worker", "held")) };
                held_there.extend(held);
            }
            if held_there.len() != ids.len() {
                return Err(unexpected("a worker", "held"));
            }
            by_worker.push((worker, held_there));
        }
        Ok(by_worker)
    }
}

impl Prefetches {
    /// The segments of versions, version by version. `Invalid` when they are more than can be gone through.
    pub(super) fn segments(&self, versions: &[ObjectVersion]) -> Result<Vec<SegmentId>> {
        let mut count = 0;
        for version in versions {
            let path = || self.routes.view.known().path_text(version.mount, &version.key);
            check_object_bytes(version.size).map_err(|error| error.context(path()))?;
            count += u64::from(segment_count(version.size));
            if count > IDS_MAX {
                return Err(Error::invalid(format!("{}: more than {IDS_MAX} segments at once: name a smaller part", path())));
            }
        }
        Ok(versions.iter().flat_map(of_version).collect())
    }
}

fn of_version(version: &ObjectVersion) -> impl Iterator<Item = SegmentId> {
    (0..segment_count(version.size)).map(|index| SegmentId::of(version, index))
}

fn messages(ids: &[SegmentId], message: impl Fn(Vec<SegmentId>) -> DataRequest) -> Vec<DataRequest> {
    ids.chunks(SEGMENTS_MAX).map(|ids| message(ids.to_vec())).collect()
}
