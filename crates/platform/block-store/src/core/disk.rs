//! The disk tier put together: its file of pages, its checksums, its books, its health and the threads that work on it.

use std::sync::Arc;

use forebay_types::{PAGE_BYTES, Result, ResultExt};

use super::pool::Pool;
use crate::books::Tier;
use crate::media::{Arena, DiskFile, DiskSums, Health, Index, SUMS_PER_PAGE, SumGroups};
use crate::settings::StoreSettings;

/// Addresses at least, in bytes.
const ADDRESS_BYTES_MIN: u64 = 1 << 40;
/// Addresses at most, in bytes: what ext4 has of them in one file, and a little less.
const ADDRESS_BYTES_MAX: u64 = 15 << 40;
/// Addresses for each byte of capacity.
const ADDRESSES_PER_BYTE: u64 = 64;

/// The disk tier.
pub(crate) struct Disk {
    pub tier: Tier,
    pub sum_groups: SumGroups,
    pub sums: DiskSums,
    pub file: DiskFile,
    pub index: Index,
    pub pool: Pool,
    pub health: Health,
}

impl Disk {
    /// Opens the tier's files, empty as far as the books go. `frames` pages of the arena cache checksums.
    pub fn open(settings: &StoreSettings, arena: &Arc<Arena>, frames: u64) -> Result<Self> {
        let open = |name| {
            let path = settings.folder.join(name);
            DiskFile::open(&path).context(|| format!("{}: the disk tier can't be opened", path.display()))
        };
        let bytes = settings.disk_bytes.saturating_mul(ADDRESSES_PER_BYTE).clamp(ADDRESS_BYTES_MIN, ADDRESS_BYTES_MAX);
        let addresses = (bytes / PAGE_BYTES).next_multiple_of(SUMS_PER_PAGE);
        Ok(Self {
            tier: Tier::new(settings.disk_bytes / PAGE_BYTES, addresses),
            sum_groups: SumGroups::new(addresses),
            file: open("disk.tier")?,
            sums: DiskSums::new(open("disk.sums")?, arena.clone(), frames),
            index: Index::new(settings.folder.join("disk.index")),
            pool: Pool::new(settings.in_flight),
            health: Health::new(),
        })
    }

    /// Gives pages back; returns how many pages of checksums went out of use.
    pub fn punch(&self, start: u64, len: u64) -> u64 {
        let warn = |error: std::io::Error| tracing::warn!(start, len, %error, "space of the disk tier was not given back");
        self.file.punch(start, len).unwrap_or_else(warn);
        self.sum_groups.remove(start, len, |group| self.sums.punch(group).unwrap_or_else(warn))
    }

    /// Bytes on the heap, about.
    pub fn heap_bytes(&self) -> usize {
        self.tier.heap_bytes() + self.sums.heap_bytes()
    }
}
