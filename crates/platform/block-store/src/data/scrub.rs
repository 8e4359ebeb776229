//! Verifies what the tiers hold, read or not, in steps: damage is found before somebody needs the page.

use std::sync::Arc;

use forebay_types::{BLOCK_BYTES, Owner, PAGE_BYTES, PageRun, SegmentId};
use memmap2::MmapMut;
use tokio::sync::oneshot;

use crate::core::{BlockPin, Core, Disk, ReadPages};
use crate::media::{Direction, page_sum};
use crate::table::{BlockRef, DiskNo, SegmentRef, TierKind};

/// Where a scrub goes on; the default is the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubCursor(u32);

/// What a step of a scrub has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubStep {
    /// Bytes verified, of both tiers.
    pub bytes: u64,
    /// Pages that did not verify and were dropped (those in DRAM that someone reads are dropped by a later scrub).
    pub bad_pages: u64,
    /// Where to go on; none when all has been gone through.
    pub next: Option<ScrubCursor>,
}

/// Verifies blocks from `from` on until `budget_bytes` are used up, at least one block. On the store's own threads.
pub(crate) async fn scrub(core: &Arc<Core>, from: ScrubCursor, budget_bytes: u64) -> ScrubStep {
    // On the threads of one that works.
    let working = core.disks.iter().find(|disk| disk.takes()).or(core.disks.first());
    let Some(disk) = working else { return step(core, from, budget_bytes) };
    let (done, stepped) = oneshot::channel();
    disk.pool.task(move |core| {
        // Whoever asked may be gone.
        let _ = done.send(step(core, from, budget_bytes));
    });
    // An error means that the store is being dropped.
    stepped.await.unwrap_or_default()
}

fn step(core: &Arc<Core>, from: ScrubCursor, budget_bytes: u64) -> ScrubStep {
    let (mut step, mut scratch) = (ScrubStep::default(), Scratch(core.scratch.lock().take()));
    let mut at = from.0;
    while let Some(block) = core.table.next_block(at) {
        if step.bytes >= budget_bytes && step.bytes > 0 {
            step.next = Some(ScrubCursor(at));
            break;
        }
        scrub_block(core, block, &mut scratch, &mut step);
        at = block.raw().saturating_add(1);
    }
    if step.next.is_some() {
        *core.scratch.lock() = scratch.0;
    }
    step
}

fn scrub_block(core: &Arc<Core>, block: BlockRef, scratch: &mut Scratch, step: &mut ScrubStep) {
    let (segment, index) = (block.segment(), block.block());
    let Some(found) = pin_for_scrub(core, segment, index) else { return };
    for run in bad_in_dram(core, segment, index, step) {
        drop_bad(core, &found, segment, TierKind::Dram, run, step);
    }
    let Some((extent, no)) = found.extent else { return };
    let disk = core.disk(no);
    if !disk.health.is_on(Direction::Read) {
        return;
    }
    for run in &found.on_disk {
        step.bytes += u64::from(run.len) * PAGE_BYTES;
        for bad in bad_on_disk(core, disk, &found, extent, *run, scratch) {
            drop_bad(core, &found, segment, TierKind::Disk, bad, step);
        }
    }
}

fn pin_for_scrub(core: &Arc<Core>, segment: SegmentRef, block: u32) -> Option<Scrubbed> {
    let mut shard = core.table.of(segment);
    let entry = shard.find_held(segment)?;
    let whole = entry.all(block).runs(block)[0];
    let extent = entry.disk.extent.map(|start| (start, entry.disk_no));
    let (id, owner, on_disk) = (entry.id, entry.owner, entry.present(TierKind::Disk, block).runs(block));
    core.pin_blocks(entry, whole);
    Some(Scrubbed { id, owner, extent, on_disk, _pin: BlockPin::new(core, segment, whole) })
}

fn bad_in_dram(core: &Arc<Core>, segment: SegmentRef, block: u32, step: &mut ScrubStep) -> Vec<PageRun> {
    let (id, pages) = {
        let mut shard = core.table.of(segment);
        let entry = shard.get(segment);
        if entry.owner == Owner::Temporary {
            // Has its checksums on disk only.
            return Vec::new();
        }
        let (id, runs) = (entry.id, entry.present(TierKind::Dram, block).runs(block));
        let pin = |run| ReadPages::pin(core, &mut shard, segment, run);
        (id, runs.into_iter().filter_map(pin).collect::<Vec<_>>())
    };
    step.bytes += pages.iter().map(|pages| pages.bytes().len() as u64).sum::<u64>();
    let bad = pages.iter().flat_map(|pages| bad_runs(id, pages.run(), pages.bytes(), &pages.sums()));
    bad.collect()
}

fn bad_on_disk(core: &Core, disk: &Disk, found: &Scrubbed, extent: u64, run: PageRun, scratch: &mut Scratch) -> Vec<PageRun> {
    let start = extent + u64::from(run.start);
    let mut read = || {
        let bytes = scratch.of(run.len as usize * PAGE_BYTES as usize)?;
        disk.file.read(start, bytes)?;
        let sums = disk.sums.load(start, u64::from(run.len))?;
        std::io::Result::Ok(bad_runs(found.id, run, bytes, &sums))
    };
    read().unwrap_or_else(|error| {
        core.disk_failed(disk, Direction::Read, false, error);
        // As `drop_unread` has it.
        if found.owner == Owner::Temporary { Vec::new() } else { vec![run] }
    })
}

fn drop_bad(core: &Core, found: &Scrubbed, segment: SegmentRef, tier: TierKind, run: PageRun, step: &mut ScrubStep) {
    tracing::warn!(segment = %found.id, tier = tier.name(), page = run.start, pages = run.len, "pages do not verify");
    step.bad_pages += u64::from(run.len);
    core.drop_pages(tier, segment, run);
}

/// What runs are read into, one after the other: there from the first one on.
struct Scratch(Option<MmapMut>);

impl Scratch {
    /// Room for at most a block.
    fn of(&mut self, bytes: usize) -> std::io::Result<&mut [u8]> {
        let memory = match self.0.take() {
            Some(memory) => memory,
            // Anonymous memory is page aligned, as O_DIRECT wants it.
            None => MmapMut::map_anon(BLOCK_BYTES as usize)?,
        };
        Ok(&mut self.0.insert(memory)[..bytes])
    }
}

/// A block under scrub.
struct Scrubbed {
    id: SegmentId,
    owner: Owner,
    /// The extent on disk, and which.
    extent: Option<(u64, DiskNo)>,
    on_disk: Vec<PageRun>,
    _pin: BlockPin,
}

/// The pages of `run` that do not match their checksums.
fn bad_runs(id: SegmentId, run: PageRun, bytes: &[u8], sums: &[u32]) -> Vec<PageRun> {
    let pages = run.pages().zip(bytes.chunks_exact(PAGE_BYTES as usize)).zip(sums);
    let bad = pages.filter(|((page, bytes), sum)| page_sum(id, *page, bytes) != **sum);
    let mut runs: Vec<PageRun> = Vec::new();
    for ((page, _), _) in bad {
        match runs.last_mut() {
            Some(last) if last.end() == page => last.len += 1,
            _ => runs.push(PageRun { start: page, len: 1 }),
        }
    }
    runs
}
