//! Copies between workers.

use std::sync::Arc;

use bytes::Bytes;
use forebay_metrics::table;
use forebay_types::{Error, PAGE_BYTES, PAGES_PER_BLOCK, PageRun, Result, SegmentId, WorkerId};

use super::Replicas;
use crate::origin::{Ahead, Priority, Source, parts};
use crate::segment::Segment;

/// Pages asked of a peer at once: 4 MiB.
const COPY_PAGES: u32 = 1024;

impl Replicas {
    /// Brings a segment here: what a peer has of it, else all of it from shared storage, behind all demand.
    pub(super) async fn bring(self: &Arc<Self>, segment: Segment, from: &[WorkerId]) -> Result<()> {
        for peer in from {
            match self.copy_from(*peer, &segment).await {
                Ok(0) => {}
                Ok(_) => {
                    table::WORKER_REPLICAS_LOADED.with(["peer"]).add(1);
                    return Ok(());
                }
                Err(error) => tracing::debug!(segment = %segment.id, worker = %peer, %error, "peer gave no copy"),
            }
        }
        let whole = (segment.start, segment.bytes);
        loop {
            let ahead = Ahead { priority: Priority::Prefetch, turn: None, keep: false, held_for: None };
            let Err(error) = self.origin.prefetch(&segment.version, &[whole], ahead).await else { break };
            // Others go first, and few replicas are brought at a time: each comes in the end.
            let Some(after) = error.retry_after() else { return Err(error) };
            forebay_runtime::time::sleep(after).await;
        }
        table::WORKER_REPLICAS_LOADED.with(["storage"]).add(1);
        Ok(())
    }

    /// Copies the pages that a peer holds and this worker doesn't; gives the bytes that the peer holds.
    async fn copy_from(self: &Arc<Self>, peer: WorkerId, segment: &Segment) -> Result<u64> {
        let peer = self.cluster.worker(peer).ok_or_else(|| Error::retry("it is gone"))?;
        let door = self.origin.mount(segment.version.mount).await?;
        let mut there_bytes = 0;
        for start in (0..segment.pages()).step_by(COPY_PAGES as usize) {
            let part = PageRun::new(start, (start + COPY_PAGES).min(segment.pages()));
            if self.origin.store.state(segment.id, part).missing.is_empty() {
                there_bytes += u64::from(part.len) * PAGE_BYTES;
                continue;
            }
            let (runs, payload) = self.cluster.peers.copy(&peer, segment.id, part).await?;
            let mut at = 0usize;
            for run in runs {
                let bytes = run.len as usize * PAGE_BYTES as usize;
                let pages = payload.get(at..at + bytes).map(|_| payload.slice(at..at + bytes));
                let pages = pages.filter(|_| part.start <= run.start && run.end() <= part.end());
                let pages = pages.ok_or_else(|| Error::invalid("the answer to a copy doesn't fit the question"))?;
                (at, there_bytes) = (at + bytes, there_bytes + bytes as u64);
                table::WORKER_COPIED_BYTES.only().add(bytes as u64);
                // In small parts: what readers fetch at this moment is left to them, and no more than that.
                let missing = self.origin.store.state(segment.id, run).missing;
                for missing in missing.into_iter().flat_map(|run| parts(run, PAGES_PER_BLOCK)) {
                    let wanted = self.origin.wanted(&door, segment.clone(), Priority::Prefetch, false);
                    let ticket = self.origin.flights.adopt(&wanted, missing, Source::Memory(cut(segment, run, missing, &pages)));
                    if let Some(ticket) = ticket {
                        ticket.wait().await?;
                    }
                }
            }
        }
        Ok(there_bytes)
    }

    /// The pages of `part` that are here, for a peer: runs and checksums, and the pages.
    pub(crate) async fn copy(&self, segment: SegmentId, part: PageRun) -> (Vec<(u32, u32)>, Vec<u32>, Vec<Bytes>) {
        for run in self.origin.store.state(segment, part).disk {
            if let Err(error) = self.origin.store.load(segment, run).await {
                tracing::debug!(%segment, %error, "the disk tier can't give pages that it has");
            }
        }
        let held = self.origin.store.state(segment, part).dram.into_iter();
        let (mut runs, mut sums, mut pages) = (Vec::new(), Vec::new(), Vec::new());
        // What was evicted since is left out.
        for (run, pinned) in held.filter_map(|run| Some((run, self.origin.store.pin(segment, run)?))) {
            runs.push((run.start, run.len));
            sums.extend(pinned.sums());
            pages.push(pinned.into_bytes());
        }
        (runs, sums, pages)
    }
}

/// The bytes of `missing`, a part of `run` whose pages are given; the segment's last page may be short.
fn cut(segment: &Segment, run: PageRun, missing: PageRun, pages: &Bytes) -> Bytes {
    let bytes = segment.bytes_of(missing);
    let from = run.bytes().start;
    pages.slice((bytes.start - from) as usize..(bytes.end - from) as usize)
}
