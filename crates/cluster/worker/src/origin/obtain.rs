//! Pages that are held for a reader, wherever they come from.

use std::ops::Range;

use bytes::Bytes;
use forebay_types::{Error, PAGE_BYTES, PAGES_PER_BLOCK, PageRun, Result};
use futures::future::try_join_all;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::Origin;
use super::flight::Wanted;
use super::piece::{Missed, Obtained, Piece};

/// Pages that are read from the disk tier at once: 4 MiB.
const LOAD_PAGES: u32 = 4 * PAGES_PER_BLOCK;
/// How often pages may be evicted between their arrival and their use before they are passed through.
const ATTEMPTS: usize = 3;
/// Parts of a read that is large for the DRAM tier that are under way at once.
const WIDE_PARTS: usize = 4;

impl Origin {
    /// Brings the pages of `run` here, from the disk tier and from shared storage, and holds them.
    pub(crate) async fn obtain(&self, wanted: &Wanted, run: PageRun) -> Result<(Obtained, Missed)> {
        let mut missed = Missed::default();
        let mut wanted = wanted.clone();
        let mut read_disk = true;
        for attempt in 0..ATTEMPTS {
            wanted.cache = attempt + 1 < ATTEMPTS;
            let joined = self.flights.join(&wanted, run, read_disk);
            if attempt == 0 {
                missed.fetched.extend(joined.tickets.iter().map(|ticket| ticket.run));
                missed.from_disk = !joined.disk.is_empty();
            }
            let dram = joined.dram.iter().map(|run| self.hold(&wanted, *run));
            let mut pieces: Vec<Option<Piece>> = dram.collect();
            let loads = joined.disk.iter().flat_map(|run| parts(*run, LOAD_PAGES)).map(|run| self.load(&wanted, run));
            let (loaded, fetched) =
                futures::join!(futures::future::join_all(loads), try_join_all(joined.tickets.iter().map(|ticket| ticket.wait())));
            // Pages that the disk tier can't give, or that the DRAM tier can't take, are fetched: an error of a tier is a miss.
            read_disk = loaded.iter().all(Option::is_some);
            pieces.extend(loaded);
            pieces.extend(fetched?);
            if let Some(pieces) = pieces.into_iter().collect::<Option<Vec<_>>>() {
                return Ok((self.whole(&wanted, run, pieces), missed));
            }
        }
        Err(Error::retry(format!(
            "/{}/{}: the worker's tiers are too busy to hold what was asked for: try again",
            wanted.door.mount.name, wanted.segment.version.key
        )))
    }

    /// The same for reads that would take much of the DRAM tier: part by part, copied out, so that no more than a few
    /// parts are held at a time.
    pub(crate) async fn obtain_wide(&self, wanted: &Wanted, run: PageRun, range: Range<u64>) -> Result<(Vec<Bytes>, Missed)> {
        let part_pages = ((self.dram_bytes / 32 / PAGE_BYTES) as u32).clamp(64, LOAD_PAGES);
        let parts: Vec<_> = parts(run, part_pages).collect();
        let parts = stream::iter(parts).map(|part| {
            let range = range.start.max(part.bytes().start)..range.end.min(part.bytes().end);
            async move {
                let (obtained, missed) = self.obtain(wanted, part).await?;
                let mut copy = Vec::with_capacity((range.end - range.start) as usize);
                obtained.slices(part, range).iter().for_each(|slice| copy.extend_from_slice(slice));
                Ok::<_, Error>((Bytes::from(copy), missed))
            }
        });
        let parts: Vec<_> = parts.buffered(WIDE_PARTS).try_collect().await?;
        let (slices, missed): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        Ok((slices, missed.into_iter().fold(Missed::default(), Missed::and)))
    }

    /// Whether a run is too much to be held at once.
    pub(crate) fn is_wide(&self, run: PageRun) -> bool {
        u64::from(run.len) * PAGE_BYTES > self.dram_bytes / 8
    }

    fn hold(&self, wanted: &Wanted, run: PageRun) -> Option<Piece> {
        self.store.pin(wanted.segment.id, run).map(|pinned| Piece::pinned(run, pinned))
    }

    async fn load(&self, wanted: &Wanted, run: PageRun) -> Option<Piece> {
        if let Err(error) = self.store.load(wanted.segment.id, run).await {
            tracing::debug!(segment = %wanted.segment.id, %error, "the disk tier can't give pages that it has");
        }
        self.hold(wanted, run)
    }

    /// One piece where the store can give it as one; each page of it is held already.
    fn whole(&self, wanted: &Wanted, run: PageRun, pieces: Vec<Piece>) -> Obtained {
        if let Some(pinned) = self.store.pin(wanted.segment.id, run) { Obtained::Whole(pinned) } else { Obtained::Pieces(pieces) }
    }
}

/// Cuts a run in parts of `pages`, the last one shorter.
pub(crate) fn parts(run: PageRun, pages: u32) -> impl Iterator<Item = PageRun> {
    run.pages().step_by(pages as usize).map(move |start| PageRun::new(start, (start + pages).min(run.end())))
}
