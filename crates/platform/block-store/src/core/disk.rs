//! One disk of the disk tier put together: its file of pages, its checksums, its books, its health and the threads that work on it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_types::{Owner, PAGE_BYTES, Result, ResultExt};

use super::pool::Pool;
use crate::books::{DiskRoom, Tier};
use crate::media::{Arena, Direction, DiskFile, DiskSums, Health, Index, SUMS_PER_PAGE, SumGroups};
use crate::settings::DiskFolder;
use crate::table::DiskNo;

/// Addresses at least, in bytes.
const ADDRESS_BYTES_MIN: u64 = 1 << 40;
/// Addresses at most, in bytes: what ext4 has of them in one file, and a little less.
const ADDRESS_BYTES_MAX: u64 = 15 << 40;
/// Addresses for each byte of capacity.
const ADDRESSES_PER_BYTE: u64 = 64;

/// What the disk tier has on one disk: files, books and threads of its own.
pub(crate) struct Disk {
    pub no: DiskNo,
    pub folder: PathBuf,
    pub tier: Tier,
    pub sum_groups: SumGroups,
    pub sums: DiskSums,
    pub file: DiskFile,
    pub index: Index,
    pub pool: Pool,
    pub health: Health,
}

impl Disk {
    /// Opens the files in a folder, empty as far as the books go. `frames` of the arena, from the first on, cache checksums; `threads`
    /// requests are in flight at most.
    pub fn open(
        no: DiskNo,
        at: &DiskFolder,
        name: String,
        arena: &Arc<Arena>,
        frames: (u64, u64),
        threads: usize,
    ) -> Result<Self> {
        let open = |name| {
            let path = at.folder.join(name);
            DiskFile::open(&path).context(|| format!("{}: the disk tier can't be opened", path.display()))
        };
        let bytes = at.bytes.saturating_mul(ADDRESSES_PER_BYTE).clamp(ADDRESS_BYTES_MIN, ADDRESS_BYTES_MAX);
        let addresses = (bytes / PAGE_BYTES).next_multiple_of(SUMS_PER_PAGE);
        Ok(Self {
            no,
            folder: at.folder.clone(),
            tier: Tier::new(at.bytes / PAGE_BYTES, addresses),
            sum_groups: SumGroups::new(addresses),
            file: open("disk.tier")?,
            sums: DiskSums::new(open("disk.sums")?, arena.clone(), frames),
            index: Index::new(Self::index_in(&at.folder)),
            pool: Pool::new(no, threads),
            health: Health::new(name),
        })
    }

    pub fn index_in(folder: &Path) -> PathBuf {
        folder.join("disk.index")
    }

    /// Whether it takes blocks now: what it would not give again is better elsewhere.
    pub fn takes(&self) -> bool {
        self.health.is_on(Direction::Write) && self.health.is_on(Direction::Read)
    }

    /// What is to be known of it when a segment is put on a disk.
    pub fn room(&self) -> DiskRoom {
        let lent = self.tier.account.bytes_of(Owner::Shard) / PAGE_BYTES;
        DiskRoom {
            takes: self.takes(),
            is_well: self.health.is_well(),
            free: self.tier.free_pages(),
            most: self.tier.capacity.saturating_sub(self.tier.account.kept_pages() + lent),
            waiting: self.pool.waiting(),
        }
    }

    /// Gives pages back; returns how many pages of checksums went out of use.
    pub fn punch(&self, start: u64, len: u64) -> u64 {
        let warn = |error: std::io::Error| {
            // Of a disk that is known to fail, once is enough.
            if self.health.is_on(Direction::Read) {
                tracing::warn!(start, len, %error, "space of the disk tier was not given back");
            }
        };
        self.file.punch(start, len).unwrap_or_else(warn);
        self.sum_groups.remove(start, len, |group| self.sums.punch(group).unwrap_or_else(warn))
    }

    pub fn heap_bytes(&self) -> usize {
        self.tier.heap_bytes() + self.sums.heap_bytes()
    }
}
