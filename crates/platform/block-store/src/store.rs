//! The one door to the tiers: what a worker may ask of them, handed on to those who decide and those who move bytes.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_protocol::Held;
use forebay_types::{Owner, PAGE_BYTES, PAGES_PER_BLOCK, PageRun, Result, SegmentId};

use crate::books::{OWNERS, Tier};
use crate::core::{Change, Core, Disk, Pinned, ReadPages, leave_out};
use crate::data::{BlockFill, Fill, ScrubCursor, ScrubStep};
use crate::lent::Lent;
use crate::media::{ArenaHandle, Direction, Folder};
use crate::settings::{SegmentSpec, StoreSettings};
use crate::table::{PageBits, Segment, TierKind, by_block};
use crate::threads::Threads;
use crate::usage::{Regret, RunState, TierUsage, Usage};

/// How long a load waits for the disk; what has not come by then counts as missing.
const PATIENCE: Duration = Duration::from_secs(10);

/// The DRAM and disk tiers of one worker. Cheap to clone; the last clone to go ends the store's threads.
#[derive(Clone)]
pub struct BlockStore {
    pub(crate) core: Arc<Core>,
    _threads: Arc<Threads>,
}

impl BlockStore {
    /// Sets up the DRAM tier and brings the disk tier back as it was, each disk by itself. `Invalid` when a folder was written by a newer
    /// version or is in use by another process. A folder on another disk that can't be used is left out, with a warning.
    pub fn open(settings: StoreSettings) -> Result<Self> {
        Self::open_with(settings, PATIENCE)
    }

    fn open_with(settings: StoreSettings, patience: Duration) -> Result<Self> {
        settings.validate()?;
        let mut folders = vec![Folder::open(&settings.folder)?];
        let (settings, left_out) = with_usable_disks(settings, &mut folders)?;
        let mut core = Core::new(settings, patience)?;
        core.folder_faults.left_out.extend(left_out);
        let core = Arc::new(core);
        core.disks.iter().for_each(|disk| core.recover(disk));
        let threads = Threads::start(&core, folders)?;
        Ok(Self { core, _threads: Arc::new(threads) })
    }

    /// The pages under a pin if all of them are in the DRAM tier; counts as a use of their blocks. Takes no system call
    /// and well under a microsecond.
    pub fn pin(&self, id: SegmentId, pages: PageRun) -> Option<Pinned> {
        let mut shard = self.core.table.by_id(id);
        let segment = shard.find(id)?;
        let pinned = ReadPages::pin(&self.core, &mut shard, segment, pages)?;
        shard.get(segment).read(pages);
        Some(Pinned::new(pinned))
    }

    /// The same without counting a use: for who holds pages that somebody else is to read.
    pub fn hold(&self, id: SegmentId, pages: PageRun) -> Option<Pinned> {
        let mut shard = self.core.table.by_id(id);
        let segment = shard.find(id)?;
        Some(Pinned::new(ReadPages::pin(&self.core, &mut shard, segment, pages)?))
    }

    /// All of a segment under a pin, with its length in bytes, if every page is in the DRAM tier.
    pub fn pin_whole(&self, id: SegmentId) -> Option<(Pinned, u32)> {
        let mut shard = self.core.table.by_id(id);
        let segment = shard.find(id)?;
        let (bytes, pages) = (shard.get(segment).bytes, PageRun::new(0, shard.get(segment).pages()));
        let pinned = ReadPages::pin(&self.core, &mut shard, segment, pages)?;
        shard.get(segment).read(pages);
        Some((Pinned::new(pinned), bytes))
    }

    /// Where the pages of a run are.
    pub fn state(&self, id: SegmentId, pages: PageRun) -> RunState {
        let mut shard = self.core.table.by_id(id);
        let Some(entry) = shard.by_id(id).filter(|entry| pages.end() <= entry.pages()) else {
            return RunState { missing: vec![pages], ..RunState::default() };
        };
        // What the disk does not give now counts as missing.
        let disk_on = entry.disk.extent.is_some() && self.core.disk(entry.disk_no).health.is_on(Direction::Read);
        let mut state = RunState::default();
        for (block, bits) in by_block(pages) {
            let dram = entry.present(TierKind::Dram, block).and(bits);
            let disk = if disk_on { entry.present(TierKind::Disk, block).and(bits).without(dram) } else { PageBits::default() };
            append(&mut state.dram, dram.runs(block));
            append(&mut state.disk, disk.runs(block));
            append(&mut state.missing, bits.without(dram).without(disk).runs(block));
        }
        state
    }

    /// Brings pages from the disk tier into DRAM, verified, several requests in flight, each page read once for all who
    /// wait. Pages that do not verify are dropped and are missing afterwards, as those are that the disk does not give in
    /// time; pages that are in neither tier stay missing. `Retry` when there is no room.
    pub async fn load(&self, id: SegmentId, pages: PageRun) -> Result<()> {
        crate::data::load(&self.core, id, pages).await
    }

    /// Begins to fill pages of a segment: room is made at once, evicting what it takes. `Retry` when everything else is
    /// pinned or kept, `Invalid` when the pages are none of the segment, `Closed` after [`Self::close`].
    pub fn begin_fill(&self, segment: SegmentSpec, pages: PageRun) -> Result<Fill> {
        Fill::begin(&self.core, segment, pages)
    }

    /// Begins a block of temporary data that is written where it will lie, in memory of one that was freed when there is any.
    /// For segments that take all pages of one block; errors as of [`Self::begin_fill`].
    pub fn begin_block(&self, segment: SegmentSpec) -> Result<BlockFill> {
        BlockFill::begin(&self.core, segment)
    }

    /// Whether [`Self::begin_block`] takes such a segment.
    pub fn takes_block(&self, segment: &SegmentSpec) -> bool {
        BlockFill::suits(segment)
    }

    /// Writes a block of temporary data (1 MiB at most), or all of a column that is not there, to the disk tier alone. `Retry` when there
    /// is no room or the disk fails, `Invalid` without a disk tier.
    pub async fn write_to_disk(&self, segment: SegmentSpec, bytes: Bytes) -> Result<()> {
        crate::data::write_off_memory(&self.core, segment, bytes).await
    }

    /// Pages that are in the disk tier, verified, in memory of their own; none when they are not there, or the disk does not give
    /// them.
    pub async fn read_from_disk(&self, id: SegmentId, pages: PageRun) -> Result<Option<Bytes>> {
        crate::data::read_off_memory(&self.core, id, pages).await
    }

    /// All of a column that [`Self::write_to_disk`] has written, verified, in memory of its own; none when it is not there, or the disk does
    /// not give it.
    pub async fn read_all_from_disk(&self, id: SegmentId) -> Result<Option<Bytes>> {
        let read = crate::data::read_whole_off_memory(&self.core, id).await;
        self.touch(id, None, 1);
        read
    }

    /// Whether there is a disk tier.
    pub fn has_disk(&self) -> bool {
        !self.core.disks.is_empty()
    }

    /// What the disk tier may take on the disks that could be opened, in bytes.
    pub fn disk_bytes(&self) -> u64 {
        self.core.disks.iter().map(|disk| disk.tier.capacity_bytes()).sum()
    }

    /// Disks of the disk tier that are left out now, because they can't be used, or fail.
    pub fn disks_out(&self) -> u64 {
        (self.core.folder_faults.left_out.len() + self.core.disks.iter().filter(|disk| !disk.takes()).count()) as u64
    }

    /// Gives back the memory of freed temporary blocks that no other one has used for `idle`.
    pub fn trim_spares(&self, idle: Duration) {
        self.core.trim_spares(idle);
    }

    /// Has pages of the cache told of that have come into a tier from outside, or are in none any more, whatever brought or took them. `hear`
    /// is called where others wait: it must be quick, and ask nothing of the store. Only the first one is told.
    pub fn tell_changes(&self, hear: impl Fn(SegmentId, PageRun, Change) + Send + Sync + 'static) {
        // A second one is a defect of the caller's, and harms nobody.
        let _ = self.core.changes.set(Box::new(hear));
    }

    /// Drops a segment from both tiers, kept or not. Returns the bytes that come back, those under pins when these end. Of a
    /// process that is killed within moments of this, the disk tier may come back with the segment in it.
    pub fn free(&self, id: SegmentId) -> u64 {
        self.core.free(id)
    }

    /// Keeps a segment against eviction, or no longer; false when nothing of it is held. Of a kept segment a block leaves
    /// the DRAM tier only when the disk tier has it, and never leaves the disk tier.
    pub fn set_keep(&self, id: SegmentId, keep: bool) -> bool {
        self.core.set_keep(id, keep)
    }

    /// Counts uses that the store did not see, as reads in place: `count` is how often the pages (all that are held, when
    /// none are named) were read once more. More than 3 count as 3.
    pub fn touch(&self, id: SegmentId, pages: Option<PageRun>, count: u32) {
        let mut shard = self.core.table.by_id(id);
        let Some(entry) = shard.by_id(id) else { return };
        let blocks = match pages.filter(|run| run.end() <= entry.pages()) {
            Some(run) => by_block(run).fold(0, |blocks, (block, _)| blocks | 1u64 << block),
            None => entry.dram.presence.blocks() | entry.disk.presence.blocks(),
        };
        (0..count.min(3)).for_each(|_| entry.used(blocks));
    }

    /// Verifies pages of both tiers from `from` on, about `budget_bytes` of them, and drops those that do not verify. Go on
    /// with the step's `next`; pause between steps as the machine allows.
    pub async fn scrub(&self, from: ScrubCursor, budget_bytes: u64) -> ScrubStep {
        crate::data::scrub(&self.core, from, budget_bytes).await
    }

    /// Memory that the DRAM tier takes as the system counts it, in bytes: what [`Usage`] says, if all is well.
    pub fn resident_bytes(&self) -> Result<u64> {
        self.core.arena.resident_bytes()
    }

    /// What is held of a segment.
    pub fn held(&self, id: SegmentId) -> Held {
        let mut shard = self.core.table.by_id(id);
        shard.by_id(id).map(|entry| held(entry)).unwrap_or_default()
    }

    /// The segments of which any page is held.
    pub fn segments(&self) -> Vec<SegmentId> {
        self.all_that(|entry| !entry.dram.presence.is_empty() || !entry.disk.presence.is_empty())
    }

    /// The segments of the cache that are kept.
    pub fn kept(&self) -> Vec<SegmentId> {
        self.all_that(|entry| entry.keep && entry.owner == Owner::Cache)
    }

    fn all_that(&self, are: impl Fn(&Segment) -> bool) -> Vec<SegmentId> {
        let mut ids = Vec::new();
        for shard in self.core.table.shards() {
            ids.extend(shard.living().filter(|(_, entry)| are(entry)).map(|(_, entry)| entry.id));
        }
        ids
    }

    /// How full the tiers are.
    pub fn usage(&self) -> Usage {
        let (disks, known) = (&self.core.disks, self.core.folder_faults.all());
        Usage {
            dram: tier_usage(&self.core.dram),
            disk: disks.iter().map(|disk| tier_usage(&disk.tier)).reduce(TierUsage::with).unwrap_or_default(),
            segments: self.core.table.shards().map(|shard| shard.len() as u64).sum(),
            warnings: known.cloned().chain(disks.iter().flat_map(|disk| disk.health.warnings())).collect(),
            disks_out: self.disks_out(),
        }
    }

    /// Memory beyond the tiers that their contents cost, in bytes, about. It looks at many segments: [`Self::usage`] is for who asks often.
    pub fn metadata_bytes(&self) -> u64 {
        let shards: usize = self.core.table.shards().map(|shard| shard.heap_bytes()).sum();
        let disks: usize = self.core.disks.iter().map(Disk::heap_bytes).sum();
        (shards + self.core.dram.heap_bytes() + disks) as u64
    }

    /// Room of the disk tier for files beside it, on the same disk, none at first; none without a part of the disk tier in the store's own
    /// folder.
    pub fn lend(&self) -> Option<Lent> {
        (self.core.settings.disk_bytes > 0).then(|| Lent::new(Arc::clone(&self.core)))
    }

    /// How the disk tier would do with more room, by all that is no column.
    pub fn regret(&self) -> Regret {
        let each = self.core.disks.iter().map(|disk| regrets(&disk.tier)[0]);
        each.fold(Regret::default(), |sum, disk| Regret {
            returned: sum.returned + disk.returned,
            remembered_bytes: sum.remembered_bytes + disk.remembered_bytes,
        })
    }

    /// The same of the DRAM tier.
    pub fn dram_regret(&self) -> Regret {
        regrets(&self.core.dram)[0]
    }

    /// How columns would do with more of the DRAM tier.
    pub fn dram_form_regret(&self) -> Regret {
        regrets(&self.core.dram)[1]
    }

    /// Bytes of the DRAM tier that can't be evicted because a reader or a fill has pinned their blocks.
    pub fn pinned_bytes(&self) -> u64 {
        self.core.dram.account.pinned_bytes()
    }

    /// How much of the DRAM tier may be pinned for reading in place; beyond that, answer with copies.
    pub fn pinned_bytes_max(&self) -> u64 {
        (self.core.settings.dram_bytes as f64 * self.core.settings.in_place_share) as u64
    }

    /// The DRAM tier for another process to read in place: a new read-only descriptor.
    pub fn arena(&self) -> Result<ArenaHandle> {
        self.core.arena.handle()
    }

    /// A descriptor of the DRAM tier for a process that writes to [`BlockFill`]s of it, and is trusted not to write elsewhere.
    pub fn writable_arena(&self) -> Result<OwnedFd> {
        self.core.arena.writable()
    }

    /// Waits until all that the disk tier is to get has been written, and synchronised.
    pub async fn flush(&self) {
        crate::data::flush(&self.core).await;
    }

    /// Flushes, and takes no more fills.
    pub async fn close(&self) {
        self.core.close();
        self.flush().await;
    }
}

/// Locks the folders on other disks. Those that can't be used are taken out of the settings, and said in words.
fn with_usable_disks(mut settings: StoreSettings, folders: &mut Vec<Folder>) -> Result<(StoreSettings, Vec<String>)> {
    let mut left_out = Vec::new();
    for disk in std::mem::take(&mut settings.disks) {
        match Folder::open_there(&disk.folder) {
            Ok(folder) => {
                folders.push(folder);
                settings.disks.push(disk);
            }
            Err(error) => left_out.push(leave_out(&disk.folder, error)?),
        }
    }
    Ok((settings, left_out))
}

fn held(entry: &Segment) -> Held {
    let union: u32 = (0..entry.block_count())
        .map(|block| entry.present(TierKind::Dram, block).with(entry.present(TierKind::Disk, block)).count())
        .sum();
    Held {
        dram_bytes: entry.page_count(TierKind::Dram) * PAGE_BYTES,
        disk_bytes: entry.page_count(TierKind::Disk) * PAGE_BYTES,
        bytes: u64::from(union) * PAGE_BYTES,
        keep: entry.keep,
    }
}

/// Of all but columns, and of columns.
fn regrets(tier: &Tier) -> [Regret; 2] {
    let policy = tier.policy.lock();
    let of = |returned: u64, remembered: usize| Regret {
        returned,
        remembered_bytes: remembered as u64 * PAGE_BYTES * u64::from(PAGES_PER_BLOCK),
    };
    let (returned, remembered) = (policy.returned_marked(), policy.remembered_marked());
    [of(policy.returned() - returned, policy.remembered() - remembered), of(returned, remembered)]
}

fn tier_usage(tier: &Tier) -> TierUsage {
    TierUsage {
        capacity_bytes: tier.capacity_bytes(),
        used_bytes: tier.used_bytes(),
        pinned_bytes: tier.account.pinned_bytes(),
        kept_bytes: tier.account.kept_bytes(),
        by_owner: OWNERS.map(|owner| (owner, tier.account.bytes_of(owner))).to_vec(),
    }
}

fn append(runs: &mut Vec<PageRun>, more: Vec<PageRun>) {
    for run in more {
        match runs.last_mut() {
            Some(last) if last.end() == run.start => last.len += run.len,
            _ => runs.push(run),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_types::ErrorKind;

    /// A disk that takes longer than a reader waits: missing, with a warning, and no later answer lands in pages that
    /// someone else has filled meanwhile.
    #[tokio::test]
    async fn a_slow_disk_counts_as_missing() {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings::new(folder.path(), 4 << 20).with_disk(8 << 20);
        let spec = SegmentSpec { id: SegmentId(7), bytes: 1 << 20, owner: Owner::Cache, keep: false };
        let run = PageRun::new(0, 256);
        let fill = |store: &BlockStore| {
            let mut fill = store.begin_fill(spec, run).unwrap();
            fill.write(0, &[3; 1 << 20]).unwrap();
            fill.finish()
        };
        let store = BlockStore::open(settings.clone()).unwrap();
        fill(&store).unwrap();
        store.close().await;
        drop(store);

        let store = BlockStore::open_with(settings, Duration::from_millis(50)).unwrap();
        assert_eq!(store.state(spec.id, run).disk, [run]);
        *store.core.disks[0].file.delay.lock() = Duration::from_millis(600);
        store.load(spec.id, run).await.unwrap();
        assert_eq!(store.state(spec.id, run).missing, [run]);
        assert!(store.usage().warnings[0].contains("reading is paused"), "{:?}", store.usage().warnings);
        assert_eq!(fill(&store).unwrap_err().kind(), ErrorKind::Retry, "the pages are still promised to the disk");
        // The answer comes in the end, and is good.
        let began = forebay_runtime::now();
        while store.pin(spec.id, run).is_none() {
            assert!(began.elapsed() < Duration::from_secs(10));
            forebay_runtime::time::sleep(Duration::from_millis(20)).await;
        }
        fill(&store).unwrap();
        assert!(store.pin(spec.id, run).unwrap().iter().all(|byte| *byte == 3));
    }
}
