//! Both tiers with their books, put together for all who work on them, and the few steps that need every part at once.

mod disk;
mod pool;

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use forebay_types::{PAGE_BYTES, PageRun, Result, SegmentId};
use parking_lot::Mutex;

use crate::books::{Spares, Tier};
use crate::media::{Arena, Record, SUMS_PER_PAGE, SumGroups};
use crate::settings::StoreSettings;
use crate::table::{Table, TierKind};
use disk::Disk;

/// Addresses of the DRAM tier at least, in bytes, so that small tiers don't run out of them.
const ADDRESS_BYTES_MIN: u64 = 1 << 40;
/// Addresses for each byte of capacity.
const ADDRESSES_PER_BYTE: u64 = 64;
/// Share of the DRAM tier that caches the disk tier's checksums: one in this many.
const FRAMES_SHARE: u64 = 256;
const FRAMES_MIN: u64 = 4;

/// Hears of pages of a segment, and whether they have come or left.
pub(crate) type Hear = Box<dyn Fn(SegmentId, PageRun, Change) + Send + Sync>;

/// What has become of pages of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// They are in a tier, and were in none.
    Came,
    /// They are in no tier any more.
    Left,
}

/// Everything that fills, pins and the store's own threads share.
pub(crate) struct Core {
    pub settings: StoreSettings,
    pub table: Table,
    pub arena: Arc<Arena>,
    pub dram: Tier,
    pub dram_sums: SumGroups,
    pub spares: Mutex<Spares>,
    pub disk: Option<Disk>,
    /// How long a load waits for the disk.
    pub patience: Duration,
    /// Who hears of pages that have come or that no tier has any more.
    pub changes: OnceLock<Hear>,
    closed: AtomicBool,
}

impl Core {
    /// Both tiers, empty.
    pub fn new(settings: StoreSettings, patience: Duration) -> Result<Self> {
        let bytes = settings.dram_bytes.saturating_mul(ADDRESSES_PER_BYTE).max(ADDRESS_BYTES_MIN);
        let addresses = (bytes / PAGE_BYTES).next_multiple_of(SUMS_PER_PAGE);
        let frames = if settings.disk_bytes > 0 { (settings.dram_bytes / PAGE_BYTES / FRAMES_SHARE).max(FRAMES_MIN) } else { 0 };
        let arena = Arc::new(Arena::new(addresses, frames)?);
        let dram = Tier::new(settings.dram_bytes / PAGE_BYTES, addresses);
        dram.force_reserve(frames);
        Ok(Self {
            table: Table::new(),
            disk: if settings.disk_bytes > 0 { Some(Disk::open(&settings, &arena, frames)?) } else { None },
            arena,
            dram,
            dram_sums: SumGroups::new(addresses),
            spares: Mutex::default(),
            patience,
            changes: OnceLock::new(),
            closed: AtomicBool::new(false),
            settings,
        })
    }

    /// The disk tier, for what is only done when there is one.
    pub fn disk(&self) -> &Disk {
        self.disk.as_ref().expect("there is a disk tier")
    }

    pub fn tier(&self, kind: TierKind) -> &Tier {
        match kind {
            TierKind::Dram => &self.dram,
            TierKind::Disk => &self.disk().tier,
        }
    }

    /// Gives pages of a tier back, with the pages of checksums that go out of use by that; returns how many in all.
    pub fn punch(&self, tier: TierKind, start: u64, len: u64) -> u64 {
        match tier {
            TierKind::Dram => {
                self.arena.punch(start, len);
                len + self.dram_sums.remove(start, len, |group| self.arena.punch_sums(group))
            }
            TierKind::Disk => len + self.disk().punch(start, len),
        }
    }

    /// Takes a record of a change of the disk tier, under the lock of what has changed.
    pub fn log(&self, record: Record) {
        self.disk().index.log(record);
    }

    /// Sees to it that records taken outside the store's own threads are written soon.
    pub fn nudge(&self) {
        if let Some(disk) = &self.disk
            && disk.index.has_work()
        {
            disk.pool.nudge();
        }
    }

    pub fn close(&self) {
        self.closed.store(true, SeqCst);
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(SeqCst)
    }
}
