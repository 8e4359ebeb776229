//! Raw bytes of a file, from the tiers of this worker and of others.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use forebay_placement::rank;
use forebay_types::{Error, ObjectVersion, PAGE_BYTES, PageRun, PageSet, Result, RouteKey, SegmentRange, WorkerId, split_range};

use super::Forms;
use crate::origin::{MountDoor, Priority};
use crate::segment::Segment;

/// Other workers that are asked for pages at most.
const ASKED_MAX: usize = 3;

impl Forms {
    /// Bytes of an object that are in the tiers here, or on the workers that have them by the routing table or by what was heard.
    /// `NotFound` when some are not: nothing is fetched from shared storage for a form.
    pub(super) async fn gather(&self, door: &Arc<MountDoor>, version: &ObjectVersion, range: Range<u64>) -> Result<Bytes> {
        let mut parts = Vec::new();
        for part in split_range(range) {
            parts.extend(self.gather_part(door, version, part).await?);
        }
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        let mut all = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
        parts.iter().for_each(|part| all.extend_from_slice(part));
        Ok(all.freeze())
    }

    async fn gather_part(&self, door: &Arc<MountDoor>, version: &ObjectVersion, part: SegmentRange) -> Result<Vec<Bytes>> {
        let segment = Segment::holding(version, part.object_range().start)?;
        let bytes = u64::from(part.start)..u64::from(part.start) + u64::from(part.len);
        let Some(run) = PageRun::covering(bytes.clone()) else { return Ok(Vec::new()) };
        let state = self.origin.store.state(segment.id, run);
        let mut found = Found::default();
        // Tasks are brought what they read where they run, so that parts of one segment may be on several workers.
        if !state.missing.is_empty() {
            for worker in self.holders_of(&segment, part.index) {
                let missing = found.missing_of(&state.missing);
                let (Some(first), Some(last)) = (missing.first(), missing.last()) else { break };
                let Some(peer) = self.cluster.worker(worker) else { continue };
                let given = self.cluster.peers.copy(&peer, segment.id, PageRun::new(first.start, last.end())).await;
                // An answer that does not fit is this worker's failure: another one may have the pages.
                if let Err(error) = given.and_then(|(runs, pages)| found.add(&segment, &missing, &runs, &pages)) {
                    tracing::debug!(segment = %segment.id, %worker, %error, "peer gave no pages to decode");
                }
            }
            if !found.missing_of(&state.missing).is_empty() {
                let what = format!("{}: bytes {bytes:?} of segment {} are not all in tiers", version.key, part.index);
                return Err(Error::not_found(what));
            }
        }
        for here in state.dram.into_iter().chain(state.disk) {
            let wanted = self.origin.wanted(door, segment.clone(), Priority::Prefetch, false);
            let (obtained, _) = self.origin.obtain(&wanted, here).await?;
            let mut at = here.bytes().start;
            for slice in obtained.slices(here, segment.bytes_of(here)) {
                let len = slice.len() as u64;
                found.pieces.push((at, slice));
                at += len;
            }
        }
        found.slices(bytes)
    }

    /// Whom to ask for pages of a segment that are not here: who has said that it has some, those whom the routing table names, the one
    /// that readers go to otherwise, then any.
    fn holders_of(&self, segment: &Segment, index: u32) -> Vec<WorkerId> {
        let route = RouteKey::of(segment.version.mount, &segment.version.key, index);
        let routes = self.cluster.routes();
        let mut named = routes.holders(route).map(|line| line.to_vec()).unwrap_or_default();
        named.sort_by_key(|(worker, weight)| (Reverse(*weight), *worker));
        let workers: Vec<_> = self.cluster.view().workers.iter().map(|worker| worker.id).collect();
        let told = self.cluster.whereabouts.of(segment.id);
        let all = told.into_iter().chain(named.into_iter().map(|(worker, _)| worker)).chain(rank(route, &workers));
        let mut holders = Vec::with_capacity(ASKED_MAX);
        for worker in all {
            if holders.len() < ASKED_MAX && worker != self.cluster.id && !holders.contains(&worker) {
                holders.push(worker);
            }
        }
        holders
    }
}

/// Bytes of a segment that were found here and there.
#[derive(Default)]
struct Found {
    /// Each with the byte of the segment that it begins at; none overlapping another.
    pieces: Vec<(u64, Bytes)>,
    /// Pages that others have given.
    given: PageSet,
}

impl Found {
    /// Those of these pages that nobody has given yet.
    fn missing_of(&self, runs: &[PageRun]) -> Vec<PageRun> {
        runs.iter().flat_map(|run| self.given.missing(*run)).collect()
    }

    /// Takes those pages that are missing of some that a worker has given: whole ones, run behind run. Of an answer of another length
    /// none is taken.
    fn add(&mut self, segment: &Segment, missing: &[PageRun], runs: &[PageRun], pages: &Bytes) -> Result<()> {
        if runs.iter().map(|run| u64::from(run.len) * PAGE_BYTES).sum::<u64>() != pages.len() as u64 {
            return Err(Error::invalid("the answer to a copy doesn't fit the question"));
        }
        let mut begins = 0;
        for run in runs {
            let whole = run.bytes();
            for wanted in missing.iter().filter_map(|missing| both(*missing, *run)) {
                let bytes = segment.bytes_of(wanted);
                let from = begins + (bytes.start - whole.start) as usize;
                let to = from + (bytes.end - bytes.start) as usize;
                self.pieces.push((bytes.start, pages.slice(from..to)));
                self.given.insert(wanted);
            }
            begins += (whole.end - whole.start) as usize;
        }
        Ok(())
    }

    /// The bytes `range` of the segment, in order.
    fn slices(mut self, range: Range<u64>) -> Result<Vec<Bytes>> {
        self.pieces.sort_by_key(|(start, _)| *start);
        let mut slices = Vec::with_capacity(self.pieces.len());
        let mut at = range.start;
        for (start, bytes) in self.pieces {
            let end = (start + bytes.len() as u64).min(range.end);
            if start <= at && at < end {
                slices.push(bytes.slice((at - start) as usize..(end - start) as usize));
                at = end;
            }
        }
        match at == range.end {
            true => Ok(slices),
            false => Err(Error::internal(format!("bytes {at}..{} were gathered by nobody", range.end))),
        }
    }
}

/// The pages that are in both of two runs.
fn both(one: PageRun, other: PageRun) -> Option<PageRun> {
    let (start, end) = (one.start.max(other.start), one.end().min(other.end()));
    (start < end).then(|| PageRun::new(start, end))
}

#[cfg(test)]
mod tests {
    use forebay_types::{Key, MountId, VersionTag};

    use super::*;

    /// A segment of nine pages and a bit.
    fn segment() -> Segment {
        let size = 9 * PAGE_BYTES + 100;
        let tag = VersionTag::etag("\"t\"");
        let version = ObjectVersion { mount: MountId(1), key: Key::new("a.csv").unwrap(), tag, size };
        Segment::holding(&version, 0).unwrap()
    }

    /// What a worker gives of some runs: each page is full of its number.
    fn pages(runs: &[PageRun]) -> Bytes {
        runs.iter().flat_map(|run| run.pages()).flat_map(|page| vec![page as u8; PAGE_BYTES as usize]).collect()
    }

    #[test]
    fn pages_of_several_workers_make_one_range() {
        let (segment, run) = (segment(), PageRun::new(0, 10));
        let mut found = Found::default();
        // Pages 3 to 5 are here.
        let missing = [PageRun::new(0, 3), PageRun::new(6, 10)];
        let one = [PageRun::new(1, 4), PageRun::new(8, 10)];
        found.add(&segment, &found.missing_of(&missing), &one, &pages(&one)).unwrap();
        assert_eq!(found.missing_of(&missing), [PageRun::new(0, 1), PageRun::new(6, 8)]);
        let other = [PageRun::new(0, 9)];
        found.add(&segment, &found.missing_of(&missing), &other, &pages(&other)).unwrap();
        assert!(found.missing_of(&missing).is_empty());
        let here = [PageRun::new(3, 6)];
        found.pieces.push((here[0].bytes().start, pages(&here)));
        let wanted = 10..9 * PAGE_BYTES + 100;
        let slices = found.slices(wanted.clone()).unwrap().concat();
        assert_eq!(&slices[..], &pages(&[run])[wanted.start as usize..wanted.end as usize]);
    }

    #[test]
    fn nothing_is_taken_of_an_answer_of_another_length_and_the_next_one_is() {
        let (segment, run) = (segment(), [PageRun::new(2, 4)]);
        let mut found = Found::default();
        let right = pages(&run);
        // The first page of it is whole.
        let short = right.slice(..PAGE_BYTES as usize + 1);
        let long = Bytes::from([&right[..], &[0]].concat());
        for wrong in [short, long, Bytes::new()] {
            assert!(found.add(&segment, &run, &run, &wrong).is_err());
            assert_eq!((found.missing_of(&run), found.pieces.len()), (run.to_vec(), 0));
        }
        found.add(&segment, &run, &run, &right).unwrap();
        assert!(found.missing_of(&run).is_empty());
    }

    #[test]
    fn a_gap_is_an_error() {
        let mut found = Found::default();
        let run = [PageRun::new(2, 4)];
        found.pieces = vec![(0, pages(&[PageRun::new(0, 1)])), (2 * PAGE_BYTES, pages(&run))];
        assert!(found.slices(0..3 * PAGE_BYTES).is_err());
    }
}
